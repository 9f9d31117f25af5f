/*
 * logs.c - the logs of runs, read by threads of their own
 *
 * A request is made on the loop and belongs to its view.  From there it goes
 *
 *	waiting   in the view: another digest of this view is under way
 *	   |
 *	a job     of the threads (threads.h); a long walk is one of many slices
 *	   |
 *	answered  its callback is called, then it is freed
 *
 * Requests of a view in memory are given to no thread: the loop does their
 * work.  A digest is worked on by one request at a time, and the next begins
 * only after the callback of the last has returned; so what a callback looks
 * at stands still.
 *
 * A request is touched by the thread that works on it, and canceled says to
 * the thread that nobody wants it any more; it is always the loop that frees,
 * requests and views.
 */
#include "supervisor/core/logs.h"

#include <sys/queue.h>
#include <sys/stat.h>
#include <errno.h>
#include <stdatomic.h>

#include "common/fd.h"
#include "common/xmalloc.h"
#include "supervisor/core/threads.h"
#include "supervisor/store/store.h"

/* A record other than output comes whole. */
#define PART_MIN_BYTES (RUNLOG_HEADER_BYTES + RUNLOG_RECORD_MAX)

enum request_kind {
	REQUEST_DIGEST,
	REQUEST_READ,
	REQUEST_RANGE
};

struct log_request {
	struct thread_job job;         /* first */
	TAILQ_ENTRY(log_request) link; /* waiting */
	LIST_ENTRY(log_request) of_view;
	struct log_view *view;
	enum request_kind kind;
	bool waiting;
	bool refused;
	atomic_bool canceled;
	uint64_t upto;
	struct log_read read;
	struct log_range *range;
	log_digest_cb digest_cb;
	struct log_maker *maker;
	log_read_cb read_cb;
	log_range_cb range_cb;
	void *arg;
	int rc;
	struct err *why; /* when rc is negative */
};
TAILQ_HEAD(request_queue, log_request);
LIST_HEAD(request_list, log_request);

struct log_view {
	TAILQ_ENTRY(log_view) link;
	struct logs *logs;
	int fd;                /* -1: in memory */
	struct store_log *log; /* whose fd is; NULL: the view's own */
	uint8_t *mem;          /* NULL: in a file */
	size_t nmem;
	struct log_digest *digest;
	struct log_request *digesting; /* works on it */
	struct request_queue waiting;
	struct request_list requests;
	size_t held; /* of its heads, as last counted */
	bool closed; /* freed with its last request */
};
TAILQ_HEAD(view_list, log_view);

struct logs {
	struct threads *threads;
	struct view_list views; /* the first was looked at longest ago */
	size_t held;            /* of all views */
	unsigned int nrequests;
	bool delivering; /* request_done is on the stack, */
	bool closed;     /* and logs_free was called in it */
};

/* ---- the work, on a reading thread (or the loop, for memory) */

static struct runlog_source
view_source(const struct log_view *v)
{
	return (struct runlog_source){v->fd, v->mem};
}

/* The log may be shorter than somebody was told before a loss. */
static int
view_length(const struct log_view *v, uint64_t *length, struct err *e)
{
	struct stat st;

	if (v->fd < 0) {
		*length = v->nmem;
		return 0;
	}
	if (fstat(v->fd, &st) != 0)
		return err_set(e, ERR_SYS, "log: %s", strerror(errno));
	*length = (uint64_t)st.st_size;
	return 0;
}

static int
request_digest(struct log_request *r, uint64_t length,
    const struct log_work *work, struct err *e)
{
	const struct runlog_source source = view_source(r->view);
	struct log_digest *d = r->view->digest;
	uint64_t upto = r->upto;

	if (upto < d->scanned)
		upto = d->scanned;
	if (upto > length)
		upto = length;
	return log_digest_advance(d, &source, upto, work, e);
}

static int
request_read(struct log_request *r, uint64_t length, struct err *e)
{
	struct log_read *read = &r->read;

	read->source = view_source(r->view);
	read->ncommands = r->view->digest->ncommands;
	read->upto = r->upto < length ? r->upto : length;
	return log_read_records(read, e);
}

static int
request_range(struct log_request *r, uint64_t length,
    const struct log_work *work, struct err *e)
{
	const struct runlog_source source = view_source(r->view);

	return log_range_advance(
	    r->range, &source, r->upto < length ? r->upto : length, work, e);
}

static void
request_set_result(struct log_request *r, int rc, const struct err *e)
{
	r->rc = rc;
	if (rc < 0)
		r->why = xmemdup(e, sizeof(*e));
}

/* Afterwards r->rc is 1 when only a slice was done. */
static void
request_work(struct log_request *r, const struct log_work *work)
{
	uint64_t length;
	struct err e;
	int rc = view_length(r->view, &length, &e);

	if (rc == 0 && r->kind == REQUEST_READ)
		rc = request_read(r, length, &e);
	else if (rc == 0 && r->kind == REQUEST_RANGE)
		rc = request_range(r, length, work, &e);
	else if (rc == 0)
		rc = request_digest(r, length, work, &e);
	if (rc == 0 && r->maker != NULL)
		r->maker->make(r->maker, r->view->digest);
	request_set_result(r, rc, &e);
}

/* NOLINTNEXTLINE(misc-redundant-expression): by chance they are equal */
_Static_assert(LOG_WORK_BYTES <= THREADS_ROOM_BYTES, "a thread's room");

static enum thread_verdict
request_slice(struct thread_job *job, void *room)
{
	const struct log_work work = {room, LOG_WORK_BYTES};
	struct log_request *r = (struct log_request *)job;

	if (!atomic_load(&r->canceled))
		request_work(r, &work);
	return r->rc > 0 && !atomic_load(&r->canceled) ? THREAD_AGAIN :
							 THREAD_DONE;
}

/* ---- requests, on the loop */

static void
request_submit(struct log_request *r)
{
	struct log_view *v = r->view;

	if (r->kind == REQUEST_DIGEST && !r->refused)
		v->digesting = r;
	if (v->fd < 0 || r->refused)
		threads_skip(v->logs->threads, &r->job);
	else
		threads_add(v->logs->threads, THREAD_LINE_LOGS, &r->job);
}

static void request_done(struct thread_job *job);

static struct log_request *
request_new(struct log_view *v, enum request_kind kind, uint64_t upto,
    void *arg, struct log_request **out)
{
	struct log_request *r = xcalloc(1, sizeof(*r));
	struct err e;

	r->job.work = request_slice;
	r->job.done = request_done;
	r->view = v;
	r->kind = kind;
	r->upto = upto;
	r->arg = arg;
	atomic_init(&r->canceled, false);
	LIST_INSERT_HEAD(&v->requests, r, of_view);
	if (++v->logs->nrequests > LOGS_REQUESTS_MAX) {
		r->refused = true;
		(void)err_set(&e, ERR_LIMIT, "more than %d logs are being read",
		    LOGS_REQUESTS_MAX);
		request_set_result(r, ERR_LIMIT, &e);
	}
	if (out != NULL)
		*out = r;
	return r;
}

static void
request_free(struct log_request *r)
{
	LIST_REMOVE(r, of_view);
	r->view->logs->nrequests--;
	if (r->maker != NULL)
		r->maker->done(r->maker);
	free(r->read.mem);
	if (r->range != NULL)
		log_range_clear(r->range);
	free(r->range);
	free(r->why);
	free(r);
}

void
log_view_digest(struct log_view *v, uint64_t upto, log_digest_cb cb, void *arg,
    struct log_request **out)
{
	log_view_make(v, upto, NULL, cb, arg, out);
}

void
log_view_make(struct log_view *v, uint64_t upto, struct log_maker *m,
    log_digest_cb cb, void *arg, struct log_request **out)
{
	struct log_request *r = request_new(v, REQUEST_DIGEST, upto, arg, out);

	r->digest_cb = cb;
	r->maker = m;
	if (v->digesting == NULL || r->refused) {
		request_submit(r);
		return;
	}
	r->waiting = true;
	TAILQ_INSERT_TAIL(&v->waiting, r, link);
}

void
log_view_read(struct log_view *v, const struct log_at *from, uint64_t upto,
    size_t max, log_read_cb cb, void *arg, struct log_request **out)
{
	struct log_request *r = request_new(v, REQUEST_READ, upto, arg, out);

	r->read_cb = cb;
	r->read.from = *from;
	r->read.max = max < PART_MIN_BYTES ? PART_MIN_BYTES : max;
	request_submit(r);
}

void
log_view_range(struct log_view *v, const struct log_range *wish, uint64_t upto,
    log_range_cb cb, void *arg, struct log_request **out)
{
	struct log_request *r = request_new(v, REQUEST_RANGE, upto, arg, out);

	r->range_cb = cb;
	r->range = xcalloc(1, sizeof(*r->range));
	r->range->command = wish->command;
	r->range->streams = wish->streams;
	r->range->offset = wish->offset;
	r->range->max = wish->max;
	log_range_init(r->range);
	request_submit(r);
}

void
log_request_cancel(struct log_request *r)
{
	if (r == NULL)
		return;
	if (r->waiting) {
		TAILQ_REMOVE(&r->view->waiting, r, link);
		request_free(r);
		return;
	}
	atomic_store(&r->canceled, true);
}

/* ---- views */

static struct log_view *
view_new(struct logs *l, uint32_t ncommands, const struct log_caps *caps)
{
	struct log_view *v = xcalloc(1, sizeof(*v));

	v->logs = l;
	v->fd = -1;
	v->digest = log_digest_new(ncommands, caps);
	TAILQ_INIT(&v->waiting);
	LIST_INIT(&v->requests);
	TAILQ_INSERT_TAIL(&l->views, v, link);
	return v;
}

struct log_view *
log_view_open(
    struct logs *l, int fd, uint32_t ncommands, const struct log_caps *caps)
{
	struct log_view *v = view_new(l, ncommands, caps);

	v->fd = fd;
	return v;
}

struct log_view *
log_view_open_run(struct logs *l, struct store_log *log, uint32_t ncommands,
    const struct log_caps *caps)
{
	struct log_view *v;
	size_t n;
	const uint8_t *held = store_log_held(log, &n);

	if (held != NULL)
		return log_view_open_memory(l, held, n, ncommands, caps);
	v = view_new(l, ncommands, caps);
	v->log = store_log_ref(log);
	v->fd = store_log_fd(log);
	return v;
}

struct log_view *
log_view_open_memory(struct logs *l, const uint8_t *p, size_t n,
    uint32_t ncommands, const struct log_caps *caps)
{
	struct log_view *v = view_new(l, ncommands, caps);

	v->mem = xmemdup(p, n);
	v->nmem = n;
	return v;
}

int
log_view_restore(
    struct log_view *v, const uint8_t *digest, size_t n, struct err *e)
{
	struct log_digest *d;

	if (log_digest_decode(
		digest, n, v->digest->ncommands, &v->digest->caps, &d, e) != 0)
		return ERR_PROTO;
	log_digest_free(v->digest);
	v->digest = d;
	return 0;
}

static void
view_free(struct log_view *v)
{
	TAILQ_REMOVE(&v->logs->views, v, link);
	v->logs->held -= v->held;
	if (v->log != NULL)
		store_log_close(v->log);
	else if (v->fd >= 0)
		(void)close(v->fd);
	free(v->mem);
	log_digest_free(v->digest);
	free(v);
}

void
log_view_close(struct log_view *v)
{
	struct log_request *r, *next;

	if (v == NULL)
		return;
	v->closed = true;
	for (r = LIST_FIRST(&v->requests); r != NULL; r = next) {
		next = LIST_NEXT(r, of_view);
		log_request_cancel(r);
	}
	if (LIST_EMPTY(&v->requests))
		view_free(v);
}

/* ---- memory for heads */

static void
view_count_held(struct log_view *v)
{
	struct logs *l = v->logs;

	l->held -= v->held;
	v->held = log_digest_held(v->digest);
	l->held += v->held;
}

/* Until all fit, views give their heads back. */
static void
logs_trim_held(struct logs *l)
{
	struct log_view *v;

	TAILQ_FOREACH (v, &l->views, link) {
		if (l->held <= LOGS_HELD_MAX)
			return;
		if (v->digesting != NULL || v->held == 0)
			continue;
		log_digest_drop(v->digest);
		view_count_held(v);
	}
}

/* ---- answers */

static void
request_answer(struct log_request *r)
{
	const bool good = r->rc == 0;

	if (r->kind == REQUEST_DIGEST)
		r->digest_cb(
		    r->rc, good ? r->view->digest : NULL, r->why, r->arg);
	else if (r->kind == REQUEST_RANGE)
		r->range_cb(r->rc, good ? r->range : NULL, r->why, r->arg);
	else
		r->read_cb(
		    r->rc, good ? &r->read.records : NULL, r->why, r->arg);
}

/* The digest of v is free for the next who asked for it. */
static void
view_next_digest(struct log_view *v)
{
	struct log_request *r = TAILQ_FIRST(&v->waiting);

	v->digesting = NULL;
	TAILQ_REMOVE(&v->logs->views, v, link);
	TAILQ_INSERT_TAIL(&v->logs->views, v, link);
	view_count_held(v);
	if (r == NULL)
		return;
	TAILQ_REMOVE(&v->waiting, r, link);
	r->waiting = false;
	request_submit(r);
}

/* The callback may close the view, and even call logs_free: what that means
 * comes when request_done is. */
static void
request_deliver(struct logs *l, struct log_request *r)
{
	const struct log_work none = {NULL, 0};
	struct log_view *v = r->view;

	if (v->fd < 0 && !r->refused && !atomic_load(&r->canceled))
		request_work(r, &none);
	if (!atomic_load(&r->canceled))
		request_answer(r);
	if (v->digesting == r)
		view_next_digest(v);
	request_free(r);
	if (v->closed && LIST_EMPTY(&v->requests))
		view_free(v);
	logs_trim_held(l);
}

static void
logs_destroy(struct logs *l)
{
	struct log_request *r;
	struct log_view *v;

	while ((v = TAILQ_FIRST(&l->views)) != NULL) {
		while ((r = LIST_FIRST(&v->requests)) != NULL)
			request_free(r);
		view_free(v);
	}
	free(l);
}

static void
request_done(struct thread_job *job)
{
	struct log_request *r = (struct log_request *)job;
	struct logs *l = r->view->logs;

	l->delivering = true;
	request_deliver(l, r);
	l->delivering = false;
	if (l->closed)
		logs_destroy(l);
}

/* ---- life */

int
logs_new(struct event_base *base, unsigned int threads, struct logs **out,
    struct err *e)
{
	struct logs *l = xcalloc(1, sizeof(*l));

	TAILQ_INIT(&l->views);
	if (threads_new(base, threads, &l->threads, e) != 0) {
		free(l);
		return e->code;
	}
	*out = l;
	return 0;
}

struct threads *
logs_threads(const struct logs *l)
{
	return l->threads;
}

void
logs_free(struct logs *l)
{
	if (l == NULL)
		return;
	threads_free(l->threads); /* requests are their views' */
	l->closed = true;
	if (!l->delivering)
		logs_destroy(l);
}

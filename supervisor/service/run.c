#include "supervisor/service/internal.h"

#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/service/args.h"

/* ---- finding */

static int
compare_ids(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	return (x->row.id > y->row.id) - (x->row.id < y->row.id);
}

static int
compare_uuids(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	return memcmp(x->row.uuid.b, y->row.uuid.b, sizeof(x->row.uuid.b));
}

struct run *
run_by_id(struct service *s, uint64_t id)
{
	struct run key = {.row.id = id};
	void *node = tfind(&key, &s->run_ids, compare_ids);

	return node == NULL ? NULL : *(struct run **)node;
}

struct run *
run_by_uuid(struct service *s, uint64_t tenant, const struct uuid *uuid)
{
	struct run key = {.row.uuid = *uuid}, *r;
	void *node = tfind(&key, &s->run_uuids, compare_uuids);

	if (node == NULL)
		return NULL;
	r = *(struct run **)node;
	return r->row.tenant == tenant ? r : NULL;
}

/* ---- life */

static struct run *
run_new(struct service *s, struct sandbox *sb)
{
	struct run *r = xcalloc(1, sizeof(*r));

	r->service = s;
	r->sandbox = sb;
	r->refs = 1; /* the service's own, until the end is on disk */
	r->spool_fd = -1;
	STAILQ_INIT(&r->waiters);
	STAILQ_INIT(&r->files);
	LIST_INIT(&r->follows);
	return r;
}

static void
run_enter(struct run *r)
{
	struct service *s = r->service;

	if (tsearch(r, &s->run_ids, compare_ids) == NULL ||
	    tsearch(r, &s->run_uuids, compare_uuids) == NULL)
		fatal(71, "out of memory");
	TAILQ_INSERT_TAIL(&s->runs, r, all_link);
	if (r->sandbox != NULL)
		TAILQ_INSERT_TAIL(&r->sandbox->waiting, r, link);
	s->nruns++;
}

static void
run_leave_service(struct run *r)
{
	struct service *s = r->service;

	(void)tdelete(r, &s->run_ids, compare_ids);
	(void)tdelete(r, &s->run_uuids, compare_uuids);
	TAILQ_REMOVE(&s->runs, r, all_link);
	s->nruns--;
}

struct run *
run_ref(struct run *r)
{
	r->refs++;
	return r;
}

void
run_unref(struct run *r)
{
	if (r == NULL || --r->refs > 0)
		return;
	artifact_drop_files(r);
	if (r->retry != NULL)
		event_free(r->retry);
	store_log_close(r->log);
	store_run_clear(&r->row);
	free(r);
}

/* ---- waiters */

static void
waiter_end(struct run_waiter *w, int rc, const struct err *why)
{
	struct run *r = w->run;

	STAILQ_REMOVE(&r->waiters, w, run_waiter, link);
	r->nwaiters--;
	w->cb(r, rc, why, w->arg);
	if (w->timer != NULL)
		event_free(w->timer);
	free(w);
	run_unref(r);
}

static void
waiter_timeout_cb(evutil_socket_t fd, short what, void *arg)
{
	struct err e;

	(void)fd;
	(void)what;
	(void)err_set(&e, ERR_LIMIT, "the wait ended before the run");
	waiter_end(arg, ERR_LIMIT, &e);
}

int
run_await(struct run *r, uint64_t timeout_ms,
    void (*cb)(struct run *, int, const struct err *, void *), void *arg,
    struct err *e)
{
	struct run_waiter *w;
	struct timeval tv = {(time_t)(timeout_ms / 1000),
	    (suseconds_t)(timeout_ms % 1000) * 1000};

	if (r->nwaiters >= WAITERS_MAX)
		return err_set(e, ERR_LIMIT,
		    "%d callers wait for this run already", WAITERS_MAX);
	w = xcalloc(1, sizeof(*w));
	w->cb = cb;
	w->arg = arg;
	w->run = run_ref(r);
	if (timeout_ms > 0) {
		w->timer = evtimer_new(r->service->base, waiter_timeout_cb, w);
		if (w->timer == NULL)
			fatal(71, "out of memory");
		(void)evtimer_add(w->timer, &tv);
	}
	STAILQ_INSERT_TAIL(&r->waiters, w, link);
	r->nwaiters++;
	return 0;
}

static void
run_tell_waiters(struct run *r, int rc, const struct err *why)
{
	struct run_waiter *w;

	(void)run_ref(r);
	while ((w = STAILQ_FIRST(&r->waiters)) != NULL)
		waiter_end(w, rc, why);
	run_unref(r);
}

/* ---- making */

static void
run_fill_row(struct run *r, const struct principal *p, struct run_request *q)
{
	const struct conf *conf = r->service->conf;
	struct store_run *row = &r->row;

	row->id = r->service->next_run++;
	row->uuid = q->uuid;
	row->tenant = p->tenant;
	row->sandbox = r->sandbox->row.id;
	row->identifier = xstrdup(q->identifier);
	row->sandbox_name = xstrdup(r->sandbox->row.name);
	row->container_id = xstrdup(r->sandbox->row.container_id);
	row->tool = xstrdup(q->tool);
	row->error = xstrdup("");
	row->artifacts_error = xstrdup("");
	row->created_ms = clock_wall_ms();
	row->stdout_max =
	    (uint32_t)conf_int(conf, CONF_DEFAULT_STDOUT_MAX_BYTES);
	row->stderr_max =
	    (uint32_t)conf_int(conf, CONF_DEFAULT_STDERR_MAX_BYTES);
	row->commands = q->commands;
	row->ncommands = q->spec.ncommands;
	q->commands = NULL;
	r->lock = q->lock;
}

struct inserted_arg {
	struct run *run;
	void (*cb)(struct run *, int, const struct err *, void *);
	void *arg;
};

static void
run_inserted_cb(int rc, const struct err *why, void *arg)
{
	struct inserted_arg *a = arg;
	struct run *r = a->run;

	r->inserted = rc == 0;
	r->unrecorded = rc != 0;
	if (rc != 0 && (r->phase == RUN_WAITING || r->phase == RUN_SENT))
		run_cancel(r, RUNLOG_INTERNAL); /* never acknowledged */
	a->cb(r, rc, why, a->arg);
	run_unref(r);
	free(a);
}

int
run_create(struct sandbox *sb, const struct principal *p, struct run_request *q,
    void (*inserted)(struct run *, int, const struct err *, void *), void *arg,
    struct err *e)
{
	struct service *s = sb->service;
	struct inserted_arg *a;
	struct store_log *log;
	struct run *r;
	struct buf spec;

	buf_init(&spec, RUNSPEC_BYTES_MAX);
	if (runspec_encode(&q->spec, &spec, e) != 0) {
		buf_clear(&spec);
		return ERR_INVAL;
	}
	if (store_log_open(s->store, &q->uuid, &log, e) != 0) {
		buf_clear(&spec);
		return e->code;
	}
	r = run_new(s, sb);
	run_fill_row(r, p, q);
	r->log = log;
	r->spool_fd = store_log_fd(log);
	r->row.spec_len = buf_len(&spec);
	r->row.spec = xmemdup(buf_data(&spec), buf_len(&spec));
	buf_clear(&spec);
	run_enter(r);

	a = xcalloc(1, sizeof(*a));
	a->run = run_ref(r);
	a->cb = inserted;
	a->arg = arg;
	store_run_begin(s->store, &r->row, r->log,
	    q->await ? STORE_SOON : STORE_NOW, run_inserted_cb, a);
	sandbox_pump(sb);
	return 0;
}

/* What only the spec says, and how far the run had come. */
static void
run_restore_spec(struct run *r)
{
	struct runspec spec;
	struct stat st;

	if (runspec_decode(r->row.spec, r->row.spec_len, &spec, NULL) == 0) {
		r->lock = (spec.flags & RUNSPEC_LOCK) != 0;
		runspec_clear(&spec);
	}
	if (r->spool_fd < 0 || fstat(r->spool_fd, &st) != 0)
		return;
	r->length = (uint64_t)st.st_size;
	if (r->length > 0 && r->sandbox != NULL)
		sandbox_restore_active(r->sandbox, r);
}

/* A run that was unfinished when the front started: its spool says how far
 * it came, its agent what became of it. */
struct run *
run_restore(struct service *s, struct sandbox *sb, const struct store_run *row)
{
	struct run *r = run_new(s, sb);
	struct err e;

	store_run_copy(&r->row, row);
	r->inserted = true;
	if (store_log_reopen(s->store, &row->uuid, &r->log, &e) == 0)
		r->spool_fd = store_log_fd(r->log);
	else
		log_warn("run %llu: %s", (unsigned long long)row->id, e.msg);
	run_enter(r);
	run_restore_spec(r);
	return r;
}

/* ---- to the worker */

void
run_send(struct run *r)
{
	struct peer *p = peer_of_sandbox(r->service, r->sandbox->row.id);
	int spool, spec = -1;

	r->phase = RUN_SENT;
	spool = fcntl(r->spool_fd, F_DUPFD_CLOEXEC, 3);
	if (r->row.spec_len > MSG_RUN_START_SPEC_MAX)
		spec = fd_memfd_sealed(
		    "runspec", r->row.spec, r->row.spec_len, NULL);
	if (spool < 0 ||
	    (r->row.spec_len > MSG_RUN_START_SPEC_MAX && spec < 0)) {
		if (spool >= 0)
			(void)close(spool);
		run_end_here(r, RUNLOG_INTERNAL, ERR_SYS,
		    "out of descriptors: raise the server's limit of open "
		    "files");
		return;
	}
	msg_send_run_start(p->chan,
	    &(struct msg_run_start){.id = r->row.id,
		.sandbox = r->sandbox->row.id,
		.uuid = r->row.uuid,
		.spool_limit = (uint64_t)conf_int(
		    r->service->conf, CONF_RUN_OUTPUT_MAX_BYTES),
		.spec = {r->row.spec, spec >= 0 ? 0 : r->row.spec_len},
		.spool = spool,
		.spec_file = spec});
	if (r->cancel != 0)
		run_cancel(r, r->cancel);
}

static struct ipc_chan *
run_chan(const struct run *r)
{
	return peer_of_sandbox(r->service, r->row.sandbox)->chan;
}

void
run_cancel(struct run *r, enum runlog_reason reason)
{
	r->cancel = (uint8_t)reason;
	if (r->phase == RUN_SENT) /* the end comes from there */
		msg_send_run_cancel(run_chan(r),
		    &(struct msg_run_cancel){
			.id = r->row.id, .reason = r->cancel});
	else if (r->phase == RUN_WAITING)
		run_end_here(r, reason, ERR_WRONG_STATE, NULL);
}

/* ---- from the worker */

void
run_on_bytes(struct run *r, uint64_t length)
{
	if (r->phase != RUN_SENT || length <= r->length)
		return;
	r->length = length;
	follow_run_changed(r);
}

int
run_on_record(struct run *r, const uint8_t *p, size_t n, struct err *e)
{
	struct runlog_header h;

	if (n < RUNLOG_HEADER_BYTES || runlog_parse_header(p, &h, e) != 0 ||
	    h.length != n - RUNLOG_HEADER_BYTES)
		return err_set(e, ERR_PROTO, "a record of %zu bytes", n);
	if (r->phase == RUN_SENT)
		run_take_record(r, &h, p + RUNLOG_HEADER_BYTES);
	return 0;
}

/* ---- the end */

static void run_store_end(struct run *r);

static void
run_retry_cb(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	run_store_end(arg);
}

/* The end could not be written (a full disk): keep the run, say so to those
 * who wait, and try again until it can. */
static void
run_end_failed(struct run *r, const struct err *why)
{
	static struct log_limit limit;
	const struct timeval tv = {1, 0};
	struct err e = *why;

	log_warn_limited(&limit, "run %llu: the end is not on disk yet: %s",
	    (unsigned long long)r->row.id, why->msg);
	(void)err_wrap(&e,
	    "the run ended but is not recorded yet, ask for "
	    "its status later");
	run_tell_waiters(r, ERR_DB, &e);
	if (r->retry == NULL)
		r->retry = evtimer_new(r->service->base, run_retry_cb, r);
	if (r->retry != NULL)
		(void)evtimer_add(r->retry, &tv);
}

static void
run_end_stored_cb(int rc, const struct err *why, void *arg)
{
	struct run *r = arg;
	struct service *s = r->service;

	if (rc != 0) {
		run_end_failed(r, why);
		return;
	}
	r->phase = RUN_DONE;
	if (r->row.state == RUN_STATE_COMPLETED)
		s->stats.runs_completed++;
	else if (r->row.state == RUN_STATE_CANCELED)
		s->stats.runs_canceled++;
	else
		s->stats.runs_failed++;
	msg_send_run_forget(
	    run_chan(r), &(struct msg_run_forget){.id = r->row.id});
	run_tell_waiters(r, 0, NULL);
	follow_run_changed(r);
	s->ended_since_trim++;
	run_leave_service(r);
	run_unref(r);
}

static void
run_store_end(struct run *r)
{
	if (r->unrecorded) /* its caller was told so */
		run_end_stored_cb(0, NULL, r);
	else
		store_run_end(
		    r->service->store, &r->row, r->log, run_end_stored_cb, r);
}

/* Out of its sandbox, to disk.  The spec has served: it may hold secrets. */
static void
run_end(struct run *r, unsigned int reason, const char *text)
{
	struct sandbox *sb = r->sandbox;

	run_finish_row(r, reason, text);
	r->phase = RUN_ENDING;
	free(r->row.spec);
	r->row.spec = NULL;
	r->row.spec_len = 0;
	r->sandbox = NULL;
	if (sb != NULL)
		sandbox_run_left(sb, r);
	run_store_end(r);
}

void
run_on_ended(struct run *r, unsigned int reason, const char *text,
    const char *artifacts_error)
{
	if (r->phase != RUN_SENT)
		return;
	if (artifacts_error[0] != '\0') {
		free(r->row.artifacts_error);
		r->row.artifacts_error = xstrdup(artifacts_error);
	}
	run_end(r, reason, text);
}

void
run_end_here(
    struct run *r, unsigned int reason, int fail_code, const char *text)
{
	if (r->phase != RUN_SENT && r->phase != RUN_WAITING)
		return;
	run_rescan(r);
	if (r->in_log_end) {
		/* It had ended by itself; only its files are missing. */
		free(r->row.artifacts_error);
		r->row.artifacts_error = xstrdup(r->log_end.artifacts ?
			"the sandbox was gone before the artifacts were "
			"copied" :
			"");
		run_end(r, r->log_end.reason, NULL);
		return;
	}
	if (r->row.started_ms == 0)
		r->fail_code = fail_code;
	run_end(r, reason, text);
}

void
run_free_all(struct service *s)
{
	struct run *r;

	while ((r = TAILQ_FIRST(&s->runs)) != NULL) {
		run_tell_waiters(r, ERR_WRONG_STATE, NULL);
		run_leave_service(r);
		run_unref(r);
	}
}

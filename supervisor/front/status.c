/*
 * status.c - statuses of runs, made off the loop and shared
 *
 *	found, known as kept ----------------------------> sent
 *	found, being made for others ---> waits ---------> sent
 *	found --> copied --> made by a reading thread ---> sent, kept if large
 *
 * Two ask for the same when run, beginning of the list and all that may change
 * are the same: the log's length and whether it is there, the state, what it
 * waits for.  So nobody is
 * told what is not so any more.
 */
#include "supervisor/front/status.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/queue.h>
#include <unistd.h>

#include "common/js.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "supervisor/core/run.h"
#include "supervisor/tools/view.h"

#define LARGE_FROM 32768 /* bytes of a log: a file is ready for its status */
#define ARTIFACT_BYTES 200

struct status_key {
	struct uuid run;
	uint64_t length;
	uint64_t changes; /* of what a worker told, beside the log's bytes */
	int64_t evicted_ms;
	int64_t lost_ms;
	enum run_state state;
	enum sched_wait waits;
	uint32_t artifacts_total;
	uint32_t from;
};

/* What the thread has for itself. */
struct status_making {
	struct log_maker base;
	struct store_run row;
	struct view_wish wish;
	int fd;     /* -1: none was to be had */
	char *text; /* NULL: it is in fd, n bytes */
	size_t n;
};

struct status_waiter {
	STAILQ_ENTRY(status_waiter) link;
	struct http_exchange *x;
};

struct status {
	TAILQ_ENTRY(status) link;
	struct statuses *all;
	struct status_key key;
	struct lookup *lookup;        /* while it is made */
	struct log_request *request;  /* likewise */
	struct status_making *making; /* likewise */
	STAILQ_HEAD(, status_waiter) waiters;
	struct http_large *large; /* when kept */
	struct timer *timer;
};

struct statuses {
	struct event_base *base;
	struct http_server *http;
	TAILQ_HEAD(status_list, status) list; /* the oldest first */
	unsigned int nkept;
};

/* ---- on the reading thread */

/* Never whole in memory: there it may be several times what it is. */
static bool
making_write(struct status_making *m, const json_t *o)
{
	int fd = m->fd == -1 ? -1 : fcntl(m->fd, F_DUPFD_CLOEXEC, 0);
	FILE *file = fd == -1 ? NULL : fdopen(fd, "w");
	bool good;
	long n;

	if (file == NULL) {
		if (fd != -1)
			(void)close(fd);
		return false;
	}
	good = json_dumpf(o, file, JSON_COMPACT) == 0;
	n = ftell(file);
	m->n = (size_t)n;
	return fclose(file) == 0 && good && n >= 0;
}

static void
making_make(struct log_maker *base, const struct log_digest *d)
{
	struct status_making *m = (struct status_making *)base;
	json_t *o = view_run(&m->row, d, &m->wish);

	if (!making_write(m, o)) {
		m->text = js_dump(o);
		m->n = strlen(m->text);
	}
	json_decref(o);
}

/* On the loop again. */
static void
making_done(struct log_maker *base)
{
	struct status_making *m = (struct status_making *)base;

	if (m->fd != -1)
		(void)close(m->fd);
	store_run_clear(&m->row);
	free(m->text);
	free(m);
}

/* ---- who waits */

static void
reply(
    const struct status *s, struct http_exchange *x, const char *text, size_t n)
{
	http_add_header(x, "Cache-Control", "no-store");
	if (s->large != NULL)
		http_reply_large(x, 200, "application/json", s->large);
	else
		http_reply(x, 200, "application/json", text, n);
}

static struct http_exchange *
next_waiter(struct status *s)
{
	struct status_waiter *w = STAILQ_FIRST(&s->waiters);
	struct http_exchange *x;

	if (w == NULL)
		return NULL;
	STAILQ_REMOVE_HEAD(&s->waiters, link);
	x = w->x;
	free(w);
	return x;
}

static void
add_waiter(struct status *s, struct http_exchange *x)
{
	struct status_waiter *w = xcalloc(1, sizeof(*w));

	w->x = x;
	STAILQ_INSERT_TAIL(&s->waiters, w, link);
}

static void
status_free(struct status *s)
{
	struct http_exchange *x;

	while ((x = next_waiter(s)) != NULL)
		http_drop(x);
	log_request_cancel(s->request);
	lookup_close(s->lookup);
	if (s->large != NULL)
		s->all->nkept--;
	http_large_unref(s->large);
	timer_free(s->timer);
	TAILQ_REMOVE(&s->all->list, s, link);
	free(s);
}

/* ---- made */

static void
kept_cb(void *arg)
{
	status_free(arg);
}

static void
free_oldest_kept(struct statuses *all)
{
	struct status *s;

	TAILQ_FOREACH (s, &all->list, link)
		if (s->large != NULL) {
			status_free(s);
			return;
		}
}

/* The file becomes the answer's. */
static void
keep(struct status *s)
{
	struct status_making *m = s->making;

	if (s->all->nkept >= STATUS_KEPT_MAX)
		free_oldest_kept(s->all);
	s->large = http_large_new(s->all->http, m->fd, m->n);
	m->fd = -1;
	s->all->nkept++;
	s->timer = timer_new(s->all->base, kept_cb, s);
	timer_set_ms(s->timer, STATUS_KEPT_MS);
}

static void
made_cb(int rc, const struct log_digest *d, const struct err *why, void *arg)
{
	struct status *s = arg;
	struct status_making *m = s->making;
	struct http_exchange *x;

	(void)d;
	s->request = NULL;
	if (rc == 0 && m->text == NULL)
		keep(s);
	while ((x = next_waiter(s)) != NULL) {
		if (rc != 0)
			http_error_from(x, rc, why);
		else
			reply(s, x, m->text, m->n);
	}
	s->making = NULL;
	lookup_close(s->lookup);
	s->lookup = NULL;
	if (s->large == NULL)
		status_free(s);
}

/* ---- asked for */

static uint64_t
found_length(const struct lookup_found *f)
{
	return f->run != NULL ? f->run->length : f->row->spool_bytes;
}

static bool
is_same(const struct status_key *a, const struct status_key *b)
{
	return memcmp(&a->run, &b->run, sizeof(a->run)) == 0 &&
	    a->length == b->length && a->changes == b->changes &&
	    a->evicted_ms == b->evicted_ms && a->lost_ms == b->lost_ms &&
	    a->state == b->state && a->waits == b->waits &&
	    a->artifacts_total == b->artifacts_total && a->from == b->from;
}

static struct status *
find(struct statuses *all, const struct status_key *key)
{
	struct status *s;

	TAILQ_FOREACH (s, &all->list, link)
		if (is_same(&s->key, key))
			return s;
	return NULL;
}

static struct status_making *
making_new(const struct statuses *all, const struct status_key *key,
    const struct lookup_found *found)
{
	struct status_making *m = xcalloc(1, sizeof(*m));

	m->base = (struct log_maker){making_make, making_done};
	m->fd =
	    key->length + (uint64_t)found->row->nartifacts * ARTIFACT_BYTES >
		LARGE_FROM ?
	    http_large_file(all->http) :
	    -1;
	m->wish = (struct view_wish){.size = VIEW_FOR_STATUS,
	    .waits = key->waits,
	    .artifacts_from = key->from};
	store_run_copy(&m->row, found->row);
	return m;
}

static void
make(struct statuses *all, struct http_exchange *x, struct lookup *lookup,
    const struct lookup_found *found, const struct status_key *key)
{
	struct status *s = xcalloc(1, sizeof(*s));

	s->all = all;
	s->key = *key;
	s->lookup = lookup;
	s->making = making_new(all, key, found);
	STAILQ_INIT(&s->waiters);
	add_waiter(s, x);
	TAILQ_INSERT_TAIL(&all->list, s, link);
	log_view_make(found->view,
	    found->run != NULL ? found->run->length : UINT64_MAX,
	    &s->making->base, made_cb, s, &s->request);
}

void
statuses_answer(struct statuses *all, struct http_exchange *x,
    struct lookup *lookup, const struct lookup_found *found, uint32_t from)
{
	const struct status_key key = {.run = found->row->uuid,
	    .length = found_length(found),
	    .changes = found->run != NULL ? found->run->changes : 0,
	    .evicted_ms = found->row->evicted_ms,
	    .lost_ms = found->row->lost_ms,
	    .state = found->row->state,
	    .waits = run_waits_for(found->run),
	    .artifacts_total = found->row->artifacts_total,
	    .from = from};
	struct status *s = find(all, &key);

	if (s == NULL) {
		make(all, x, lookup, found, &key);
		return;
	}
	lookup_close(lookup);
	if (s->making != NULL)
		add_waiter(s, x);
	else
		reply(s, x, NULL, 0);
}

/* ---- life */

struct statuses *
statuses_new(struct event_base *base, struct http_server *http)
{
	struct statuses *all = xcalloc(1, sizeof(*all));

	all->base = base;
	all->http = http;
	TAILQ_INIT(&all->list);
	return all;
}

void
statuses_free(struct statuses *all)
{
	struct status *s;

	if (all == NULL)
		return;
	while ((s = TAILQ_FIRST(&all->list)) != NULL)
		status_free(s);
	free(all);
}

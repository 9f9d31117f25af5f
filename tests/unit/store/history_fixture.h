/* history_fixture.h - runs of two tenants, all different, and what is asked */
#ifndef TESTS_STORE_HISTORY_FIXTURE_H
#define TESTS_STORE_HISTORY_FIXTURE_H

#include "tests/unit/store/fixture.h"

#include "common/buf.h"
#include "common/runlog.h"
#include "supervisor/store/history.h"
#include "tests/unit/test.h"

#define HISTORY_LINES_MAX 2048
#define HISTORY_OTHER 2 /* another tenant */

/* The answer to a question. */
struct answer {
	unsigned int calls;
	int rc;
	char msg[ERR_TEXT_MAX];
	size_t n;
	struct uuid ids[HISTORY_LINES_MAX];
	int64_t durations[HISTORY_LINES_MAX];
	uint64_t bytes[HISTORY_LINES_MAX];
	enum run_state states[HISTORY_LINES_MAX];
	char next[HISTORY_CURSOR_MAX + 1];
	bool has_total, is_at_least;
	uint64_t total;
	int64_t text_since_ms;
};

static inline void
answer_cb(
    int rc, const struct history_page *p, const struct err *why, void *arg)
{
	struct answer *a = arg;

	a->calls++;
	a->rc = rc;
	(void)snprintf(
	    a->msg, sizeof(a->msg), "%s", why == NULL ? "" : why->msg);
	a->n = 0;
	a->next[0] = '\0';
	if (rc != 0)
		return;
	for (; a->n < p->n; a->n++) {
		a->ids[a->n] = p->lines[a->n].uuid;
		a->durations[a->n] = p->lines[a->n].duration_ms;
		a->bytes[a->n] = p->lines[a->n].stdout_bytes +
		    p->lines[a->n].stderr_bytes + p->lines[a->n].artifact_bytes;
		a->states[a->n] = p->lines[a->n].state;
	}
	(void)snprintf(a->next, sizeof(a->next), "%s", p->next);
	a->has_total = p->has_total;
	a->is_at_least = p->is_at_least;
	a->total = p->total;
	a->text_since_ms = p->text_since_ms;
}

static inline void
ask_once(struct fixture *f, uint64_t tenant, const struct history_query *q,
    struct answer *out)
{
	out->calls = 0;
	(void)history_list(
	    f->store, (struct tenant_id){tenant}, q, answer_cb, out);
	fixture_wait(f, &out->calls, 1);
}

/* ask - one page; while the index is behind, as it may be beside other tests
 * on a busy machine, again */
static inline void
ask(struct fixture *f, uint64_t tenant, const struct history_query *q,
    struct answer *out)
{
	for (int i = 0; i < FIXTURE_PATIENCE_S * 20; i++) {
		ask_once(f, tenant, q, out);
		if (out->rc != ERR_BACKEND)
			return;
		(void)usleep(50000);
	}
}

/* ask_filter - the newest of a filter, up to limit; it must not fail */
static inline void
ask_filter(struct fixture *f, const struct history_filter *filter, size_t limit,
    struct answer *out)
{
	const struct history_query q = {.filter = *filter, .limit = limit};

	ask(f, STORE_TENANT_DEFAULT, &q, out);
	if (out->rc != 0)
		fail_msg("history: %s", out->msg);
}

/* count_q - of all pages: one ends when its time is over */
static inline size_t
count_q(struct fixture *f, const char *text)
{
	char cursor[HISTORY_CURSOR_MAX + 1] = "";
	struct history_query q = {.filter = {.q = text}, .limit = 500};
	struct answer *a = xcalloc(1, sizeof(*a));
	size_t n = 0;

	do {
		ask(f, STORE_TENANT_DEFAULT, &q, a);
		if (a->rc != 0)
			fail_msg("history: %s", a->msg);
		n += a->n;
		memcpy(cursor, a->next, sizeof(cursor));
		q.cursor = cursor;
	} while (cursor[0] != '\0');
	free(a);
	return n;
}

static inline void
put_other_tenant(struct fixture *f)
{
	struct store_tenant t = {.id = HISTORY_OTHER,
	    .name = xstrdup("other"),
	    .created_ms = 1,
	    .runtime = xstrdup("")};
	struct result r = {0};

	store_tenant_put(f->store, &t, result_cb, &r);
	fixture_wait(f, &r.calls, 1);
	assert_int_equal(r.rc, 0);
	store_tenant_clear(&t);
}

/* A short log: one command's stdout. */
static inline struct store_log *
log_with(struct fixture *f, struct store_run *r, const char *text)
{
	const struct runlog_header start = {RUNLOG_COMMAND_STARTED, 0, 0, 1};
	const struct runlog_header out = {
	    RUNLOG_STDOUT, 0, (uint32_t)strlen(text), 1};
	struct store_log *log = NULL;
	struct buf b;

	buf_init(&b, 0);
	runlog_put_header(&b, &start);
	runlog_put_header(&b, &out);
	assert_int_equal(buf_append(&b, text, strlen(text)), 0);
	assert_int_equal(store_log_open(f->store, &r->uuid, &log, &f->err), 0);
	assert_int_equal(
	    fd_write_all(store_log_fd(log), buf_data(&b), buf_len(&b), &f->err),
	    0);
	r->spool_bytes = buf_len(&b);
	r->stdout_bytes = strlen(text);
	buf_clear(&b);
	return log;
}

/* add_run_saying - a run of sandbox 1 that has ended, with a command and what
 * it printed */
static inline struct uuid
add_run_saying(struct fixture *f, uint64_t id, uint64_t tenant,
    const char *command, const char *output)
{
	struct store_run r;
	struct store_log *log;
	struct result done = {0};
	struct uuid uuid;

	fixture_run(&r, id, 1, "a");
	r.tenant = tenant;
	fixture_set(&r.commands[0].shell, command);
	log = log_with(f, &r, output);
	store_run_begin(f->store, &r, log, STORE_SOON, NULL, NULL);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	store_run_end(f->store, &r, log, result_cb, &done);
	fixture_wait(f, &done.calls, 1);
	if (done.rc != 0)
		fail_msg("end: %s", done.msg);
	store_log_close(log);
	uuid = r.uuid;
	store_run_clear(&r);
	return uuid;
}

#endif

#include "tests/unit/store/fixture.h"

#include <sys/prctl.h>

#include "supervisor/store/history.h"

/*
 * A process that writes is killed at any moment; each row it was told is on
 * disk must be there afterwards.
 */

#define OUTSTANDING 64
#define ROUNDS 8

struct ack {
	uint64_t run;
	uint64_t ended; /* 1: the end, 0: the insert */
};

struct writing {
	struct fixture *f;
	int fd;
	uint64_t next;
};

struct one {
	struct writing *w;
	struct store_run row;
	uint64_t ended;
};

static void write_next(struct writing *w);

static void
written_cb(int rc, const struct err *why, void *arg)
{
	struct one *o = arg;
	struct writing *w = o->w;
	struct ack ack = {.run = o->row.id, .ended = o->ended};

	(void)why;
	if (rc != 0 || write(w->fd, &ack, sizeof(ack)) != sizeof(ack))
		_exit(3);
	if (o->ended == 0) {
		o->ended = 1;
		fixture_run_ended(&o->row, RUN_STATE_COMPLETED);
		fixture_run_artifact(&o->row, "x", (uint8_t)(ack.run % 7));
		store_run_end(w->f->store, &o->row, NULL, written_cb, o);
		return;
	}
	store_run_clear(&o->row);
	free(o);
	write_next(w);
}

static void
write_next(struct writing *w)
{
	struct one *o = xcalloc(1, sizeof(*o));

	o->w = w;
	fixture_run(&o->row, w->next++, 1, "a");
	store_run_begin(w->f->store, &o->row, NULL, STORE_NOW, written_cb, o);
}

/* The process to be killed: writes for ever and tells what is done. */
static void
child_main(struct fixture *f, uint64_t next, int fd)
{
	struct writing w = {.f = f, .fd = fd, .next = next};

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (event_reinit(f->base) != 0 ||
	    store_open(f->base, f->dir, NULL, &f->store, &f->err) != 0)
		_exit(2);
	for (int i = 0; i < OUTSTANDING; i++)
		write_next(&w);
	(void)event_base_dispatch(f->base);
	_exit(4);
}

/* One life and death: *acks gets what was acknowledged. */
static size_t
kill_after(struct fixture *f, uint64_t next, size_t enough, struct ack *acks,
    size_t max)
{
	size_t n = 0;
	bool killed = false;
	struct ack ack;
	pid_t pid;
	int fds[2], status;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)close(fds[0]);
		child_main(f, next, fds[1]);
	}
	(void)close(fds[1]);
	/* Also what it wrote before the signal struck. */
	while (read(fds[0], &ack, sizeof(ack)) == sizeof(ack)) {
		assert_true(n < max);
		acks[n++] = ack;
		if (n >= enough && !killed) {
			assert_int_equal(kill(pid, SIGKILL), 0);
			killed = true;
		}
	}
	(void)close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	return n;
}

static void
assert_acks_are_there(const struct fixture *f, const struct ack *acks, size_t n)
{
	sqlite3 *h = fixture_sqlite(f);
	sqlite3_stmt *st;

	assert_int_equal(
	    sqlite3_prepare_v2(
		h, "SELECT state FROM run WHERE id = ?1", -1, &st, NULL),
	    SQLITE_OK);
	for (size_t i = 0; i < n; i++) {
		const char *state;

		assert_int_equal(
		    sqlite3_bind_int64(st, 1, (int64_t)acks[i].run), SQLITE_OK);
		assert_int_equal(sqlite3_step(st), SQLITE_ROW);
		state = (const char *)sqlite3_column_text(st, 0);
		if (acks[i].ended == 1)
			assert_string_equal(state, "completed");
		assert_int_equal(sqlite3_reset(st), SQLITE_OK);
	}
	assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
	assert_int_equal(sqlite3_close(h), SQLITE_OK);
}

static void
assert_database_is_whole(const struct fixture *f)
{
	assert_int_equal(fixture_query(f,
			     "SELECT count(*) FROM pragma_integrity_check"
			     " WHERE integrity_check <> 'ok'"),
	    0);
	assert_int_equal(
	    fixture_query(f, "SELECT count(*) FROM pragma_foreign_key_check"),
	    0);
	/* What belongs together came together. */
	assert_int_equal(fixture_query(f,
			     "SELECT count(*) FROM run r WHERE (SELECT"
			     " count(*) FROM command WHERE run = r.id) <> 1"
			     " OR (SELECT count(*) FROM spec WHERE run = r.id)"
			     " <> (state = 'queued')"),
	    0);
	assert_int_equal(fixture_query(f,
			     "SELECT (SELECT sum(refs) FROM blob) -"
			     " (SELECT count(*) FROM artifact)"),
	    0);
	assert_int_equal(fixture_query(f,
			     "SELECT (SELECT runs_kept FROM tenant) - (SELECT"
			     " count(*) FROM run WHERE state = 'completed')"),
	    0);
}

struct walked {
	unsigned int calls;
	int rc;
	size_t n, ended;
	char next[HISTORY_CURSOR_MAX + 1];
};

static void
walked_cb(
    int rc, const struct history_page *p, const struct err *why, void *arg)
{
	struct walked *w = arg;

	(void)why;
	w->calls++;
	w->rc = rc;
	if (rc != 0)
		return;
	w->n += p->n;
	for (size_t i = 0; i < p->n; i++)
		w->ended += p->lines[i].state == RUN_STATE_COMPLETED;
	(void)snprintf(w->next, sizeof(w->next), "%s", p->next);
}

/* The index was killed somewhere, too: it finds what it missed. */
static void
assert_history_is_whole(struct fixture *f)
{
	struct history_query q = {.limit = HISTORY_EXPORT_MAX};
	struct walked w = {0};
	char cursor[HISTORY_CURSOR_MAX + 1];

	do {
		w.calls = 0;
		(void)history_export(f->store,
		    (struct tenant_id){STORE_TENANT_DEFAULT}, &q, walked_cb,
		    &w);
		fixture_wait(f, &w.calls, 1);
		if (w.rc == ERR_BACKEND)
			continue; /* it is behind */
		assert_int_equal(w.rc, 0);
		memcpy(cursor, w.next, sizeof(cursor));
		q.cursor = cursor;
	} while (w.rc == ERR_BACKEND || w.next[0] != '\0');
	assert_int_equal(w.n, fixture_query(f, "SELECT count(*) FROM run"));
	assert_int_equal(w.ended,
	    fixture_query(
		f, "SELECT count(*) FROM run WHERE state = 'completed'"));
}

TEST(every_acknowledged_row_survives_kill_9)
{
	const size_t max = 1u << 20;
	struct ack *acks = xcalloc(max, sizeof(*acks));

	fixture_open(f);
	fixture_put_sandbox(f, 1, "a");
	fixture_close(f);
	for (size_t round = 0; round < ROUNDS; round++) {
		struct store_snapshot snap;
		uint64_t next;
		size_t n;

		fixture_open(f);
		assert_int_equal(
		    store_snapshot(f->store, NULL, &snap, &f->err), 0);
		next = snap.next_run;
		store_snapshot_clear(&snap);
		fixture_close(f);
		n = kill_after(f, next, 1 + round * 331, acks, max);
		assert_true(n >= 1);
		fixture_open(f); /* nobody else has it any more */
		assert_acks_are_there(f, acks, n);
		assert_database_is_whole(f);
		assert_history_is_whole(f);
		fixture_close(f);
	}
	free(acks);
}

TEST_MAIN(fixture_setup_closed, fixture_teardown)

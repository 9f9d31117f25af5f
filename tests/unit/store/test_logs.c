#include "tests/unit/store/fixture.h"

/* A run's log and its row, in the right order whatever happens. */

#define LONG_LOG (STORE_INLINE_MAX + 1)

struct run {
	struct store_run row;
	struct store_log *log;
	struct result begun;
	struct result ended;
};

static void
run_open(struct fixture *f, struct run *r, uint64_t id)
{
	memset(r, 0, sizeof(*r));
	fixture_run(&r->row, id, 1, "a");
	r->log = fixture_log_open(f, &r->row);
}

static void
run_begin(struct fixture *f, struct run *r, enum store_when when)
{
	store_run_begin(f->store, &r->row, r->log, when, result_cb, &r->begun);
}

static void
run_print(struct run *r, size_t n)
{
	fixture_log_fill(r->log, &r->row, 'L', n);
}

static void
run_end(struct fixture *f, struct run *r)
{
	fixture_run_ended(&r->row, RUN_STATE_COMPLETED);
	store_run_end(f->store, &r->row, r->log, result_cb, &r->ended);
}

static void
run_close(struct run *r)
{
	store_log_close(r->log);
	store_run_clear(&r->row);
}

static void
assert_in_file(struct fixture *f, const struct run *r, size_t n)
{
	AUTO(auto_free) char *got = xmalloc(n + 1);
	AUTO(auto_close)
	int fd = store_log_read(f->store, &r->row.uuid, &f->err);

	assert_true(fd >= 0);
	assert_int_equal(fd_pread_all(fd, got, n + 1, 0, &f->err), n);
}

static int64_t
inlined(const struct fixture *f, uint64_t id)
{
	AUTO(auto_free)
	char *sql = xasprintf(
	    "SELECT coalesce(length(log), -1) FROM run WHERE id = %llu",
	    (unsigned long long)id);

	return fixture_query(f, sql);
}

static int
setup(void **state)
{
	(void)fixture_setup(state);
	fixture_put_sandbox(*state, 1, "a");
	return 0;
}

TEST(a_begin_that_does_not_wait_gives_the_log_its_name)
{
	struct run r;

	run_open(f, &r, 1);
	assert_int_equal(fixture_files(f, "spool"), 0);
	run_begin(f, &r, STORE_NOW);
	fixture_wait(f, &r.begun.calls, 1);
	assert_string_equal(r.begun.msg, "");
	run_print(&r, 10);
	assert_in_file(f, &r, 10);
	run_close(&r);
	assert_int_equal(fixture_files(f, "spool"), 1);
}

TEST(a_short_log_goes_into_its_row_and_its_file_away)
{
	static const size_t lengths[] = {0, 1, STORE_INLINE_MAX};

	for (uint64_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct run r;

		run_open(f, &r, i + 1);
		run_begin(f, &r, STORE_NOW);
		run_print(&r, lengths[i]);
		run_end(f, &r);
		fixture_wait(f, &r.ended.calls, 1);
		assert_string_equal(r.ended.msg, "");
		assert_int_equal(inlined(f, i + 1), (int64_t)lengths[i]);
		assert_int_equal(fixture_files(f, "spool"), 0);
		run_close(&r);
	}
}

TEST(a_log_that_no_file_has_goes_into_its_row)
{
	static const uint8_t said[] = "said";
	const uint8_t *held;
	struct stat st;
	struct run r;
	size_t n;

	run_open(f, &r, 1);
	store_log_hold(r.log, NULL, 0, false); /* nothing was said of any */
	assert_null(store_log_held(r.log, &n));
	store_log_hold(r.log, said, 4, false);
	held = store_log_held(r.log, &n);
	assert_int_equal(n, 4);
	assert_memory_equal(held, said, 4);
	assert_int_equal(store_log_length(r.log), 4);
	assert_int_equal(fstat(store_log_fd(r.log), &st), 0);
	assert_int_equal(st.st_size, 0);
	r.row.spool_bytes = 4;
	run_begin(f, &r, STORE_SOON);
	run_end(f, &r);
	fixture_wait(f, &r.ended.calls, 1);
	assert_string_equal(r.ended.msg, "");
	assert_int_equal(
	    fixture_query(f, "SELECT log = CAST('said' AS BLOB) FROM run"), 1);
	assert_int_equal(fixture_files(f, "spool"), 0);
	run_close(&r);
}

TEST(a_long_log_stays_in_its_file)
{
	for (uint64_t i = 1; i <= 2; i++) {
		struct run r;

		run_open(f, &r, i);
		/* The second is written once, when it ends. */
		run_begin(f, &r, i == 1 ? STORE_NOW : STORE_SOON);
		run_print(&r, LONG_LOG);
		run_end(f, &r);
		fixture_wait(f, &r.ended.calls, 1);
		assert_string_equal(r.ended.msg, "");
		assert_int_equal(inlined(f, i), -1);
		assert_in_file(f, &r, LONG_LOG);
		run_close(&r);
		assert_int_equal(fixture_files(f, "spool"), i);
	}
}

/* Bytes behind the end, of a worker that went on, are not the run's. */
TEST(only_so_much_of_a_log_is_taken_as_the_row_says)
{
	struct run r;

	run_open(f, &r, 1);
	run_begin(f, &r, STORE_NOW);
	run_print(&r, 100);
	r.row.spool_bytes = 70;
	run_end(f, &r);
	fixture_wait(f, &r.ended.calls, 1);
	assert_int_equal(inlined(f, 1), 70);
	run_close(&r);
}

/* Each waits for its own end only: none is written because of another. */
TEST(runs_that_are_over_soon_are_one_write_each_and_no_file)
{
	struct store_stats before, after;
	struct run *runs = xcalloc(64, sizeof(*runs));
	struct result put = {0};
	struct store_sandbox s;

	store_stats(f->store, &before);
	for (uint64_t i = 0; i < 64; i++) {
		run_open(f, &runs[i], i + 1);
		run_begin(f, &runs[i], STORE_SOON);
		run_print(&runs[i], 100);
		if (i < 32)
			continue;
		/* The older half ends, one by one, with others' writes. */
		fixture_sandbox(&s, 100 + i, "b");
		s.state = SANDBOX_IS_REMOVED;
		store_sandbox_put(f->store, &s, result_cb, &put);
		store_sandbox_clear(&s);
		run_end(f, &runs[i - 32]);
	}
	for (uint64_t i = 32; i < 64; i++)
		run_end(f, &runs[i]);
	for (uint64_t i = 0; i < 64; i++) {
		fixture_wait(f, &runs[i].ended.calls, 1);
		assert_string_equal(runs[i].ended.msg, "");
		assert_int_equal(runs[i].begun.calls, 1);
	}
	store_stats(f->store, &after);
	assert_int_equal(after.writes - before.writes, 64 + 32);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM run"), 64);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM command"), 64);
	for (uint64_t i = 0; i < 64; i++)
		run_close(&runs[i]);
	free(runs);
	/* Not even for a moment: the directories are made with the names. */
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM spec"), 0);
	{
		AUTO(auto_free) char *path = xasprintf("%s/spool", f->dir);
		struct stat st;

		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_nlink, 2); /* no directory in it */
	}
}

TEST(a_run_that_takes_longer_gets_row_and_name_by_itself)
{
	struct run r;

	run_open(f, &r, 1);
	run_begin(f, &r, STORE_SOON);
	fixture_wait(f, &r.begun.calls, 1);
	assert_int_equal(fixture_files(f, "spool"), 1);
	assert_int_equal(
	    fixture_query(f, "SELECT count(*) FROM run WHERE state = 'queued'"),
	    1);
	run_print(&r, 5);
	run_end(f, &r);
	fixture_wait(f, &r.ended.calls, 1);
	assert_int_equal(inlined(f, 1), 5);
	assert_int_equal(fixture_files(f, "spool"), 0);
	run_close(&r);
}

TEST(a_move_takes_the_row_along_that_was_held)
{
	struct result moved = {0};
	struct run r;

	fixture_put_sandbox(f, 2, "b");
	run_open(f, &r, 1);
	run_begin(f, &r, STORE_SOON);
	store_run_move(f->store, 1, 2, "b", result_cb, &moved);
	fixture_wait(f, &moved.calls, 1);
	assert_int_equal(moved.rc, 0);
	assert_int_equal(r.begun.calls, 1);
	assert_int_equal(fixture_query(f, "SELECT sandbox FROM run"), 2);
	assert_int_equal(fixture_files(f, "spool"), 1);
	run_close(&r);
}

TEST(a_begin_that_is_hurried_goes_before_what_comes_after_it)
{
	struct run r;

	run_open(f, &r, 1);
	run_begin(f, &r, STORE_SOON);
	store_run_hurry(f->store, 1);
	fixture_put_sandbox(f, 2, "b");
	assert_int_equal(r.begun.calls, 1);
	assert_int_equal(r.begun.rc, 0);
	store_run_hurry(f->store, 1); /* it has gone: nothing happens */
	store_run_hurry(f->store, 99);
	run_end(f, &r);
	fixture_wait(f, &r.ended.calls, 1);
	assert_int_equal(r.ended.rc, 0);
	run_close(&r);
}

TEST(closing_the_store_writes_what_is_held)
{
	struct run r;

	run_open(f, &r, 1);
	run_print(&r, 3);
	run_begin(f, &r, STORE_SOON);
	run_close(&r);
	fixture_reopen(f);
	assert_int_equal(r.begun.calls, 0);
	assert_int_equal(
	    fixture_query(f, "SELECT count(*) FROM run WHERE state = 'queued'"),
	    1);
	assert_int_equal(fixture_files(f, "spool"), 1);
}

TEST(an_unfinished_run_goes_on_with_the_log_it_had)
{
	struct store_log *log;
	struct run r;

	run_open(f, &r, 1);
	run_begin(f, &r, STORE_NOW);
	run_print(&r, 7);
	fixture_wait(f, &r.begun.calls, 1);
	store_log_close(r.log);
	fixture_reopen(f);
	assert_int_equal(
	    store_log_reopen(f->store, &r.row.uuid, &log, &f->err), 0);
	r.log = log;
	run_print(&r, 4);
	run_end(f, &r);
	fixture_wait(f, &r.ended.calls, 1);
	assert_int_equal(inlined(f, 1), 11);
	assert_int_equal(fixture_files(f, "spool"), 0);
	run_close(&r);
}

/* A row that cannot be written must not leave a log that looks like one. */
TEST(a_begin_that_fails_leaves_no_file)
{
	struct run r;

	run_open(f, &r, 1);
	r.row.sandbox = 99; /* there is none */
	run_begin(f, &r, STORE_NOW);
	fixture_wait(f, &r.begun.calls, 1);
	assert_int_equal(r.begun.rc, ERR_INVAL);
	run_close(&r);
	assert_int_equal(fixture_files(f, "spool"), 0);
}

TEST(a_log_that_cannot_be_named_fails_its_begin_alone)
{
	struct run good, bad, late;
	char text[UUID_TEXT_LEN + 1];
	AUTO(auto_free) char *path = NULL;

	run_open(f, &good, 1);
	run_open(f, &bad, 2);
	run_open(f, &late, 3);
	good.row.uuid.b[0] = (uint8_t)(bad.row.uuid.b[0] + 1);
	store_log_close(good.log);
	good.log = fixture_log_open(f, &good.row);
	uuid_format(&bad.row.uuid, text);
	path = xasprintf("%s/spool/%.2s", f->dir, text);
	assert_int_equal(symlink("/tmp", path), 0); /* in its directory's way */
	run_begin(f, &good, STORE_NOW);
	run_begin(f, &bad, STORE_NOW);
	fixture_wait(f, &bad.begun.calls, 1);
	assert_int_equal(good.begun.rc, 0);
	assert_int_equal(bad.begun.rc, ERR_SYS);
	assert_non_null(strstr(bad.begun.msg, text));
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM run"), 1);
	run_close(&good);
	run_close(&bad);
	run_close(&late);
}

/* A reader's reference keeps the bytes, whatever becomes of name and row. */
TEST(who_holds_a_log_reads_its_own_bytes_to_the_end)
{
	struct store_log *reader;
	char got[8] = "";
	struct run r;

	run_open(f, &r, 1);
	run_begin(f, &r, STORE_SOON);
	assert_int_equal(write(store_log_fd(r.log), "mine", 4), 4);
	r.row.spool_bytes = 4;
	reader = store_log_ref(r.log);
	run_end(f, &r);
	fixture_wait(f, &r.ended.calls, 1);
	run_close(&r);
	run_open(f, &r, 2);
	assert_int_equal(write(store_log_fd(r.log), "other", 5), 5);
	assert_int_equal(
	    fd_pread_all(store_log_fd(reader), got, 8, 0, &f->err), 4);
	assert_string_equal(got, "mine");
	store_log_close(reader);
	run_close(&r);
}

static void
closing_cb(int rc, const struct err *why, void *arg)
{
	struct run *r = arg;

	result_cb(rc, why, &r->ended);
	store_log_close(r->log);
	r->log = NULL;
}

struct closing {
	struct fixture *f;
	struct run run;
};

static void
closing_all_cb(int rc, const struct err *why, void *arg)
{
	struct closing *c = arg;

	closing_cb(rc, why, &c->run);
	fixture_close(c->f);
}

TEST(the_end_of_a_run_may_close_its_log_and_the_store)
{
	struct closing c = {.f = f};

	run_open(c.f, &c.run, 1);
	run_begin(c.f, &c.run, STORE_SOON);
	run_print(&c.run, 10);
	fixture_run_ended(&c.run.row, RUN_STATE_COMPLETED);
	store_run_end(c.f->store, &c.run.row, c.run.log, closing_all_cb, &c);
	fixture_wait(c.f, &c.run.ended.calls, 1);
	assert_null(c.f->store);
	run_close(&c.run);
}

TEST_MAIN(setup, fixture_teardown)

#include "tests/unit/store/history_fixture.h"

#include "supervisor/store/first_words.h"

/* There is a bound of the text that can be looked through; what is beyond it
 * is said, and found by all else. */

#define RUNS 40
#define FIRST_MS 5000 /* fixture_run: created_ms of a run, less its number */

static char *
numbered(const char *word, uint64_t i)
{
	return xasprintf("%s%llu", word, (unsigned long long)i);
}

static void
add(struct fixture *f, uint64_t tenant, uint64_t i)
{
	AUTO(auto_free) char *word = numbered("word", i);

	(void)add_run_saying(f, i, tenant, "echo marker", word);
}

static void
fill(struct fixture *f, uint64_t tenant, uint64_t from, uint64_t n)
{
	for (uint64_t i = from; i < from + n; i++)
		add(f, tenant, i);
}

static void
setup_runs(struct fixture *f)
{
	fixture_put_sandbox(f, 1, "a");
	put_other_tenant(f);
	fill(f, STORE_TENANT_DEFAULT, 1, RUNS);
}

static int64_t
query_index(const struct fixture *f, const char *sql)
{
	AUTO(auto_free) char *path = xasprintf("%s/history.db", f->dir);
	sqlite3_stmt *st;
	int64_t value = 0;
	sqlite3 *h;

	assert_int_equal(
	    sqlite3_open_v2(path, &h, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	(void)sqlite3_busy_timeout(h, FIXTURE_PATIENCE_S * 1000);
	if (sqlite3_prepare_v2(h, sql, -1, &st, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(h));
	if (sqlite3_step(st) == SQLITE_ROW)
		value = sqlite3_column_int64(st, 0);
	assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
	assert_int_equal(sqlite3_close(h), SQLITE_OK);
	return value;
}

/* What is counted is what there is; each run has its text, or stands below the
 * first of its tenant. */
static void
assert_counted(const struct fixture *f)
{
	assert_int_equal(
	    query_index(f,
		"SELECT count(*) FROM corpus c WHERE bytes <> (SELECT"
		" coalesce(sum(length(CAST(body AS BLOB))), 0) FROM text"
		" JOIN run USING (place) WHERE run.tenant = c.tenant)"),
	    0);
	assert_int_equal(
	    query_index(f,
		"SELECT count(*) FROM run LEFT JOIN corpus USING (tenant)"
		" WHERE state >= 2 AND (place < coalesce(first, 0)) ="
		" EXISTS (SELECT 1 FROM text WHERE text.place = run.place)"),
	    0);
}

static uint64_t
text_bytes(struct fixture *f)
{
	struct history_state state;

	history_state(f->store, &state);
	return state.text_bytes;
}

/* Nobody is told when. */
static void
wait_for_bytes(struct fixture *f, uint64_t most)
{
	for (int i = 0; i < FIXTURE_PATIENCE_S * 100; i++) {
		assert_true(event_base_loop(f->base, EVLOOP_NONBLOCK) >= 0);
		if (text_bytes(f) <= most)
			return;
		(void)usleep(10000);
	}
	fail_msg(
	    "%llu bytes of text are left", (unsigned long long)text_bytes(f));
}

static void
bound_to(struct fixture *f, uint64_t bytes)
{
	history_bound(f->store, bytes);
	wait_for_bytes(f, bytes);
}

static void
ask_marker(struct fixture *f, uint64_t tenant, int64_t since_ms,
    int64_t until_ms, struct answer *a)
{
	const struct history_query q = {.filter = {.q = "marker",
					    .since_ms = since_ms,
					    .until_ms = until_ms},
	    .total = HISTORY_TOTAL,
	    .limit = HISTORY_LIMIT_MAX};

	ask(f, tenant, &q, a);
	assert_string_equal(a->msg, "");
}

TEST(the_oldest_text_leaves_and_the_answer_says_so)
{
	const struct history_filter all = {.identifier = "a"};
	struct answer *a = xcalloc(1, sizeof(*a));
	uint64_t bytes;

	setup_runs(f);
	ask_marker(f, STORE_TENANT_DEFAULT, 0, 0, a);
	assert_int_equal(a->n, RUNS);
	assert_int_equal(a->text_since_ms, 0);
	assert_false(a->is_at_least);
	bytes = text_bytes(f);
	assert_true(bytes > RUNS * strlen("1 echo marker"));
	bound_to(f, bytes / 4);
	ask_marker(f, STORE_TENANT_DEFAULT, 0, 0, a);
	assert_in_range(a->n, RUNS / 4 - 2, RUNS / 4);
	assert_int_equal(a->text_since_ms, FIRST_MS + RUNS - (int64_t)a->n + 1);
	assert_int_equal(a->total, a->n);
	assert_true(a->is_at_least);
	assert_int_equal(count_q(f, "word40"), 1);
	assert_int_equal(count_q(f, "word1"), 0);
	/* Everything else knows of them all. */
	ask_filter(f, &all, HISTORY_LIMIT_MAX, a);
	assert_int_equal(a->n, RUNS);
	assert_int_equal(a->text_since_ms, 0);
	assert_counted(f);
	free(a);
}

TEST(who_asks_for_what_is_there_is_told_of_nothing)
{
	struct answer *a = xcalloc(1, sizeof(*a));
	int64_t since_ms;

	setup_runs(f);
	ask_marker(f, STORE_TENANT_DEFAULT, 0, 0, a);
	bound_to(f, text_bytes(f) / 2);
	ask_marker(f, STORE_TENANT_DEFAULT, 0, 0, a);
	since_ms = a->text_since_ms;
	assert_true(since_ms > FIRST_MS);
	ask_marker(f, STORE_TENANT_DEFAULT, since_ms, 0, a);
	assert_int_equal(a->text_since_ms, 0);
	assert_false(a->is_at_least);
	ask_marker(f, STORE_TENANT_DEFAULT, since_ms - 1, 0, a);
	assert_int_equal(a->text_since_ms, since_ms);
	/* Before the first run there is nothing that could be missed. */
	ask_marker(f, STORE_TENANT_DEFAULT, 0, FIRST_MS, a);
	assert_int_equal(a->text_since_ms, 0);
	ask_marker(f, STORE_TENANT_DEFAULT, 0, FIRST_MS + 2, a);
	assert_int_equal(a->text_since_ms, since_ms);
	assert_int_equal(a->n, 0);
	free(a);
}

TEST(when_the_runs_are_gone_nothing_is_missed)
{
	struct answer *a = xcalloc(1, sizeof(*a));
	struct result done = {0};

	setup_runs(f);
	ask_marker(f, STORE_TENANT_DEFAULT, 0, 0, a);
	bound_to(f, text_bytes(f) / 2);
	ask_marker(f, STORE_TENANT_DEFAULT, 0, 0, a);
	store_trim(f->store, (struct tenant_id){STORE_TENANT_DEFAULT},
	    (struct store_keep){a->n, UINT64_MAX}, result_cb, &done);
	fixture_wait(f, &done.calls, 1);
	ask_marker(f, STORE_TENANT_DEFAULT, 0, 0, a);
	assert_int_equal(a->text_since_ms, 0);
	assert_int_equal(a->total, a->n);
	assert_false(a->is_at_least);
	assert_counted(f);
	free(a);
}

TEST(who_says_much_does_not_take_from_others)
{
	struct answer *a = xcalloc(1, sizeof(*a));
	uint64_t bytes;

	setup_runs(f);
	fill(f, HISTORY_OTHER, 1000, 5);
	ask_marker(f, HISTORY_OTHER, 0, 0, a);
	bytes = text_bytes(f);
	bound_to(f, bytes / 2);
	ask_marker(f, HISTORY_OTHER, 0, 0, a);
	assert_int_equal(a->n, 5);
	assert_int_equal(a->text_since_ms, 0);
	ask_marker(f, STORE_TENANT_DEFAULT, 0, 0, a);
	assert_in_range(a->n, RUNS / 2 - 5, RUNS / 2);
	assert_true(a->text_since_ms != 0);
	/* With less than either has, both give. */
	bound_to(f, bytes / 20);
	ask_marker(f, HISTORY_OTHER, 0, 0, a);
	assert_true(a->n < 5);
	assert_counted(f);
	free(a);
}

TEST(the_bound_holds_while_runs_come_and_after_a_start)
{
	struct answer *a = xcalloc(1, sizeof(*a));
	uint64_t bound;
	int64_t since_ms;

	setup_runs(f);
	ask_marker(f, STORE_TENANT_DEFAULT, 0, 0, a);
	bound = text_bytes(f) / 2;
	history_bound(f->store, bound);
	fill(f, STORE_TENANT_DEFAULT, RUNS + 1, 3 * RUNS);
	ask_marker(f, STORE_TENANT_DEFAULT, 0, 0, a);
	wait_for_bytes(f, bound);
	ask_marker(f, STORE_TENANT_DEFAULT, 0, 0, a);
	assert_in_range(a->n, RUNS / 2 - 5, RUNS / 2);
	assert_int_equal(count_q(f, "word160"), 1);
	since_ms = a->text_since_ms;
	fixture_close(f);
	assert_counted(f);
	fixture_open(f);
	ask_marker(f, STORE_TENANT_DEFAULT, 0, 0, a);
	assert_int_equal(a->text_since_ms, since_ms);
	wait_for_bytes(f, bound);
	/* Made anew without a bound it has all again. */
	fixture_close(f);
	{
		AUTO(auto_free)
		char *path = xasprintf("%s/history.db", f->dir);

		assert_int_equal(unlink(path), 0);
	}
	fixture_open(f);
	ask_marker(f, STORE_TENANT_DEFAULT, 0, 0, a);
	assert_int_equal(a->n, 4 * RUNS);
	assert_int_equal(a->text_since_ms, 0);
	free(a);
}

/* Its text would be the next to leave. */
TEST(a_run_that_ends_late_has_no_text)
{
	const struct history_filter all = {.identifier = "a"};
	struct answer *a = xcalloc(1, sizeof(*a));
	struct store_log *log;
	struct store_run r;
	struct result done = {0};

	fixture_put_sandbox(f, 1, "a");
	fixture_run(&r, 1, 1, "a");
	log = log_with(f, &r, "lateword");
	store_run_begin(f->store, &r, log, STORE_NOW, NULL, NULL);
	fill(f, STORE_TENANT_DEFAULT, 2, RUNS);
	ask_marker(f, STORE_TENANT_DEFAULT, 0, 0, a);
	bound_to(f, text_bytes(f) / 2);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	store_run_end(f->store, &r, log, result_cb, &done);
	fixture_wait(f, &done.calls, 1);
	assert_string_equal(done.msg, "");
	assert_int_equal(count_q(f, "lateword"), 0);
	ask_filter(f, &all, HISTORY_LIMIT_MAX, a);
	assert_int_equal(a->n, RUNS + 1);
	assert_counted(f);
	store_log_close(log);
	store_run_clear(&r);
	free(a);
}

/* But for the first words of a command, which are the run's line of a list. */
TEST(text_that_left_is_gone_from_the_file)
{
	char command[FIRST_WORDS_MAX + 32];

	(void)snprintf(command, sizeof(command), "%0*d; Qmarkercommandq",
	    FIRST_WORDS_MAX, 1);
	fixture_put_sandbox(f, 1, "a");
	(void)add_run_saying(f, 1, STORE_TENANT_DEFAULT, command, "x");
	fill(f, STORE_TENANT_DEFAULT, 2, RUNS);
	assert_int_equal(count_q(f, "qmarkercommandq"), 1);
	bound_to(f, text_bytes(f) - 1);
	assert_int_equal(count_q(f, "qmarkercommandq"), 0);
	for (int i = 0; i < FIXTURE_PATIENCE_S * 100 &&
	     (fixture_file_has(f, "history.db", "arkercommandq") ||
		 fixture_file_has(f, "history.db-wal", "arkercommandq"));
	     i++)
		(void)usleep(10000);
	assert_false(fixture_file_has(f, "history.db", "arkercommandq"));
	assert_false(fixture_file_has(f, "history.db-wal", "arkercommandq"));
	assert_int_equal(count_q(f, "word41"), 1);
}

static void
sums_cb(
    int rc, const struct history_sums *sums, const struct err *why, void *arg)
{
	int64_t *since_ms = arg;

	(void)why;
	*since_ms = rc == 0 ? sums->text_since_ms : -2;
}

static int64_t
since_of_stats(struct fixture *f, const struct history_filter *filter)
{
	int64_t since_ms = -1;

	(void)history_stats(f->store, (struct tenant_id){STORE_TENANT_DEFAULT},
	    filter, HISTORY_BY_STATE, sums_cb, &since_ms);
	for (int i = 0; i < FIXTURE_PATIENCE_S * 1000 && since_ms == -1; i++) {
		assert_true(event_base_loop(f->base, EVLOOP_NONBLOCK) >= 0);
		(void)usleep(1000);
	}
	return since_ms;
}

TEST(statistics_say_it_too)
{
	const struct history_filter words = {.q = "marker"}, none = {0};
	struct answer *a = xcalloc(1, sizeof(*a));

	setup_runs(f);
	ask_marker(f, STORE_TENANT_DEFAULT, 0, 0, a);
	bound_to(f, text_bytes(f) / 2);
	ask_marker(f, STORE_TENANT_DEFAULT, 0, 0, a);
	assert_true(a->text_since_ms != 0);
	assert_int_equal(since_of_stats(f, &words), a->text_since_ms);
	assert_int_equal(since_of_stats(f, &none), 0);
	free(a);
}

TEST_MAIN(fixture_setup, fixture_teardown)

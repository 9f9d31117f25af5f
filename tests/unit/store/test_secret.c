#include "tests/unit/store/fixture.h"

/*
 * A run's specification has the values of its environment variables.  After
 * the end they must be in no file of ours.
 */

#define SECRET "hunter2-SECRET-"

static bool
is_anywhere(const struct fixture *f, const char *text)
{
	return fixture_file_has(f, "mcp-sandboxd.db", text) ||
	    fixture_file_has(f, "mcp-sandboxd.db-wal", text) ||
	    fixture_file_has(f, "mcp-sandboxd.db-journal", text);
}

static void
insert_secret(struct fixture *f, uint64_t id, size_t repeat)
{
	struct store_run r;

	fixture_run(&r, id, 1, "a");
	free(r.spec);
	r.spec_len = repeat * (sizeof(SECRET) - 1);
	r.spec = xcalloc(1, r.spec_len + 1);
	for (size_t i = 0; i < repeat; i++)
		memcpy(r.spec + i * (sizeof(SECRET) - 1), SECRET,
		    sizeof(SECRET) - 1);
	store_run_begin(f->store, &r, NULL, STORE_NOW, NULL, NULL);
	store_run_clear(&r);
}

static struct result ends;
static unsigned int nends;

static void
end_secret(struct fixture *f, uint64_t id, size_t log_len)
{
	struct store_log *log;
	struct store_run r;

	fixture_run(&r, id, 1, "a");
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	log = fixture_log_open(f, &r);
	fixture_log_fill(log, &r, 'L', log_len);
	store_run_end(f->store, &r, log, result_cb, &ends);
	nends++;
	store_log_close(log);
	store_run_clear(&r);
}

/* The writer truncates the WAL once a minute; here another connection does. */
static void
wait_for_checkpoint(struct fixture *f)
{
	sqlite3 *h = fixture_sqlite(f);

	fixture_put_sandbox(f, 1, "a"); /* after all that was queued */
	fixture_wait(f, &ends.calls, nends);
	/* A connection that has read nothing checkpoints nothing. */
	assert_int_equal(
	    sqlite3_exec(h, "SELECT count(*) FROM run", NULL, NULL, NULL),
	    SQLITE_OK);
	assert_int_equal(sqlite3_wal_checkpoint_v2(
			     h, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL),
	    SQLITE_OK);
	assert_int_equal(sqlite3_close(h), SQLITE_OK);
}

TEST(the_secret_is_there_while_the_run_is_unfinished)
{
	fixture_put_sandbox(f, 1, "a");
	insert_secret(f, 1, 1);
	wait_for_checkpoint(f);
	/* So the search finds what is there. */
	assert_true(is_anywhere(f, SECRET));
}

TEST(the_secret_is_gone_after_end_and_checkpoint)
{
	fixture_put_sandbox(f, 1, "a");
	insert_secret(f, 1, 3);
	insert_secret(f, 2, 2000); /* on pages of its own */
	end_secret(f, 1, 0);
	end_secret(f, 2, 16384);
	wait_for_checkpoint(f); /* the store is still open */
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM spec"), 0);
	assert_false(is_anywhere(f, SECRET));
}

/* Pages that are split, merged and compacted leave no copies behind. */
TEST(no_copy_is_left_after_many_runs_in_any_order)
{
	uint64_t live[64], next = 1;
	size_t nlive = 0;
	uint32_t seed = 1;

	fixture_put_sandbox(f, 1, "a");
	for (int step = 0; step < 4000; step++) {
		size_t pick;

		seed = seed * 1664525 + 1013904223;
		if (nlive == 0 || (nlive < 64 && (seed >> 31) != 0)) {
			insert_secret(f, next, 1 + (seed >> 12) % 150);
			live[nlive++] = next++;
			continue;
		}
		pick = (seed >> 8) % nlive;
		end_secret(f, live[pick], (seed >> 16) % 6000);
		live[pick] = live[--nlive];
	}
	while (nlive > 0)
		end_secret(f, live[--nlive], 100);
	wait_for_checkpoint(f);
	assert_int_equal(fixture_query(f,
			     "SELECT count(*) FROM run WHERE state IN"
			     " ('queued', 'running')"),
	    0);
	assert_true(fixture_query(f, "SELECT count(*) FROM run") > 1000);
	assert_false(is_anywhere(f, SECRET));
}

/* A run that ends before its beginning was due never had a spec on disk, not
 * even for a moment. */
TEST(the_secret_of_a_short_run_is_never_written)
{
	struct result result = {0};
	struct store_run r;

	fixture_put_sandbox(f, 1, "a");
	fixture_run(&r, 1, 1, "a");
	free(r.spec);
	r.spec = (uint8_t *)xstrdup(SECRET);
	r.spec_len = sizeof(SECRET);
	store_run_begin(f->store, &r, NULL, STORE_SOON, NULL, NULL);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	store_run_end(f->store, &r, NULL, result_cb, &result);
	fixture_wait(f, &result.calls, 1);
	assert_int_equal(result.rc, 0);
	assert_false(is_anywhere(f, SECRET));
	store_run_clear(&r);
}

TEST(a_refused_insert_leaves_no_secret)
{
	insert_secret(f, 1, 3); /* there is no sandbox 1 yet */
	wait_for_checkpoint(f);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM run"), 0);
	assert_false(is_anywhere(f, SECRET));
}

TEST_MAIN(fixture_setup, fixture_teardown)

#include "tests/unit/store/fixture.h"

#include "supervisor/store/db.h"
#include "supervisor/store/vacuum.h"

static void
fill(struct fixture *f, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i <= to; i++) {
		struct store_log *log;
		struct store_run r;

		fixture_run(&r, i, 1, "a");
		log = fixture_log_open(f, &r);
		fixture_log_fill(log, &r, 'x', 12000);
		store_run_begin(f->store, &r, log, STORE_SOON, NULL, NULL);
		fixture_run_ended(&r, RUN_STATE_COMPLETED);
		store_run_end(f->store, &r, log, NULL, NULL);
		store_log_close(log);
		store_run_clear(&r);
	}
}

static void
trim(struct fixture *f, uint64_t keep)
{
	struct result result = {0};

	store_trim(f->store, (struct tenant_id){STORE_TENANT_DEFAULT},
	    (struct store_keep){keep, UINT64_MAX}, result_cb, &result);
	fixture_wait(f, &result.calls, 1);
	assert_string_equal(result.msg, "");
}

/* Pages of the file, as who opens it now sees them. */
static int64_t
pages(const struct fixture *f)
{
	return fixture_query(f, "PRAGMA page_count");
}

TEST_WITH(fixture_setup, fixture_teardown,
    a_file_becomes_smaller_when_runs_were_forgotten)
{
	int64_t full;

	assert_int_equal(fixture_query(f, "PRAGMA auto_vacuum"), 2);
	fixture_put_sandbox(f, 1, "a");
	fill(f, 1, 1000);
	trim(f, 1000);
	full = pages(f);
	assert_true(full > 3000);
	trim(f, 10);
	for (int i = 0; pages(f) > full / 2; i++) {
		if (i == FIXTURE_PATIENCE_S * 100)
			fail_msg("%lld pages of %lld are left",
			    (long long)pages(f), (long long)full);
		(void)usleep(10000);
	}
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM run"), 10);
	assert_int_equal(fixture_query(f,
			     "SELECT count(*) FROM pragma_integrity_check"
			     " WHERE integrity_check = 'ok'"),
	    1);
}

/* Also when a checkpoint has cut it off: the disk shows it by then, and who
 * asked for room asked before. */
TEST_WITH(fixture_setup, fixture_teardown,
    what_was_given_back_counts_before_and_behind_a_checkpoint)
{
	uint64_t before, gaps, cut;
	struct db *db;

	fixture_close(f);
	assert_int_equal(db_open(f->dir, DB_WRITER, &db, &f->err), 0);
	assert_int_equal(db_use_wal(db, &f->err), 0);
	assert_int_equal(db_exec_text(db,
			     "CREATE TABLE t (b);"
			     "INSERT INTO t VALUES (zeroblob(1000000))",
			     &f->err),
	    0);
	assert_int_equal(db_checkpoint(db, DB_WAL_TRUNCATE, &f->err), 0);
	before = vacuum_file_bytes(db);
	assert_true(before > 1000000);
	assert_int_equal(vacuum_given_back(db, before, &gaps, &f->err), 0);
	assert_int_equal(gaps, 0);
	assert_int_equal(db_exec_text(db, "DELETE FROM t", &f->err), 0);
	assert_int_equal(vacuum_given_back(db, before, &gaps, &f->err), 0);
	assert_in_range(gaps, 990000, 1010000);
	assert_int_equal(
	    db_exec_text(db, "PRAGMA incremental_vacuum", &f->err), 0);
	assert_int_equal(db_checkpoint(db, DB_WAL_TRUNCATE, &f->err), 0);
	assert_true(vacuum_file_bytes(db) < before - 990000);
	assert_int_equal(vacuum_given_back(db, before, &cut, &f->err), 0);
	assert_in_range(cut, gaps, gaps + 20000);
	db_close(db);
}

/* Rules alone. */
TEST(nothing_is_looked_at_before_a_pause_or_twice)
{
	struct vacuum v = {0};

	assert_true(vacuum_wait_ms(&v, 5) == VACUUM_NEVER);
	vacuum_on_write(&v, 5);
	assert_int_equal(vacuum_wait_ms(&v, 5), VACUUM_IDLE_MS);
	assert_int_equal(vacuum_wait_ms(&v, 5 + VACUUM_IDLE_MS), 0);
	vacuum_on_write(&v, 100);
	assert_int_equal(vacuum_wait_ms(&v, 100), VACUUM_IDLE_MS);
}

TEST_MAIN(NULL, NULL)

#include "tests/unit/store/files_ground.h"

#include "common/clock.h"
#include "supervisor/store/writer.h"

static struct result
trim_to(struct fixture *f, uint64_t tenant, uint64_t runs, uint64_t bytes)
{
	struct result result = {0};

	store_trim(f->store, (struct tenant_id){tenant},
	    (struct store_keep){runs, bytes}, result_cb, &result);
	fixture_wait(f, &result.calls, 1);
	return result;
}

static struct result
trim(struct fixture *f, uint64_t tenant, uint64_t keep)
{
	return trim_to(f, tenant, keep, UINT64_MAX);
}

TEST(the_oldest_ended_runs_go_with_their_logs)
{
	struct uuid uuids[10];

	for (uint64_t i = 0; i < 10; i++)
		uuids[i] = run_with(f, i + 1, NO_DIGESTS);
	assert_int_equal(trim(f, 1, 7).rc, 0);
	for (size_t i = 0; i < 10; i++)
		assert_int_equal(has_log(f, &uuids[i]), i >= 3);
	assert_int_equal(fixture_query(f, "SELECT min(id) FROM run"), 4);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM command"), 7);
	assert_counts_agree(f);
	assert_int_equal(trim(f, 1, 7).rc, 0);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM run"), 7);
	assert_int_equal(fixture_files(f, "spool"), 7);
}

TEST(unfinished_runs_never_go)
{
	struct store_run r;

	fixture_run(&r, 1, 1, "a"); /* the oldest, and still queued */
	fixture_insert(f, &r);
	store_run_clear(&r);
	(void)run_with(f, 2, NO_DIGESTS);
	assert_int_equal(trim(f, 1, 0).rc, 0);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM run"), 1);
	assert_int_equal(fixture_query(f, "SELECT id FROM run"), 1);
	assert_counts_agree(f);
}

TEST(a_blob_goes_with_its_last_reference_only)
{
	(void)run_with(f, 1, DIGESTS(10, 11, 11)); /* twice in one run */
	(void)run_with(f, 2, DIGESTS(10, 12));
	(void)run_with(f, 3, DIGESTS(12));
	assert_counts_agree(f);
	for (uint64_t keep = 3; keep-- > 0;) {
		(void)trim(f, 1, keep);
		assert_false(has_blob(f, 1, 11));
		assert_int_equal(has_blob(f, 1, 10), keep >= 2);
		assert_int_equal(has_blob(f, 1, 12), keep >= 1);
		assert_counts_agree(f);
	}
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM blob"), 0);
	assert_int_equal(fixture_files(f, "artifacts"), 0);
}

TEST(another_tenant_is_left_alone)
{
	struct result result = {0};
	struct store_sandbox s;
	struct uuid other;

	fixture_sandbox(&s, 2, "a");
	s.tenant = 2;
	store_sandbox_put(f->store, &s, result_cb, &result);
	store_sandbox_clear(&s);
	other = run_of(f, 2, 1, 2, DIGESTS(10));
	(void)run_with(f, 2, DIGESTS(10)); /* the same bytes, its own blob */
	assert_int_equal(trim(f, 1, 0).rc, 0);
	assert_true(has_log(f, &other));
	assert_true(has_blob(f, 2, 10));
	assert_false(has_blob(f, 1, 10));
	assert_int_equal(fixture_query(f, "SELECT tenant FROM run"), 2);
	assert_int_equal(fixture_query(f, "SELECT tenant FROM blob"), 2);
	assert_counts_agree(f);
}

TEST(an_unknown_tenant_is_not_found)
{
	struct result result = trim(f, 999, 0);

	assert_int_equal(result.rc, ERR_NOTFOUND);
	assert_string_equal(result.msg, "tenant 999 is not known");
}

TEST(a_blob_that_an_ending_run_brought_again_stays)
{
	struct result trimmed = {0}, ended = {0};
	struct store_log *log;
	struct store_run r;

	(void)run_with(f, 1, DIGESTS(10, 11));
	fixture_run(&r, 2, 1, "a");
	fixture_insert(f, &r);
	log = fixture_log_open(f, &r);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	fixture_run_artifact(&r, "again", 10);
	bring(log, 0, 1, 10);
	/* The file is there and the row on its way when the trim comes. */
	store_trim(f->store, (struct tenant_id){1}, STORE_KEEP_NONE, result_cb,
	    &trimmed);
	store_run_end(f->store, &r, log, result_cb, &ended);
	fixture_wait(f, &ended.calls, 1);
	assert_int_equal(ended.rc, 0);
	assert_int_equal(trimmed.calls, 1);
	assert_true(has_blob(f, 1, 10));
	assert_false(has_blob(f, 1, 11));
	assert_int_equal(fixture_query(f, "SELECT refs FROM blob"), 1);
	assert_counts_agree(f);
	store_log_close(log);
	store_run_clear(&r);
	/* Its row counts it: nothing else holds it. */
	(void)trim(f, 1, 0);
	assert_false(has_blob(f, 1, 10));
}

TEST(a_blob_of_an_unfinished_run_stays_until_its_log_is_closed)
{
	struct store_log *log;
	struct store_run r;

	(void)run_with(f, 1, DIGESTS(10));
	fixture_run(&r, 2, 1, "a");
	fixture_insert(f, &r);
	log = fixture_log_open(f, &r);
	bring(log, 0, 1, 10);
	bring(log, 1, 1, 12);
	(void)trim(f, 1, 0);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM blob"), 0);
	assert_true(has_blob(f, 1, 10)); /* only the run wants it */
	assert_true(has_blob(f, 1, 12));
	assert_true(store_blob_begin(log, 2, &f->err) >= 0);
	store_log_close(log); /* it has no end: what it brought goes */
	fixture_wait_files(f, "artifacts", 0);
	store_run_clear(&r);
}

TEST(a_blob_that_a_run_brought_in_vain_goes)
{
	struct store_log *log;
	struct store_run r;

	fixture_run(&r, 1, 1, "a");
	fixture_insert(f, &r);
	log = fixture_log_open(f, &r);
	bring(log, 0, 1, 10); /* the same path once more, with other bytes */
	bring(log, 1, 1, 11);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	fixture_run_artifact(&r, "x", 11);
	fixture_end_with(f, &r, log);
	assert_true(has_blob(f, 1, 10));
	store_log_close(log);
	fixture_wait_files(f, "artifacts", 1);
	assert_true(has_blob(f, 1, 11));
	store_run_clear(&r);
}

/* Else its insert would refer to a sandbox that is gone. */
TEST(a_run_whose_row_is_held_keeps_its_sandbox)
{
	struct result begun = {0}, ended = {0}, trimmed = {0}, put = {0};
	struct store_sandbox s;
	struct store_run r;

	fixture_sandbox(&s, 2, "b");
	store_sandbox_put(f->store, &s, result_cb, &put);
	fixture_run(&r, 1, 2, "b");
	store_run_begin(f->store, &r, NULL, STORE_SOON, result_cb, &begun);
	s.state = SANDBOX_IS_LOST;
	s.ended_ms = 1;
	store_sandbox_put(f->store, &s, result_cb, &put);
	store_sandbox_clear(&s);
	store_trim(f->store, (struct tenant_id){1}, STORE_KEEP_NONE, result_cb,
	    &trimmed);
	fixture_wait(f, &trimmed.calls, 1);
	fixture_run_ended(&r, RUN_STATE_FAILED);
	store_run_end(f->store, &r, NULL, result_cb, &ended);
	fixture_wait(f, &ended.calls, 1);
	assert_int_equal(begun.rc, 0);
	assert_int_equal(ended.rc, 0);
	store_run_clear(&r);
}

TEST(dead_sandboxes_go_with_the_last_of_their_time)
{
	static const struct {
		uint64_t id;
		enum sandbox_word state;
		int64_t ended_ms;
	} rows[] = {{2, SANDBOX_IS_REMOVED, 5001}, {3, SANDBOX_IS_LOST, 5002},
	    {4, SANDBOX_IS_REMOVED, 9000}, {5, SANDBOX_IS_READY, 0}};
	struct result result = {0};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct store_sandbox s;
		char name[24];

		(void)snprintf(name, sizeof(name), "s%zu", i);
		fixture_sandbox(&s, rows[i].id, name);
		s.state = rows[i].state;
		s.ended_ms = rows[i].ended_ms;
		store_sandbox_put(f->store, &s, result_cb, &result);
		store_sandbox_clear(&s);
	}
	for (uint64_t i = 10; i < 13; i++) /* created_ms 5010, 5011, 5012 */
		(void)run_with(f, i, NO_DIGESTS);
	(void)trim(f, 1, 1);
	assert_int_equal(fixture_query(f,
			     "SELECT group_concat(id, '') FROM"
			     " (SELECT id FROM sandbox ORDER BY id)"),
	    145);
}

/* Trims come five times a second: each row would be written twice. */
TEST(what_is_held_stays_held_beside_a_trim)
{
	for (uint64_t id = 1; id <= 3; id++) {
		uint64_t from = clock_mono_ms();
		struct result begun = {0};
		struct store_run r;

		fixture_run(&r, id, 1, "a");
		store_run_begin(
		    f->store, &r, NULL, STORE_SOON, result_cb, &begun);
		(void)trim(f, 1, 0);
		store_run_clear(&r);
		assert_true(begun.calls == 0 ||
		    clock_mono_ms() - from >= WRITER_SOON_MS);
		fixture_wait(f, &begun.calls, 1);
	}
}

/* More than goes in one step. */
TEST(a_trim_goes_on_until_there_is_no_more_to_do)
{
	struct result result = {0};

	for (uint64_t i = 1; i <= 1010; i++) {
		struct store_run r;

		fixture_run(&r, i, 1, "a");
		store_run_begin(f->store, &r, NULL, STORE_NOW, NULL, NULL);
		fixture_run_ended(&r, RUN_STATE_COMPLETED);
		store_run_end(f->store, &r, NULL, result_cb, &result);
		store_run_clear(&r);
	}
	fixture_wait(f, &result.calls, 1010);
	assert_int_equal(trim(f, 1, 5).rc, 0);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM run"), 5);
	assert_counts_agree(f);
}

/* ---- by what rows take */

static void
run_saying(struct fixture *f, uint64_t tenant, uint64_t id, size_t log_bytes,
    size_t digest_bytes)
{
	struct store_log *log;
	struct store_run r;

	fixture_run(&r, id, tenant, "a");
	r.tenant = tenant;
	log = fixture_log_open(f, &r);
	fixture_insert(f, &r);
	fixture_log_fill(log, &r, 'L', log_bytes);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	fixture_run_artifact(&r, "a/path", 7);
	r.digest = xcalloc(1, digest_bytes + 1);
	r.digest_len = digest_bytes;
	bring(log, 0, tenant, 7);
	fixture_end_with(f, &r, log);
	store_log_close(log);
	store_run_clear(&r);
}

static uint64_t
row_bytes(const struct fixture *f, uint64_t first)
{
	AUTO(auto_free)
	char *sql = xasprintf("SELECT coalesce(sum(row_bytes), 0) FROM run"
			      " WHERE id >= %llu",
	    (unsigned long long)first);

	return (uint64_t)fixture_query(f, sql);
}

TEST(rows_beyond_their_bytes_go_the_oldest_first)
{
	for (uint64_t i = 1; i <= 9; i++)
		run_saying(f, 1, i, i * 1000, 0);
	assert_true(row_bytes(f, 9) > 9000);
	assert_int_equal(trim_to(f, 1, UINT64_MAX, row_bytes(f, 1)).rc, 0);
	assert_int_equal(fixture_query(f, "SELECT min(id) FROM run"), 1);
	/* A byte too many. */
	assert_int_equal(trim_to(f, 1, UINT64_MAX, row_bytes(f, 4) - 1).rc, 0);
	assert_int_equal(fixture_query(f, "SELECT min(id) FROM run"), 5);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM run"), 5);
	assert_counts_agree(f);
	/* Of two bounds the narrower one holds. */
	assert_int_equal(trim_to(f, 1, 4, row_bytes(f, 8)).rc, 0);
	assert_int_equal(fixture_query(f, "SELECT min(id) FROM run"), 8);
	assert_int_equal(trim_to(f, 1, 1, row_bytes(f, 8)).rc, 0);
	assert_int_equal(fixture_query(f, "SELECT min(id) FROM run"), 9);
	assert_counts_agree(f);
}

TEST(the_newest_run_stays_when_it_is_too_large_alone)
{
	run_saying(f, 1, 1, 100, 0);
	run_saying(f, 1, 2, 100, STORE_DIGEST_MAX);
	assert_true(row_bytes(f, 2) > STORE_DIGEST_MAX);
	assert_int_equal(trim_to(f, 1, UINT64_MAX, 1u << 20).rc, 0);
	assert_int_equal(
	    fixture_query(f, "SELECT group_concat(id) FROM run"), 2);
	/* It goes with the next. */
	run_saying(f, 1, 3, 100, 0);
	assert_int_equal(trim_to(f, 1, UINT64_MAX, 1u << 20).rc, 0);
	assert_int_equal(
	    fixture_query(f, "SELECT group_concat(id) FROM run"), 3);
	assert_counts_agree(f);
}

TEST(unfinished_runs_take_no_bytes_and_stay)
{
	struct store_run r;

	fixture_run(&r, 1, 1, "a");
	fixture_insert(f, &r);
	store_run_clear(&r);
	assert_int_equal(row_bytes(f, 1), 0);
	run_saying(f, 1, 2, 5000, 0);
	run_saying(f, 1, 3, 5000, 0);
	assert_int_equal(trim_to(f, 1, UINT64_MAX, 0).rc, 0);
	assert_int_equal(fixture_query(f, "SELECT sum(id) FROM run"), 1 + 3);
	assert_counts_agree(f);
}

TEST(bytes_of_another_tenant_do_not_count)
{
	struct result result = {0};
	struct store_sandbox s;

	fixture_sandbox(&s, 2, "a");
	s.tenant = 2;
	store_sandbox_put(f->store, &s, result_cb, &result);
	store_sandbox_clear(&s);
	for (uint64_t i = 1; i <= 4; i++)
		run_saying(f, 1 + i % 2, i, 10000, 0);
	assert_int_equal(
	    trim_to(f, 1, UINT64_MAX, row_bytes(f, 1) * 3 / 4).rc, 0);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM run"), 4);
	assert_int_equal(trim_to(f, 1, UINT64_MAX, 0).rc, 0);
	assert_int_equal(
	    fixture_query(f, "SELECT count(*) FROM run WHERE tenant = 1"), 1);
	assert_int_equal(
	    fixture_query(f, "SELECT count(*) FROM run WHERE tenant = 2"), 2);
	assert_counts_agree(f);
}

static int64_t
file_bytes(const struct fixture *f)
{
	return fixture_query(f,
	    "SELECT sum(pgsize) FROM dbstat WHERE name IN (SELECT name"
	    " FROM sqlite_schema WHERE tbl_name IN"
	    " ('run', 'command', 'artifact', 'kept'))");
}

/* About: an index's page is full or not. */
static void
assert_counted(struct fixture *f, uint64_t first, uint64_t n, size_t log_bytes)
{
	int64_t before = file_bytes(f), grown;

	for (uint64_t i = first; i < first + n; i++)
		run_saying(f, 1, i, log_bytes, 0);
	grown = file_bytes(f) - before;
	assert_in_range(row_bytes(f, first), grown * 3 / 4, grown * 5 / 4);
}

TEST(what_is_counted_is_what_the_file_grows_by)
{
	assert_counted(f, 1, 1000, 50);
	assert_counted(f, 1001, 300, 5000);
	assert_counted(f, 1301, 300, STORE_INLINE_MAX);
}

/* A step has a bound of bytes, too. */
TEST(large_rows_go_in_several_steps)
{
	struct store_stats before, after;

	for (uint64_t i = 1; i <= 12; i++)
		run_saying(f, 1, i, 100, STORE_DIGEST_MAX);
	store_stats(f->store, &before);
	assert_int_equal(trim_to(f, 1, UINT64_MAX, 1u << 20).rc, 0);
	store_stats(f->store, &after);
	assert_true(after.commits - before.commits >= 3);
	assert_int_equal(fixture_query(f, "SELECT id FROM run"), 12);
	assert_counts_agree(f);
}

/* Whatever happened to the sum: what is there does not go for it. */
TEST(a_sum_below_nothing_has_nothing_go)
{
	run_saying(f, 1, 1, 100, 0);
	run_saying(f, 1, 2, 100, 0);
	fixture_exec(f, "UPDATE tenant SET row_bytes = -5");
	assert_int_equal(trim_to(f, 1, UINT64_MAX, 1u << 20).rc, 0);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM run"), 2);
	assert_int_equal(trim(f, 1, 0).rc, 0);
	assert_int_equal(fixture_query(f,
			     "SELECT row_bytes FROM tenant"
			     " WHERE id = 1"),
	    0);
}

/* As a run of before migration 20. */
TEST(a_row_without_its_size_is_counted_when_it_goes)
{
	run_saying(f, 1, 1, 3000, 0);
	run_saying(f, 1, 2, 3000, 10);
	run_saying(f, 1, 3, 3000, 0);
	fixture_exec(f, "UPDATE run SET row_bytes = NULL WHERE id < 3");
	assert_int_equal(trim_to(f, 1, UINT64_MAX, row_bytes(f, 3)).rc, 0);
	assert_int_equal(fixture_query(f, "SELECT id FROM run"), 3);
	assert_counts_agree(f);
}

TEST_MAIN(fixture_setup_two, fixture_teardown)

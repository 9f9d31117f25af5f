#include "tests/unit/store/files_ground.h"

/* What ended runs give up, and those that somebody deletes. */

struct evicted {
	unsigned int calls;
	int rc;
	struct store_evicted what;
};

static void
evicted_cb(
    int rc, const struct store_evicted *what, const struct err *why, void *arg)
{
	struct evicted *r = arg;

	assert_int_equal(rc == 0, why == NULL);
	r->calls++;
	r->rc = rc;
	r->what = *what;
}

static struct store_evicted
evict(struct fixture *f, struct store_evict_wish wish)
{
	struct evicted r = {0};

	store_evict(f->store, &wish, evicted_cb, &r);
	fixture_wait(f, &r.calls, 1);
	assert_int_equal(r.rc, 0);
	assert_counts_agree(f);
	return r.what;
}

static struct result
forget(struct fixture *f, uint64_t tenant, const struct uuid *run)
{
	struct result result = {0};

	store_run_delete(
	    f->store, (struct tenant_id){tenant}, run, result_cb, &result);
	fixture_wait(f, &result.calls, 1);
	assert_counts_agree(f);
	return result;
}

#define LOG_BYTES (STORE_INLINE_MAX + 1)

static int
setup(void **state)
{
	struct result result = {0};
	struct store_sandbox s;

	(void)fixture_setup_two(state);
	fixture_sandbox(&s, 2, "a");
	s.tenant = 2;
	fixture_put_row(*state, &s, &result);
	return 0;
}

static void
got_cb(int rc, const struct store_run *row, const struct err *why, void *arg)
{
	int64_t *evicted_ms = arg;

	(void)why;
	assert_int_equal(rc, 0);
	*evicted_ms = row->evicted_ms;
}

static int64_t
evicted_ms(struct fixture *f, const struct uuid *run)
{
	int64_t ms = -1;

	store_run_get(f->store, (struct tenant_id){STORE_TENANT_DEFAULT}, run,
	    0, got_cb, &ms);
	for (int i = 0; i < FIXTURE_PATIENCE_S * 1000 && ms == -1; i++) {
		(void)event_base_loop(f->base, EVLOOP_NONBLOCK);
		(void)usleep(1000);
	}
	return ms;
}

TEST(nothing_goes_within_the_quota)
{
	struct uuid run = run_with(f, 1, DIGESTS(10));
	struct store_evicted got = evict(f,
	    (struct store_evict_wish){
		.tenant = {LOG_BYTES + 100, 2}, .all = {LOG_BYTES + 100, 2}});

	assert_int_equal(got.runs, 0);
	assert_int_equal(got.usage.log_files, 1);
	assert_int_equal(got.usage.log_bytes, LOG_BYTES);
	assert_int_equal(got.usage.blob_files, 1);
	assert_int_equal(got.usage.blob_bytes, 100);
	assert_int_equal(evict(f, (struct store_evict_wish){0}).runs, 0);
	assert_true(has_log(f, &run));
	assert_int_equal(evicted_ms(f, &run), 0);
}

TEST(the_oldest_of_a_tenant_over_its_quota_give_up_their_files)
{
	struct uuid other = run_of(f, 2, 1, 2, DIGESTS(10));
	struct result trimmed = {0};
	struct store_evicted got;
	struct uuid runs[6];

	for (uint64_t i = 0; i < 6; i++)
		runs[i] = run_with(f, i + 2, DIGESTS(10, (uint8_t)(20 + i)));
	got = evict(f,
	    (struct store_evict_wish){
		.tenant = {4 * (LOG_BYTES + 100) + 100, 0}});
	assert_int_equal(got.runs, 2);
	assert_int_equal(got.files, 4); /* 10 is wanted by the others */
	assert_int_equal(got.bytes, 2 * (LOG_BYTES + 100));
	assert_int_equal(got.usage.evicted, 2);
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(has_log(f, &runs[i]), i >= 2);
		assert_int_equal(evicted_ms(f, &runs[i]) == 0, i >= 2);
		assert_int_equal(has_blob(f, 1, (uint8_t)(20 + i)), i >= 2);
	}
	assert_true(has_blob(f, 1, 10));
	assert_true(has_log(f, &other));
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM run"), 7);
	/* By number of files; and what was evicted can be trimmed. */
	got = evict(f, (struct store_evict_wish){.tenant = {0, 3}});
	assert_int_equal(got.usage.log_files + got.usage.blob_files, 5);
	store_trim(f->store, (struct tenant_id){1}, STORE_KEEP_NONE, result_cb,
	    &trimmed);
	fixture_wait(f, &trimmed.calls, 1);
	assert_int_equal(trimmed.rc, 0);
	assert_counts_agree(f);
	assert_int_equal(fixture_files(f, "spool"), 1);
	fixture_reopen(f);
	fixture_wait_files(f, "artifacts", 1);
}

TEST(a_tenant_over_its_own_quota_gives_what_the_quota_is_of)
{
	struct uuid plain = run_with(f, 2, NO_DIGESTS);
	struct uuid first = run_with(f, 3, DIGESTS(20));
	struct uuid second = run_with(f, 4, DIGESTS(21));
	struct uuid other = run_of(f, 2, 1, 2, DIGESTS(22));

	/* No other way to have a mebibyte without writing one. */
	fixture_exec(f,
	    "UPDATE artifact SET size = 1048576;"
	    "UPDATE blob SET size = 1048576;"
	    "UPDATE tenant SET blob_bytes = 1048576 * blob_files");
	fixture_exec(f, "INSERT INTO quota VALUES (1, 'artifact_mb', 1)");
	assert_int_equal(evict(f, (struct store_evict_wish){0}).runs, 1);
	assert_true(has_log(f, &plain));
	assert_false(has_blob(f, 1, 20));
	assert_int_not_equal(evicted_ms(f, &first), 0);
	assert_true(has_blob(f, 1, 21));
	assert_int_equal(evicted_ms(f, &second), 0);
	assert_true(has_log(f, &other));
	assert_int_equal(evict(f, (struct store_evict_wish){0}).runs, 0);
}

TEST(over_the_quota_of_all_the_tenant_with_most_gives)
{
	struct uuid other = run_of(f, 2, 1, 2, NO_DIGESTS);
	struct uuid mine[2];

	mine[0] = run_with(f, 2, NO_DIGESTS);
	mine[1] = run_with(f, 3, NO_DIGESTS);
	assert_int_equal(
	    evict(f, (struct store_evict_wish){.all = {0, 2}}).runs, 1);
	assert_false(has_log(f, &mine[0]));
	assert_true(has_log(f, &mine[1]));
	assert_true(has_log(f, &other));
}

/* Counters and rows that disagree, however that came: others still give. */
TEST(a_tenant_whose_runs_cannot_be_evicted_is_passed_over)
{
	static const struct store_evict_wish wishes[] = {{.tenant = {0, 1}},
	    {.all = {0, 1}}, {.free_logs = {1, 0}}, {.tenant = {0, 0}}};

	fixture_exec(f,
	    "UPDATE tenant SET log_files = 9, log_bytes = 9 << 20"
	    " WHERE id = 1;"
	    "INSERT INTO quota VALUES (1, 'spool_mb', 1),"
	    " (2, 'spool_mb', 1)");
	for (size_t i = 0; i < ARRAY_LEN(wishes); i++) {
		struct evicted r = {0};

		(void)run_of(f, 2, 2 * i + 1, 2, NO_DIGESTS);
		(void)run_of(f, 2, 2 * i + 2, 2, NO_DIGESTS);
		if (i == ARRAY_LEN(wishes) - 1)
			fixture_exec(f,
			    "UPDATE tenant SET log_bytes = (1 << 20) + 1"
			    " WHERE id = 2");
		store_evict(f->store, &wishes[i], evicted_cb, &r);
		fixture_wait(f, &r.calls, 1);
		assert_int_equal(r.rc, 0);
		assert_true(r.what.runs > 0);
	}
}

TEST(as_much_is_freed_as_is_wished_and_what_was_cut_goes_first)
{
	struct store_evicted got;
	struct uuid runs[3];

	for (uint64_t i = 0; i < 3; i++)
		runs[i] = run_with(f, i + 1, NO_DIGESTS);
	fixture_exec(f, "UPDATE kept SET is_cut = 1 WHERE run = 3");
	got = evict(f, (struct store_evict_wish){.free = {1, 0}});
	assert_int_equal(got.runs, 1);
	assert_false(has_log(f, &runs[2]));
	got = evict(f, (struct store_evict_wish){.free = {LOG_BYTES + 1, 0}});
	assert_int_equal(got.runs, 2);
	/* There is no more. */
	got = evict(f, (struct store_evict_wish){.free = {1, 1}});
	assert_int_equal(got.runs, 0);
	assert_int_equal(got.usage.evicted, 3);
	assert_int_equal(fixture_files(f, "spool"), 0);
	/* Nor does the look for leftovers believe that files are missing. */
	fixture_reopen(f);
	assert_true(evicted_ms(f, &runs[0]) > 0);
}

/* Logs and artifacts are on two disks, and one is full. */
TEST(only_what_frees_the_disk_that_is_short_goes)
{
	struct uuid plain = run_with(f, 2, NO_DIGESTS);
	struct uuid first = run_with(f, 3, DIGESTS(20));
	struct uuid second = run_with(f, 4, DIGESTS(21));
	struct store_evicted got;

	got = evict(f, (struct store_evict_wish){.free_blobs = {1, 0}});
	assert_int_equal(got.runs, 1);
	assert_int_equal(got.blobs.bytes, 100);
	assert_true(has_log(f, &plain));
	assert_false(has_blob(f, 1, 20));
	assert_true(evicted_ms(f, &first) > 0);
	/* More than there is, of blobs; and then still of logs. */
	got = evict(f,
	    (struct store_evict_wish){
		.free_logs = {1, 0}, .free_blobs = {1000, 0}});
	assert_int_equal(got.runs, 2);
	assert_false(has_log(f, &plain));
	assert_true(evicted_ms(f, &second) > 0);
}

/* Runs that printed nothing, but left files. */
TEST(a_disk_without_logs_does_not_keep_the_other_full)
{
	struct uuid run = run_with(f, 2, DIGESTS(20));
	struct store_evicted got;

	fixture_exec(f, "UPDATE kept SET log_files = 0, log_bytes = 0");
	fixture_exec(f, "UPDATE tenant SET log_files = 0, log_bytes = 0");
	got = evict(f,
	    (struct store_evict_wish){
		.free_logs = {1, 0}, .free_blobs = {1, 0}});
	assert_int_equal(got.runs, 1);
	assert_false(has_blob(f, 1, 20));
	assert_true(evicted_ms(f, &run) > 0);
}

TEST(many_are_evicted_in_steps)
{
	for (uint64_t i = 1; i <= 250; i++)
		(void)run_with(f, i, NO_DIGESTS);
	assert_int_equal(
	    evict(f, (struct store_evict_wish){.all = {0, 5}}).runs, 245);
	assert_int_equal(fixture_files(f, "spool"), 5);
}

TEST(a_run_is_deleted_with_its_files)
{
	struct uuid runs[2] = {
	    run_with(f, 1, DIGESTS(10, 11)), run_with(f, 2, DIGESTS(10))};

	assert_int_equal(forget(f, 1, &runs[0]).rc, 0);
	assert_false(has_log(f, &runs[0]));
	assert_false(has_blob(f, 1, 11));
	assert_true(has_blob(f, 1, 10));
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM run"), 1);
	assert_int_equal(forget(f, 1, &runs[0]).rc, ERR_NOTFOUND);
	assert_int_equal(forget(f, 2, &runs[1]).rc, ERR_NOTFOUND);
	(void)evict(f, (struct store_evict_wish){.free = {1, 0}});
	assert_int_equal(forget(f, 1, &runs[1]).rc, 0);
	assert_int_equal(fixture_files(f, "spool"), 0);
	assert_int_equal(fixture_files(f, "artifacts"), 0);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM kept"), 0);
}

TEST(an_unfinished_run_is_not_deleted)
{
	struct result result;
	struct store_run r;

	fixture_run(&r, 1, 1, "a");
	fixture_insert(f, &r);
	result = forget(f, 1, &r.uuid);
	assert_int_equal(result.rc, ERR_CONFLICT);
	assert_string_equal(
	    result.msg, "the run has not ended: cancel it first");
	store_run_clear(&r);
}

/* Which count, and cannot be given up before the run has ended. */
TEST(files_of_a_run_that_goes_on_do_not_keep_others_from_giving_theirs)
{
	struct store_run some = {.id = 2, .tenant = 1};
	struct result put = {0};
	struct store_evicted got;
	struct store_run r;

	(void)run_of(f, 2, 1, 2, DIGESTS(10));
	fixture_run(&r, 2, 1, "a");
	fixture_insert(f, &r);
	for (uint8_t i = 0; i < 3; i++) {
		char path[] = {(char)('a' + i), '\0'};

		fixture_run_artifact(&some, path, (uint8_t)(20 + i));
	}
	(void)store_artifacts_put(f->store, &some, NULL, result_cb, &put);
	fixture_wait(f, &put.calls, 1);
	assert_int_equal(put.rc, 0);
	got = evict(f, (struct store_evict_wish){.tenant = {0, 1}});
	assert_int_equal(got.runs, 1);
	assert_int_equal(got.usage.blob_files, 3);
	assert_false(has_blob(f, 2, 10));
	store_run_clear(&some);
	store_run_clear(&r);
}

/* ---- rows */

#define DIGEST_BYTES (200u << 10)

/* An ended run with a large row, and no file. */
static void
run_with_rows(struct fixture *f, uint64_t tenant, uint64_t id)
{
	struct store_run r;

	fixture_run(&r, id, tenant, "a");
	r.tenant = tenant;
	fixture_insert(f, &r);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	r.digest = xcalloc(1, DIGEST_BYTES);
	r.digest_len = DIGEST_BYTES;
	fixture_end(f, &r);
	store_run_clear(&r);
}

static int64_t
runs_of(struct fixture *f, uint64_t tenant)
{
	AUTO(auto_free)
	char *sql = xasprintf("SELECT count(*) FROM run WHERE tenant = %llu",
	    (unsigned long long)tenant);

	return fixture_query(f, sql);
}

static int64_t
oldest_of(struct fixture *f, uint64_t tenant)
{
	AUTO(auto_free)
	char *sql = xasprintf("SELECT min(id) FROM run WHERE tenant = %llu",
	    (unsigned long long)tenant);

	return fixture_query(f, sql);
}

TEST(rows_beyond_the_bound_of_all_go_from_who_has_most)
{
	struct store_evicted got;

	for (uint64_t i = 1; i <= 10; i++)
		run_with_rows(f, 1, i);
	run_with_rows(f, 2, 20);
	run_with_rows(f, 2, 21);
	got = evict(
	    f, (struct store_evict_wish){.rows = 13 * (uint64_t)DIGEST_BYTES});
	assert_int_equal(got.forgotten, 0);
	got = evict(
	    f, (struct store_evict_wish){.rows = 8 * (uint64_t)DIGEST_BYTES});
	assert_int_equal(got.forgotten, 5);
	assert_in_range(
	    got.row_bytes, 5 * DIGEST_BYTES, 5 * DIGEST_BYTES + 5000);
	assert_true(got.usage.row_bytes <= 8 * (uint64_t)DIGEST_BYTES);
	assert_int_equal(runs_of(f, 1), 5);
	assert_int_equal(oldest_of(f, 1), 6);
	assert_int_equal(runs_of(f, 2), 2);
	/* The newest of each stays. */
	got = evict(f, (struct store_evict_wish){.rows = 1});
	assert_int_equal(runs_of(f, 1), 1);
	assert_int_equal(oldest_of(f, 1), 10);
	assert_int_equal(runs_of(f, 2), 1);
	assert_int_equal(oldest_of(f, 2), 21);
}

TEST(rows_give_room_when_files_are_not_enough)
{
	const uint64_t log = STORE_INLINE_MAX + 1;
	struct uuid with_log = run_with(f, 1, NO_DIGESTS);
	struct store_evicted got;

	for (uint64_t i = 2; i <= 30; i++)
		run_with_rows(f, 1, i);
	/* A file is enough. */
	got = evict(f,
	    (struct store_evict_wish){
		.free = {log, 0}, .free_rows = log, .least_rows = 0});
	assert_int_equal(got.runs, 1);
	assert_int_equal(got.forgotten, 0);
	assert_false(has_log(f, &with_log));
	/* There is no other: as many rows as are wanted, and not twice. */
	got = evict(f,
	    (struct store_evict_wish){.free = {10 * DIGEST_BYTES, 0},
		.free_rows = 10 * (uint64_t)DIGEST_BYTES,
		.least_rows = 0});
	assert_in_range(got.forgotten, 5, 12);
	assert_int_equal(runs_of(f, 1), 30 - (int64_t)got.forgotten);
}

TEST(rows_that_are_few_do_not_give_room)
{
	struct store_evicted got;

	for (uint64_t i = 1; i <= 10; i++)
		run_with_rows(f, 1, i);
	got = evict(f,
	    (struct store_evict_wish){.free = {100 << 20, 0},
		.free_rows = 100 << 20,
		.least_rows = 4 * (uint64_t)DIGEST_BYTES});
	assert_int_equal(got.forgotten, 7);
	assert_int_equal(runs_of(f, 1), 3);
	assert_true(got.usage.row_bytes <= 4 * (uint64_t)DIGEST_BYTES);
}

/* Also where no eighth of the file is free. */
TEST(what_rows_give_is_given_back_to_the_disk)
{
	struct store_evicted got;
	int64_t full;

	for (uint64_t i = 1; i <= 200; i++)
		run_with_rows(f, 1, i);
	full = fixture_query(f, "PRAGMA page_count");
	assert_true(full > 10000);
	got = evict(f,
	    (struct store_evict_wish){
		.free = {3 << 20, 0}, .free_rows = 3 << 20, .least_rows = 0});
	assert_in_range(got.forgotten, 1, 20);
	for (int i = 0; fixture_query(f, "PRAGMA freelist_count") > 0; i++) {
		if (i == FIXTURE_PATIENCE_S * 100)
			fail_msg("pages are still free");
		(void)usleep(10000);
	}
	assert_true(fixture_query(f, "PRAGMA page_count") < full - 600);
}

TEST_MAIN(setup, fixture_teardown)

#include "tests/unit/store/fixture.h"

#include <dlfcn.h>

#include "supervisor/store/usage.h"

/* What tenants use by day: exact, and cheap for a crowd of ends. */

#define DAY 20000
#define MIDNIGHT (DAY * STORE_DAY_MS)

/* Statements that add up, as SQLite is given them. */
static unsigned int sums;

int
sqlite3_step(sqlite3_stmt *st)
{
	static int (*step)(sqlite3_stmt *);
	const char *text = sqlite3_sql(st);

	if (step == NULL)
		*(void **)&step = dlsym(RTLD_NEXT, "sqlite3_step");
	if (text != NULL &&
	    (strncmp(text, "INSERT INTO usage", 17) == 0 ||
		strncmp(text, "UPDATE tenant SET ", 18) == 0))
		(void)__atomic_add_fetch(&sums, 1, __ATOMIC_SEQ_CST);
	return step(st);
}

struct read {
	unsigned int calls;
	size_t n;
	struct store_day rows[8];
};

static void
read_cb(int rc, const struct store_days *days, const struct err *why, void *arg)
{
	struct read *r = arg;

	(void)why;
	assert_int_equal(rc, 0);
	assert_in_range(days->n, 0, ARRAY_LEN(r->rows));
	r->calls++;
	r->n = days->n;
	for (size_t i = 0; i < days->n; i++)
		r->rows[i] = days->rows[i];
}

static struct read
read_days(struct fixture *f, uint32_t from)
{
	struct read r = {0};

	store_usage_read(f->store, (struct tenant_id){STORE_TENANT_DEFAULT},
	    from, read_cb, &r);
	fixture_wait(f, &r.calls, 1);
	return r;
}

/* One that took so long and ended so long after midnight. */
static void
make_run(struct store_run *r, uint64_t id, int64_t ms, int64_t after_ms)
{
	fixture_run(r, id, 1, "a");
	fixture_run_ended(r, RUN_STATE_COMPLETED);
	r->ended_ms = MIDNIGHT + after_ms;
	r->started_ms = r->ended_ms - ms;
	r->commands[0].stdout_bytes = 10;
	r->commands[0].stderr_bytes = 1;
}

static void
put_run(struct fixture *f, uint64_t id, int64_t ms, int64_t after_ms)
{
	struct store_run begun, r;

	fixture_run(&begun, id, 1, "a");
	fixture_insert(f, &begun);
	make_run(&r, id, ms, after_ms);
	r.uuid = begun.uuid;
	fixture_end(f, &r);
	store_run_clear(&begun);
	store_run_clear(&r);
}

TEST(a_run_counts_in_the_days_it_went_through)
{
	struct store_days of_day = {0};
	struct read r;
	struct err e;

	fixture_put_sandbox(f, 1, "a");
	put_run(f, 1, 1000, 4000);
	put_run(f, 2, STORE_DAY_MS + 7000, 5000);
	put_run(f, 3, 0, -1);
	r = read_days(f, DAY - 5);
	assert_int_equal(r.n, 3);
	assert_int_equal(r.rows[0].day, DAY);
	assert_int_equal(r.rows[0].runs, 2);
	assert_int_equal(r.rows[0].run_ms, 6000);
	assert_int_equal(r.rows[0].output_bytes, 22);
	assert_int_equal(r.rows[1].run_ms, STORE_DAY_MS);
	assert_int_equal(r.rows[1].runs, 1);
	assert_int_equal(r.rows[2].day, DAY - 2);
	assert_int_equal(r.rows[2].run_ms, 2000);
	assert_int_equal(r.rows[2].runs, 0);
	assert_int_equal(read_days(f, DAY).n, 1);
	/* As a server that starts reads it. */
	fixture_reopen(f);
	assert_int_equal(store_usage_of_day(f->store, DAY, &of_day, &e), 0);
	assert_int_equal(of_day.n, 1);
	assert_int_equal(of_day.rows[0].run_ms, 6000);
	free(of_day.rows);
	store_usage_forget(f->store, DAY + STORE_DAYS_MAX);
	fixture_reopen(f);
	assert_int_equal(read_days(f, 0).n, 1);
}

/* Some come before the end, one of them again with other bytes. */
TEST(all_artifacts_of_a_run_count)
{
	struct result put = {0};
	struct store_run r;

	fixture_insert_first(f, &r);
	for (uint8_t digest = 1; digest <= 2; digest++) {
		struct store_run some = {.id = r.id, .tenant = r.tenant};

		fixture_run_artifact(&some, "x", digest);
		some.artifacts[0].size = digest * 100u;
		(void)store_artifacts_put(
		    f->store, &some, NULL, result_cb, &put);
		store_run_clear(&some);
		fixture_wait(f, &put.calls, digest);
		assert_int_equal(put.rc, 0);
	}
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	r.started_ms = r.ended_ms = MIDNIGHT;
	r.artifacts_put = true;
	fixture_run_artifact(&r, "y", 3);
	r.artifacts[0].size = 7;
	fixture_end(f, &r);
	assert_int_equal(read_days(f, DAY).rows[0].artifact_bytes, 207);
	store_run_clear(&r);
}

TEST(an_end_that_is_refused_counts_for_nothing)
{
	struct result done = {0}, good = {0};
	struct store_run r;

	fixture_put_sandbox(f, 1, "a");
	put_run(f, 1, 1000, 4000);
	/* In one batch, perhaps, with one that never began. */
	for (uint64_t id = 1; id <= 2; id++) {
		make_run(&r, id, 1000, 4000);
		store_run_end(f->store, &r, NULL, result_cb, &done);
		store_run_clear(&r);
	}
	fixture_run(&r, 3, 1, "a");
	store_run_begin(f->store, &r, NULL, STORE_SOON, result_cb, &good);
	fixture_run_ended(&r, RUN_STATE_FAILED);
	r.started_ms = MIDNIGHT;
	r.ended_ms = MIDNIGHT + 500;
	store_run_end(f->store, &r, NULL, result_cb, &good);
	fixture_wait(f, &good.calls, 2);
	fixture_wait(f, &done.calls, 2);
	assert_int_equal(good.rc, 0);
	assert_int_not_equal(done.rc, 0);
	assert_int_equal(read_days(f, DAY).rows[0].runs, 2);
	assert_int_equal(read_days(f, DAY).rows[0].run_ms, 1500);
	assert_int_equal(
	    fixture_query(f, "SELECT runs_completed FROM tenant"), 1);
	assert_int_equal(fixture_query(f, "SELECT runs_failed FROM tenant"), 1);
	assert_int_equal(fixture_query(f, "SELECT runs_kept FROM tenant"), 2);
	store_run_clear(&r);
}

TEST(sandboxes_count_once_and_refusals_are_added)
{
	struct store_sandbox s;
	uint32_t day;

	fixture_sandbox(&s, 1, "a");
	day = store_day_of(s.created_ms);
	store_sandbox_put(f->store, &s, NULL, NULL);
	s.ttl_s++;
	store_sandbox_put(f->store, &s, NULL, NULL);
	for (int i = 0; i < 2; i++)
		store_usage_add(f->store,
		    &(struct store_day){.tenant = STORE_TENANT_DEFAULT,
			.day = day,
			.refusals = 3});
	fixture_reopen(f);
	assert_int_equal(read_days(f, day).n, 1);
	assert_int_equal(read_days(f, day).rows[0].sandboxes, 1);
	assert_int_equal(read_days(f, day).rows[0].refusals, 6);
	store_sandbox_clear(&s);
}

/* A clock that is set back is no reason to count anything twice. */
TEST(days_that_take_turns_lose_nothing)
{
	struct read r;

	fixture_put_sandbox(f, 1, "a");
	for (uint64_t id = 1; id <= 6; id++)
		put_run(f, id, 100, id % 2 == 0 ? 200 : 200 - STORE_DAY_MS);
	r = read_days(f, DAY - 5);
	assert_int_equal(r.n, 2);
	for (size_t i = 0; i < r.n; i++) {
		assert_int_equal(r.rows[i].day, DAY - i);
		assert_int_equal(r.rows[i].runs, 3);
		assert_int_equal(r.rows[i].run_ms, 300);
		assert_int_equal(r.rows[i].output_bytes, 33);
	}
	assert_int_equal(
	    fixture_query(f, "SELECT sum(runs * run_ms) FROM v_usage"), 1800);
	/* The newest is forgotten as the others are. */
	store_usage_forget(f->store, DAY + STORE_DAYS_MAX + 1);
	fixture_reopen(f);
	assert_int_equal(read_days(f, 0).n, 0);
	put_run(f, 7, 100, 200);
	assert_int_equal(read_days(f, 0).rows[0].runs, 1);
}

#define CROWD 200

TEST(a_crowd_of_ends_is_added_once_a_commit)
{
	struct store_stats before, after;
	struct result done = {0};
	struct store_run r;

	fixture_put_sandbox(f, 1, "a");
	store_stats(f->store, &before);
	sums = 0;
	for (uint64_t id = 1; id <= CROWD; id++) {
		fixture_run(&r, id, 1, "a");
		store_run_begin(f->store, &r, NULL, STORE_SOON, NULL, NULL);
		fixture_run_ended(&r, RUN_STATE_COMPLETED);
		r.ended_ms = MIDNIGHT + 1;
		r.started_ms = MIDNIGHT;
		store_run_end(f->store, &r, NULL, result_cb, &done);
		store_run_clear(&r);
	}
	fixture_wait(f, &done.calls, CROWD);
	store_stats(f->store, &after);
	/* Two more when the day begins. */
	assert_in_range(sums, 1 + 2, after.commits - before.commits + 1 + 2);
	assert_int_equal(read_days(f, DAY).rows[0].runs, CROWD);
	assert_int_equal(read_days(f, DAY).rows[0].run_ms, CROWD);
}

TEST_MAIN(fixture_setup, fixture_teardown)

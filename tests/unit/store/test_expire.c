#include "tests/unit/store/fixture.h"

#define DAY INT64_C(86400000)

struct got {
	unsigned int calls;
	int rc;
	struct store_expired what;
};

static void
got_cb(
    int rc, const struct store_expired *what, const struct err *why, void *arg)
{
	struct got *g = arg;

	assert_int_equal(rc == 0, why == NULL);
	g->calls++;
	g->rc = rc;
	g->what = *what;
}

static struct got
expire(struct fixture *f, int64_t runs_before_ms, int64_t files_before_ms)
{
	struct got g = {0};

	store_expire(f->store,
	    &(struct store_expiry){.tenant = {STORE_TENANT_DEFAULT},
		.runs_before_ms = runs_before_ms,
		.files_before_ms = files_before_ms},
	    got_cb, &g);
	fixture_wait(f, &g.calls, 1);
	assert_int_equal(g.rc, 0);
	return g;
}

/* One that was created on a day and ended on another, with a log in a file. */
static void
add(struct fixture *f, uint64_t id, int64_t created, int64_t ended)
{
	struct store_log *log;
	struct store_run r;

	fixture_run(&r, id, 1, "a");
	r.created_ms = created * DAY;
	log = fixture_log_open(f, &r);
	fixture_log_fill(log, &r, 'x', STORE_INLINE_MAX + 1);
	fixture_insert(f, &r);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	r.ended_ms = ended * DAY;
	fixture_end_with(f, &r, log);
	store_log_close(log);
	store_run_clear(&r);
}

TEST(what_ended_before_is_forgotten_with_its_files)
{
	struct got g;

	fixture_put_sandbox(f, 1, "a");
	for (int64_t i = 1; i <= 5; i++)
		add(f, (uint64_t)i, i, i);
	g = expire(f, 4 * DAY, 0);
	assert_int_equal(g.what.runs, 3);
	assert_int_equal(g.what.files, 3);
	assert_int_equal(fixture_query(f, "SELECT min(id) FROM run"), 4);
	assert_int_equal(
	    fixture_query(f, "SELECT runs_kept * 10 + log_files FROM tenant"),
	    22);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM command"), 2);
	assert_int_equal(
	    fixture_query(f,
		"SELECT count(*) FROM event WHERE kind = 'history.expired'"
		" AND data ->> 'runs' = 3 AND data ->> 'files_of' = 0"),
	    1);
	g = expire(f, 4 * DAY, 0);
	assert_int_equal(g.what.runs, 0);
}

TEST(a_long_run_is_as_old_as_its_end_and_keeps_none_from_going)
{
	struct got g;

	fixture_put_sandbox(f, 1, "a");
	add(f, 1, 1, 9);
	add(f, 2, 2, 2);
	g = expire(f, 5 * DAY, 5 * DAY);
	assert_int_equal(g.what.runs, 1);
	assert_int_equal(g.what.files_of, 0);
	assert_int_equal(fixture_query(f, "SELECT id FROM run"), 1);
}

TEST(what_goes_on_is_never_too_old)
{
	struct store_run r;
	struct got g;

	fixture_insert_first(f, &r);
	g = expire(f, INT64_MAX, INT64_MAX);
	assert_int_equal(g.what.runs, 0);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM run"), 1);
	store_run_clear(&r);
}

TEST(files_go_before_their_rows)
{
	struct got g;

	fixture_put_sandbox(f, 1, "a");
	for (int64_t i = 1; i <= 5; i++)
		add(f, (uint64_t)i, i, i);
	g = expire(f, 2 * DAY, 4 * DAY);
	assert_int_equal(g.what.runs, 1);
	assert_int_equal(g.what.files_of, 2);
	assert_int_equal(g.what.files, 3);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM run"), 4);
	assert_int_equal(
	    fixture_query(f, "SELECT count(*) FROM kept WHERE evicted_ms <> 0"),
	    2);
	g = expire(f, 2 * DAY, 4 * DAY);
	assert_int_equal(g.what.files_of, 0);
}

TEST(many_go_in_steps)
{
	struct result ended = {0};
	struct got g;

	fixture_put_sandbox(f, 1, "a");
	for (int64_t i = 1; i <= 450; i++) {
		struct store_run r;

		fixture_run(&r, (uint64_t)i, 1, "a");
		r.created_ms = i;
		store_run_begin(f->store, &r, NULL, STORE_SOON, NULL, NULL);
		fixture_run_ended(&r, RUN_STATE_COMPLETED);
		fixture_run_artifact(&r, "x", (uint8_t)i);
		store_run_end(f->store, &r, NULL, result_cb, &ended);
		store_run_clear(&r);
	}
	fixture_wait(f, &ended.calls, 450);
	g = expire(f, 0, 2000);
	assert_int_equal(g.what.files_of, 450);
	g = expire(f, 2000, 2000);
	assert_int_equal(g.what.runs, 450);
	/* An event for each time, not for each step. */
	assert_int_equal(
	    fixture_query(f,
		"SELECT count(*) * 1000000 + sum(data ->> 'runs') * 1000"
		" + sum(data ->> 'files_of') FROM event"
		" WHERE kind = 'history.expired'"),
	    2450450);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM blob"), 0);
}

TEST(another_tenants_runs_stay)
{
	struct got g;

	fixture_put_sandbox(f, 1, "a");
	add(f, 1, 1, 1);
	fixture_exec(f,
	    "INSERT INTO tenant (id, name, created_ms) VALUES (2, 'b', 1);"
	    "UPDATE run SET tenant = 2; UPDATE kept SET tenant = 2");
	g = expire(f, 9 * DAY, 9 * DAY);
	assert_int_equal(g.what.runs + g.what.files_of, 0);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM run"), 1);
}

TEST_MAIN(fixture_setup, fixture_teardown)

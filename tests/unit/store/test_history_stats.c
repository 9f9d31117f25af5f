#include "tests/unit/store/history_fixture.h"

/* Sums are those of all runs that pass, percentiles within what is said. */

#define DAY_MS INT64_C(86400000)
#define RUNS 200

struct sums {
	unsigned int calls;
	int rc;
	size_t n;
	char keys[1100][40];
	struct history_sum sums[1100];
	uint64_t more_groups, more_runs;
};

static void
sums_cb(int rc, const struct history_sums *s, const struct err *why, void *arg)
{
	struct sums *out = arg;

	(void)why;
	out->calls++;
	out->rc = rc;
	out->n = 0;
	if (rc != 0)
		return;
	for (; out->n < s->n; out->n++) {
		out->sums[out->n] = s->sums[out->n];
		(void)snprintf(out->keys[out->n], sizeof(out->keys[0]), "%s",
		    s->sums[out->n].key);
	}
	out->more_groups = s->more_groups;
	out->more_runs = s->more_runs;
	assert_int_equal(s->cut_ms, 0);
}

static void
sum_up(struct fixture *f, const struct history_filter *filter,
    enum history_group by, struct sums *out)
{
	for (int i = 0; i < FIXTURE_PATIENCE_S; i++) {
		out->calls = 0;
		(void)history_stats(f->store,
		    (struct tenant_id){STORE_TENANT_DEFAULT}, filter, by,
		    sums_cb, out);
		fixture_wait(f, &out->calls, 1);
		if (out->rc != ERR_BACKEND)
			break;
	}
	assert_int_equal(out->rc, 0);
}

/* Run i of RUNS: on one of two days, lasting i times 10 ms. */
static void
add_run(struct fixture *f, uint64_t i, const char *identifier)
{
	struct store_run r;

	fixture_run(&r, i, 1, identifier);
	r.created_ms = (20000 + (int64_t)(i % 2)) * DAY_MS + (int64_t)i;
	fixture_insert(f, &r);
	fixture_run_ended(
	    &r, i % 4 == 0 ? RUN_STATE_FAILED : RUN_STATE_COMPLETED);
	r.started_ms = r.created_ms;
	r.ended_ms = r.started_ms + (int64_t)i * 10;
	r.stdout_bytes = 7;
	r.stderr_bytes = 3;
	r.cpu_us = 1000;
	fixture_run_artifact(&r, "x", 1);
	fixture_end(f, &r);
	store_run_clear(&r);
}

static void
assert_near(int64_t is, int64_t want)
{
	if (is > want || is < want - want / 64 - 1)
		fail_msg("%lld, want %lld", (long long)is, (long long)want);
}

TEST(sums_by_day_and_state_are_right)
{
	struct sums *s = xcalloc(1, sizeof(*s));
	struct history_filter filter = {0};

	fixture_put_sandbox(f, 1, "a");
	for (uint64_t i = 1; i <= RUNS; i++)
		add_run(f, i, "a");
	sum_up(f, &filter, HISTORY_BY_DAY, s);
	assert_int_equal(s->n, 2);
	assert_string_equal(s->keys[0], "2024-10-04");
	assert_string_equal(s->keys[1], "2024-10-05");
	assert_int_equal(s->sums[0].runs, RUNS / 2);
	assert_int_equal(s->sums[0].cpu_us, RUNS / 2 * 1000);
	assert_int_equal(s->sums[0].output_bytes, RUNS / 2 * 10);
	assert_int_equal(s->sums[0].artifact_bytes, RUNS / 2 * 100);
	assert_near(s->sums[0].p50_ms, RUNS / 2 * 10);
	assert_near(s->sums[0].p95_ms, RUNS * 95 / 100 * 10);
	assert_near(s->sums[0].p99_ms, RUNS * 99 / 100 * 10);
	sum_up(f, &filter, HISTORY_BY_STATE, s);
	assert_int_equal(s->n, 2);
	assert_string_equal(s->keys[0], "completed");
	assert_int_equal(s->sums[0].runs, RUNS * 3 / 4);
	assert_int_equal(s->sums[1].runs, RUNS / 4);
	filter.since_ms = 20001 * DAY_MS;
	filter.states = 1u << RUN_STATE_COMPLETED;
	sum_up(f, &filter, HISTORY_BY_END_REASON, s);
	assert_int_equal(s->n, 1);
	assert_string_equal(s->keys[0], "exit");
	assert_int_equal(s->sums[0].runs, RUNS / 2);
	free(s);
}

TEST(groups_are_bounded_and_the_rest_is_said)
{
	const struct history_filter filter = {0};
	struct sums *s = xcalloc(1, sizeof(*s));
	char identifier[40];

	fixture_put_sandbox(f, 1, "a");
	add_run(f, 1, "often");
	add_run(f, 2, "often");
	for (uint64_t i = 3; i < HISTORY_GROUPS_MAX + 12; i++) {
		struct store_run r;

		(void)snprintf(identifier, sizeof(identifier), "i%llu",
		    (unsigned long long)i);
		fixture_run(&r, i, 1, identifier);
		store_run_begin(f->store, &r, NULL, STORE_SOON, NULL, NULL);
		fixture_run_ended(&r, RUN_STATE_COMPLETED);
		store_run_end(f->store, &r, NULL, NULL, NULL);
		store_run_clear(&r);
	}
	add_run(f, 2000, "often");
	sum_up(f, &filter, HISTORY_BY_IDENTIFIER, s);
	assert_int_equal(s->n, HISTORY_GROUPS_MAX);
	assert_string_equal(s->keys[0], "often");
	assert_int_equal(s->sums[0].runs, 3);
	assert_int_equal(s->more_groups, 10);
	assert_int_equal(s->more_runs, 10);
	free(s);
}

TEST_MAIN(fixture_setup, fixture_teardown)

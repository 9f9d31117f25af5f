#include "tests/unit/core/core_ground.h"

#include "supervisor/core/quota_use.h"
#include "supervisor/core/tenants.h"

/* What a tenant has of its quotas, counted where states change. */

static struct tenant *
ground_tenant(void)
{
	return tenants_find(core_tenants(g.core), g.who->tenant);
}

static void
grant(enum quota_key key, int64_t value)
{
	tenant_grant(ground_tenant(), key, value, NULL, NULL);
}

static struct quota_use *
use(void)
{
	return quota_use_of(core_quota_uses(g.core), g.who->tenant);
}

/* ---- counts do not drift */

struct recount {
	uint64_t sandboxes, nano_cpus, memory_bytes, running, waiting;
};

static void
recount(struct recount *n, const struct sandbox *sb)
{
	n->running += sb->queue.nrunning;
	n->waiting += sb->queue.nwaiting;
	if (sb->state == SANDBOX_GONE)
		return;
	n->sandboxes++;
	n->nano_cpus += sb->row.nano_cpus;
	n->memory_bytes += sb->row.memory_bytes;
}

static void
expect_no_drift(void)
{
	const struct quota_use *u = use();
	const struct sandbox *sb = NULL;
	struct recount n = {0};

	while ((sb = sandboxes_next(core_sandboxes(g.core), sb)) != NULL)
		recount(&n, sb);
	assert_int_equal(u->sandboxes, n.sandboxes);
	assert_int_equal(u->nano_cpus, n.nano_cpus);
	assert_int_equal(u->memory_bytes, n.memory_bytes);
	assert_int_equal(u->lane.nrunning, n.running);
	assert_int_equal(u->lane.nwaiting, n.waiting);
	assert_int_equal(
	    quota_uses_sandboxes(core_quota_uses(g.core)), n.sandboxes);
}

TEST(a_sandbox_counts_until_nothing_is_left_of_it)
{
	struct sandbox *sb = ground_open("box");
	struct err e;

	grant(QUOTA_SANDBOXES, 1);
	expect_no_drift();
	assert_int_equal(
	    core_admit_sandbox(g.core, g.who, NULL, &e), ERR_QUOTA);
	assert_non_null(strstr(e.msg,
	    "quota sandboxes: the limit is 1, "
	    "used are 1: delete"));
	assert_int_equal(core_admit_sandbox(g.core, g.who, sb, &e), 0);
	assert_int_equal(core_admit_run(g.core, g.who, NULL, &e), ERR_QUOTA);
	assert_int_equal(core_admit_run(g.core, g.who, sb, &e), 0);
	expect_told(0, "create 1");
	sandbox_remove(sb);
	expect_told(0, "remove 1");
	expect_no_drift();
	assert_int_equal(use()->sandboxes, 1);
	sandbox_on_removed(sb, 0, "");
	expect_no_drift();
	assert_int_equal(core_admit_sandbox(g.core, g.who, NULL, &e), 0);
	/* A changed quota holds at once. */
	ground_open("other");
	assert_int_equal(
	    core_admit_sandbox(g.core, g.who, NULL, &e), ERR_QUOTA);
	grant(QUOTA_SANDBOXES, 2);
	assert_int_equal(core_admit_sandbox(g.core, g.who, NULL, &e), 0);
}

TEST(replacing_again_and_again_is_held_too)
{
	struct sandbox *sb = ground_open("box"), *fresh;
	struct err e;

	grant(QUOTA_SANDBOXES, 1);
	expect_told(0, "create 1");
	assert_int_equal(core_admit_sandbox(g.core, g.who, sb, &e), 0);
	assert_int_equal(sandbox_replace(sb, 60, &fresh, &e), 0);
	expect_no_drift();
	assert_int_equal(
	    core_admit_sandbox(g.core, g.who, fresh, &e), ERR_QUOTA);
	assert_int_equal(core_admit_run(g.core, g.who, fresh, &e), 0);
	expect_told(0, "remove 1");
	sandbox_on_removed(sb, 0, "");
	assert_int_equal(core_admit_sandbox(g.core, g.who, fresh, &e), 0);
}

TEST(one_sandbox_is_cut_to_its_tenants_limits)
{
	const struct sandbox *sb;
	struct err e;

	assert_int_equal(conf_set(g.conf, "DEFAULT_CPU_CORES", "4", &e), 0);
	grant(QUOTA_SANDBOX_CPU_CORES, 2);
	grant(QUOTA_SANDBOX_MEMORY_MB, 100);
	grant(QUOTA_SANDBOX_PIDS, 32);
	sb = ground_open("box");
	assert_int_equal(sb->row.nano_cpus, 2000000000u);
	assert_int_equal(sb->row.memory_bytes, 100 << 20);
	assert_int_equal(sb->row.pids, 32);
	expect_no_drift();
	grant(QUOTA_CPU_CORES, 3);
	assert_int_equal(
	    core_admit_sandbox(g.core, g.who, NULL, &e), ERR_QUOTA);
	assert_non_null(strstr(e.msg, "quota cpu_cores"));
	grant(QUOTA_CPU_CORES, 4);
	assert_int_equal(core_admit_sandbox(g.core, g.who, NULL, &e), 0);
	grant(QUOTA_MEMORY_MB, 199);
	assert_int_equal(
	    core_admit_sandbox(g.core, g.who, NULL, &e), ERR_QUOTA);
	assert_non_null(strstr(e.msg, "quota memory_mb"));
}

TEST(runs_over_the_quota_wait_and_too_many_are_refused)
{
	struct sandbox *sb = ground_open("box");
	struct run *second;
	struct err e;

	grant(QUOTA_RUNS_RUNNING, 1);
	grant(QUOTA_RUNS_QUEUED, 1);
	assert_int_equal(core_admit_run(g.core, g.who, sb, &e), 0);
	(void)ground_run(sb, false);
	expect_told(0, "start 1");
	second = ground_run(sb, false);
	expect_no_drift();
	assert_int_equal(run_waits_for(second), SCHED_WAITS_FOR_QUOTA);
	assert_int_equal(core_admit_run(g.core, g.who, sb, &e), ERR_QUOTA);
	assert_non_null(strstr(e.msg, "quota runs_queued"));
	assert_int_equal(second->phase, RUN_WAITING);
	grant(QUOTA_RUNS_RUNNING, 0);
	expect_told(0, "start 2");
	expect_no_drift();
}

/* ---- disk, and the day */

TEST(the_sum_of_what_disks_may_hold_is_limited)
{
	struct err e;

	assert_int_equal(conf_set(g.conf, "SANDBOX_DISK_MB", "100", &e), 0);
	grant(QUOTA_DISK_MB, 299);
	ground_open("one");
	assert_int_equal(core_admit_sandbox(g.core, g.who, NULL, &e), 0);
	ground_open("two");
	assert_int_equal(
	    core_admit_sandbox(g.core, g.who, NULL, &e), ERR_QUOTA);
	assert_string_equal(e.refusal.quota, "disk_mb");
	assert_int_equal(e.refusal.limit, 299);
	assert_int_equal(e.refusal.used, 200);
	/* Where a sandbox has no limit, no sum can be held. */
	assert_int_equal(conf_set(g.conf, "SANDBOX_DISK_MB", "0", &e), 0);
	assert_int_equal(
	    core_admit_sandbox(g.core, g.who, NULL, &e), ERR_QUOTA);
	grant(QUOTA_DISK_MB, 0);
	assert_int_equal(core_admit_sandbox(g.core, g.who, NULL, &e), 0);
}

#define DAY_MS INT64_C(86400000)

TEST(a_day_that_is_used_up_shuts_the_lane_until_midnight)
{
	const int64_t midnight = 20000 * DAY_MS;
	struct quota_uses *all = core_quota_uses(g.core);
	struct sandbox *sb = ground_open("box");
	struct store_run row = {.started_ms = midnight - 5000};
	struct run *waits;
	struct err e;

	(void)ground_run(sb, false);
	expect_told(0, "start 1");
	grant(QUOTA_RUN_SECONDS_PER_DAY, 10);
	/* Of a run that goes, what is of today. */
	quota_uses_recount(all, midnight + 4000);
	quota_use_add_going(use(), &row);
	assert_int_equal(use()->going_ms, 4000);
	assert_int_equal(core_admit_run(g.core, g.who, sb, &e), 0);
	/* It leaves its sandbox, and then its end is on disk. */
	quota_use_drop_going(use(), &row);
	assert_int_equal(use()->going_ms, 0);
	row.ended_ms = midnight + 10000;
	quota_use_end_run(use(), &row);
	assert_int_equal(use()->day_ms, 10000);
	assert_int_equal(core_admit_run(g.core, g.who, sb, &e), ERR_QUOTA);
	assert_string_equal(e.refusal.quota, "run_seconds_per_day");
	assert_int_equal(e.refusal.used, 10);
	assert_in_range(e.refusal.wait_s, 86395, 86400);
	/* What was admitted before does not start. */
	waits = ground_run(sb, false);
	core_turn(g.core);
	assert_int_equal(run_waits_for(waits), SCHED_WAITS_FOR_DAY);
	quota_uses_recount(all, midnight + DAY_MS);
	quota_uses_tick(all);
	core_turn(g.core);
	assert_int_equal(run_waits_for(waits), SCHED_NOTHING_WAITS);
	assert_int_equal(use()->day_ms, 0);
}

/* ---- requests, streams */

TEST(requests_come_at_their_rate_after_a_burst)
{
	uint64_t now = 1000;
	struct err why;

	assert_int_equal(quota_use_admit_request(use(), now, &why), 0);
	grant(QUOTA_REQUESTS_PER_SECOND, 10);
	grant(QUOTA_REQUEST_BURST, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(quota_use_admit_request(use(), now, &why), 0);
	assert_int_equal(quota_use_admit_request(use(), now, &why), ERR_QUOTA);
	assert_string_equal(why.refusal.quota, "requests_per_second");
	assert_int_equal(why.refusal.limit, 10);
	assert_true(why.refusal.wait_s >= 1);
	assert_int_equal(
	    quota_use_admit_request(use(), now + 99, &why), ERR_QUOTA);
	assert_int_equal(quota_use_admit_request(use(), now + 100, &why), 0);
	assert_int_equal(
	    quota_use_admit_request(use(), now + 100, &why), ERR_QUOTA);
	now += 1000000;
	for (int i = 0; i < 3; i++)
		assert_int_equal(quota_use_admit_request(use(), now, &why), 0);
	assert_int_equal(quota_use_admit_request(use(), now, &why), ERR_QUOTA);
}

TEST(streams_are_counted)
{
	struct err e;

	grant(QUOTA_STREAMS, 1);
	assert_int_equal(quota_use_add_stream(use(), &e), 0);
	assert_int_equal(quota_use_add_stream(use(), &e), ERR_QUOTA);
	assert_non_null(strstr(e.msg, "quota streams"));
	quota_use_drop_stream(use());
	assert_int_equal(quota_use_add_stream(use(), &e), 0);
	quota_use_drop_stream(use());
}

TEST_MAIN(ground_set_up, ground_tear_down)

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
recount_cb(const struct sandbox *sb, void *arg)
{
	struct recount *n = arg;

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
	struct recount n = {0};

	sandboxes_each(core_sandboxes(g.core), recount_cb, &n);
	assert_int_equal(u->sandboxes, n.sandboxes);
	assert_int_equal(u->nano_cpus, n.nano_cpus);
	assert_int_equal(u->memory_bytes, n.memory_bytes);
	assert_int_equal(u->lane.nrunning, n.running);
	assert_int_equal(u->lane.nwaiting, n.waiting);
	assert_int_equal(
	    quota_uses_sandboxes(core_quota_uses(g.core)), n.sandboxes);
}

static void
test_a_sandbox_counts_until_nothing_is_left_of_it(void **state)
{
	struct sandbox *sb = ground_open("box");
	struct err e;

	(void)state;
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

static void
test_replacing_again_and_again_is_held_too(void **state)
{
	struct sandbox *sb = ground_open("box"), *fresh;
	struct err e;

	(void)state;
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

static void
test_one_sandbox_is_cut_to_its_tenants_limits(void **state)
{
	const struct sandbox *sb;
	struct err e;

	(void)state;
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

static void
test_runs_over_the_quota_wait_and_too_many_are_refused(void **state)
{
	struct sandbox *sb = ground_open("box");
	struct run *first, *second;
	struct err e;

	(void)state;
	grant(QUOTA_RUNS_RUNNING, 1);
	grant(QUOTA_RUNS_QUEUED, 1);
	assert_int_equal(core_admit_run(g.core, g.who, sb, &e), 0);
	first = ground_run(sb, false);
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
	run_unref(first);
	run_unref(second);
}

/* ---- requests, streams */

static void
test_requests_come_at_their_rate_after_a_burst(void **state)
{
	struct quota_refusal why;
	uint64_t now = 1000;

	(void)state;
	assert_true(quota_use_admit_request(use(), now, &why));
	grant(QUOTA_REQUESTS_PER_SECOND, 10);
	grant(QUOTA_REQUEST_BURST, 3);
	for (int i = 0; i < 3; i++)
		assert_true(quota_use_admit_request(use(), now, &why));
	assert_false(quota_use_admit_request(use(), now, &why));
	assert_int_equal(why.key, QUOTA_REQUESTS_PER_SECOND);
	assert_int_equal(why.limit, 10);
	assert_true(why.wait_s >= 1);
	assert_false(quota_use_admit_request(use(), now + 99, &why));
	assert_true(quota_use_admit_request(use(), now + 100, &why));
	assert_false(quota_use_admit_request(use(), now + 100, &why));
	now += 1000000;
	for (int i = 0; i < 3; i++)
		assert_true(quota_use_admit_request(use(), now, &why));
	assert_false(quota_use_admit_request(use(), now, &why));
}

static void
test_streams_are_counted(void **state)
{
	struct quota_refusal why;
	struct err e;

	(void)state;
	grant(QUOTA_STREAMS, 1);
	assert_true(quota_use_add_stream(use(), &why));
	assert_false(quota_use_add_stream(use(), &why));
	assert_int_equal(quota_refusal_text(&why, &e), ERR_QUOTA);
	assert_non_null(strstr(e.msg, "quota streams"));
	quota_use_drop_stream(use());
	assert_true(quota_use_add_stream(use(), &why));
	quota_use_drop_stream(use());
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f)                                                                \
	cmocka_unit_test_setup_teardown(f, ground_set_up, ground_tear_down)
	    TEST(test_a_sandbox_counts_until_nothing_is_left_of_it),
	    TEST(test_replacing_again_and_again_is_held_too),
	    TEST(test_one_sandbox_is_cut_to_its_tenants_limits),
	    TEST(test_runs_over_the_quota_wait_and_too_many_are_refused),
	    TEST(test_requests_come_at_their_rate_after_a_burst),
	    TEST(test_streams_are_counted),
	};

	return cmocka_run_group_tests_name("quota_use", tests, NULL, NULL);
}

#include "tests/unit/core/core_ground.h"

#include "supervisor/core/quota_use.h"
#include "supervisor/core/share.h"
#include "supervisor/core/tenants.h"

/* What a sandbox has of the host while other tenants are at work. */

#define CORE UINT64_C(1000000000)
#define MANY_CORES (1000 * CORE)

static struct quota_use *
use_of(const char *name)
{
	struct tenant *n;
	struct err e;

	if (tenant_add(core_tenants(g.core), name, NULL, NULL, &n, &e) != 0)
		fail_msg("%s", e.msg);
	return quota_use_of(core_quota_uses(g.core), n->owner->tenant);
}

static void
end_a_run(struct quota_use *u)
{
	quota_use_end_run(u, &(struct store_run){.state = RUN_STATE_COMPLETED});
}

/* A tick with so many sandboxes, all at work or none. */
static void
tick(struct quota_use *u, struct share_held *held, unsigned int n, bool at_work)
{
	for (unsigned int i = 0; i < n; i++)
		share_tick(&held[i], u, at_work);
	quota_uses_recount(core_quota_uses(g.core), 1000);
	quota_uses_tick(core_quota_uses(g.core));
}

static void
make_busy(struct quota_use *u, struct share_held *held, unsigned int n)
{
	for (int i = 0; i < 4; i++)
		tick(u, held, n, true);
}

/* One that there is only one of is nobody's own. */
static unsigned int
own_cpus(const struct quota_use *u)
{
	return quota_use_processors(u) / 2;
}

static void
expect_due(struct share_held *h, const struct quota_use *u, uint64_t nano_cpus,
    uint64_t output_mib)
{
	struct share s;

	assert_true(share_is_due(h, u, g.conf, MANY_CORES, &s));
	assert_int_equal(s.nano_cpus, nano_cpus);
	assert_int_equal(s.cpus, nano_cpus == 0 ? 0 : own_cpus(u));
	assert_int_equal(s.output_bytes_s, output_mib << 20);
	assert_false(share_is_due(h, u, g.conf, MANY_CORES, &s));
}

TEST(who_is_alone_has_all)
{
	struct quota_use *a = use_of("a");
	struct share_held held[1];
	struct share s;

	share_begin(held, quota_use_cpu_shares(a));
	end_a_run(a);
	make_busy(a, held, 1);
	assert_false(share_is_due(held, a, g.conf, MANY_CORES, &s));
}

TEST(busy_sandboxes_have_half_together_beside_others)
{
	struct quota_use *a = use_of("a"), *b = use_of("b");
	uint64_t half = quota_use_processors(a) * CORE / 2;
	struct share_held held[3];
	struct share s;

	for (int i = 0; i < 3; i++)
		share_begin(&held[i], quota_use_cpu_shares(a));
	make_busy(a, held, 3);
	assert_false(share_is_due(&held[0], a, g.conf, MANY_CORES, &s));
	end_a_run(b);
	tick(a, held, 3, true);
	/* By four: the next power of two. */
	for (int i = 0; i < 3; i++)
		expect_due(&held[i], a, half / 4, 16);
	/* Who rests is free again, and the others have more. */
	for (int i = 0; i < 30; i++) {
		share_tick(&held[2], a, false);
		tick(a, held, 2, true);
	}
	expect_due(&held[2], a, 0, 0);
	expect_due(&held[0], a, half / 2, 32);
}

TEST(two_that_are_busy_have_processors_of_their_own)
{
	struct quota_use *uses[] = {use_of("a"), use_of("b")};
	struct share_held held[2][1];
	struct share s[2];

	for (int i = 0; i < 2; i++) {
		share_begin(held[i], quota_use_cpu_shares(uses[i]));
		end_a_run(uses[i]);
	}
	for (int i = 0; i < 4; i++) {
		share_tick(held[1], uses[1], true);
		tick(uses[0], held[0], 1, true);
	}
	for (int i = 0; i < 2; i++) {
		assert_true(
		    share_is_due(held[i], uses[i], g.conf, MANY_CORES, &s[i]));
		assert_int_equal(s[i].cpus, own_cpus(uses[i]));
	}
	assert_int_equal(s[0].first_cpu, 0);
	assert_int_equal(s[1].first_cpu, own_cpus(uses[1]));
	/* The first rests: the other stays where it is. */
	for (int i = 0; i < 30; i++) {
		share_tick(held[1], uses[1], true);
		end_a_run(uses[0]);
		tick(uses[0], held[0], 1, false);
	}
	assert_false(share_is_due(held[1], uses[1], g.conf, MANY_CORES, &s[1]));
	assert_true(share_is_due(held[0], uses[0], g.conf, MANY_CORES, &s[0]));
	assert_int_equal(s[0].cpus, 0);
	/* And it comes back to the place that is free. */
	make_busy(uses[0], held[0], 1);
	assert_int_equal(uses[0]->place, 0);
}

TEST(its_own_limit_is_no_bound)
{
	struct quota_use *a = use_of("a"), *b = use_of("b");
	uint64_t half = quota_use_processors(a) * CORE / 2;
	struct share_held held[1];
	struct share s;

	share_begin(held, quota_use_cpu_shares(a));
	make_busy(a, held, 1);
	end_a_run(b);
	tick(a, held, 1, true);
	assert_true(share_is_due(held, a, g.conf, half, &s));
	assert_int_equal(s.nano_cpus, 0);
}

TEST(short_calls_now_and_then_are_not_busy)
{
	struct quota_use *a = use_of("a"), *b = use_of("b");
	struct share_held held[1];
	struct share s;

	share_begin(held, quota_use_cpu_shares(a));
	for (int i = 0; i < 100; i++) {
		end_a_run(b);
		tick(a, held, 1, i % 3 == 0);
		assert_false(share_is_due(held, a, g.conf, MANY_CORES, &s));
	}
}

TEST(what_was_taken_over_is_told_once)
{
	struct quota_use *a = use_of("a");
	struct share_held held[1];

	share_begin(held, 0);
	expect_due(held, a, 0, 0);
}

TEST(bounds_can_be_turned_off)
{
	struct quota_use *a = use_of("a"), *b = use_of("b");
	struct share_held held[1];
	struct share s;
	struct err e;

	assert_int_equal(conf_set(g.conf, "CROWDED_CPU_PERCENT", "100", &e), 0);
	assert_int_equal(conf_set(g.conf, "CROWDED_OUTPUT_MB_S", "0", &e), 0);
	share_begin(held, quota_use_cpu_shares(a));
	make_busy(a, held, 1);
	end_a_run(b);
	tick(a, held, 1, true);
	assert_false(share_is_due(held, a, g.conf, MANY_CORES, &s));
}

TEST_MAIN(ground_set_up, ground_tear_down)

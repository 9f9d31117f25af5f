#include "supervisor/master/restart.h"
#include "tests/unit/test.h"

static const struct restart_policy policy = {.first_ms = 100,
    .max_ms = 60000,
    .healthy_ms = 1000,
    .burst = 5,
    .window_ms = 60000,
    .throttle_ms = 30000};

/* Wait statuses as the kernel makes them. */
#define EXITED(status) ((status) << 8)
#define KILLED(sig) (sig)

TEST(failures_at_start_back_off_to_the_limit)
{
	static const uint32_t want[] = {100, 200, 400, 800, 1600, 3200, 6400,
	    12800, 25600, 51200, 60000, 60000};
	struct restart r = {0};

	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		assert_int_equal(restart_next(&policy, &r, 1005, 0), want[i]);
}

TEST(the_back_off_stays_at_its_limit_for_ever)
{
	struct restart r = {.failures = 30};

	for (int i = 0; i < 1000; i++)
		assert_int_equal(restart_next(&policy, &r, 1005, 0), 60000);
}

TEST(finished_work_clears_the_count)
{
	struct restart r = {.failures = 7};

	assert_int_equal(restart_next(&policy, &r, 1005, 1), 0);
	assert_int_equal(r.failures, 0);
	assert_int_equal(restart_next(&policy, &r, 1005, 0), 100);
}

TEST(a_long_enough_ready_life_clears_the_count)
{
	struct restart r = {.failures = 7, .ready_ms = 5000};

	assert_int_equal(restart_next(&policy, &r, 6000, 0), 0);
	assert_int_equal(r.failures, 0);
}

TEST(a_short_ready_life_does_not)
{
	struct restart r = {.failures = 1, .ready_ms = 5000};

	assert_int_equal(restart_next(&policy, &r, 5999, 0), 200);
}

TEST(readiness_of_an_earlier_life_does_not_count)
{
	struct restart r = {.ready_ms = 5000};

	assert_int_equal(restart_next(&policy, &r, 9000, 0), 0);
	assert_int_equal(restart_next(&policy, &r, 90000, 0), 100);
}

TEST(the_sixth_death_in_the_window_throttles)
{
	struct restart_burst b = {.count = 0};

	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(restart_burst_add(&policy, &b, 100000 + i), 0);
	assert_int_equal(restart_burst_add(&policy, &b, 160000), 30000);
}

TEST(deaths_outside_the_window_are_forgotten)
{
	struct restart_burst b = {.count = 0};

	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(restart_burst_add(&policy, &b, 100000 + i), 0);
	/* The first left the window: five are in it. */
	assert_int_equal(restart_burst_add(&policy, &b, 160001), 0);
	assert_int_equal(restart_burst_add(&policy, &b, 160001), 30000);
}

TEST(slow_deaths_never_throttle)
{
	struct restart_burst b = {.count = 0};

	for (uint64_t i = 1; i < 1000; i++)
		assert_int_equal(restart_burst_add(&policy, &b, 15000 * i), 0);
}

TEST(the_count_begins_anew_after_throttling)
{
	struct restart_burst b = {.count = 0};

	for (int i = 0; i < 5; i++)
		assert_int_equal(restart_burst_add(&policy, &b, 1000), 0);
	assert_int_equal(restart_burst_add(&policy, &b, 1000), 30000);
	for (int i = 0; i < 5; i++)
		assert_int_equal(restart_burst_add(&policy, &b, 1001), 0);
	assert_int_equal(restart_burst_add(&policy, &b, 1001), 30000);
}

TEST(deaths_right_after_boot_count_too)
{
	struct restart_burst b = {.count = 0};

	for (int i = 0; i < 5; i++)
		assert_int_equal(restart_burst_add(&policy, &b, 10), 0);
	assert_int_equal(restart_burst_add(&policy, &b, 10), 30000);
}

TEST(a_burst_above_the_ring_never_throttles)
{
	struct restart_policy patient = policy;
	struct restart_burst b = {.count = 0};

	patient.burst = RESTART_BURST_MAX;
	for (int i = 0; i < 10 * RESTART_BURST_MAX; i++)
		assert_int_equal(restart_burst_add(&patient, &b, 1000), 0);
}

TEST(exit_77_and_78_are_refusals)
{
	assert_int_equal(restart_read_status(EXITED(77)), RESTART_REFUSED);
	assert_int_equal(restart_read_status(EXITED(78)), RESTART_REFUSED);
}

TEST(exit_0_is_leaving)
{
	assert_int_equal(restart_read_status(EXITED(0)), RESTART_LEFT);
}

TEST(all_other_ends_are_deaths)
{
	static const int statuses[] = {EXITED(1), EXITED(70), EXITED(71),
	    EXITED(76), EXITED(79), EXITED(255), KILLED(6), KILLED(9),
	    KILLED(11), KILLED(15), KILLED(77), KILLED(11) | 0x80};

	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		assert_int_equal(
		    restart_read_status(statuses[i]), RESTART_DIED);
}

TEST_MAIN(NULL, NULL)

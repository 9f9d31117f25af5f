#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "supervisor/master/restart.h"

static const struct restart_policy policy = {.first_ms = 100,
    .max_ms = 60000,
    .healthy_ms = 1000,
    .burst = 5,
    .window_ms = 60000,
    .throttle_ms = 30000};

/* Wait statuses as the kernel makes them. */
#define EXITED(status) ((status) << 8)
#define KILLED(sig) (sig)

static void
test_failures_at_start_back_off_to_the_limit(void **state)
{
	static const uint32_t want[] = {100, 200, 400, 800, 1600, 3200, 6400,
	    12800, 25600, 51200, 60000, 60000};
	struct restart r = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		assert_int_equal(restart_next(&policy, &r, 1005, 0), want[i]);
}

static void
test_the_back_off_stays_at_its_limit_for_ever(void **state)
{
	struct restart r = {.failures = 30};

	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(restart_next(&policy, &r, 1005, 0), 60000);
}

static void
test_finished_work_clears_the_count(void **state)
{
	struct restart r = {.failures = 7};

	(void)state;
	assert_int_equal(restart_next(&policy, &r, 1005, 1), 0);
	assert_int_equal(r.failures, 0);
	assert_int_equal(restart_next(&policy, &r, 1005, 0), 100);
}

static void
test_a_long_enough_ready_life_clears_the_count(void **state)
{
	struct restart r = {.failures = 7, .ready_ms = 5000};

	(void)state;
	assert_int_equal(restart_next(&policy, &r, 6000, 0), 0);
	assert_int_equal(r.failures, 0);
}

static void
test_a_short_ready_life_does_not(void **state)
{
	struct restart r = {.failures = 1, .ready_ms = 5000};

	(void)state;
	assert_int_equal(restart_next(&policy, &r, 5999, 0), 200);
}

static void
test_readiness_of_an_earlier_life_does_not_count(void **state)
{
	struct restart r = {.ready_ms = 5000};

	(void)state;
	assert_int_equal(restart_next(&policy, &r, 9000, 0), 0);
	assert_int_equal(restart_next(&policy, &r, 90000, 0), 100);
}

static void
test_the_sixth_death_in_the_window_throttles(void **state)
{
	struct restart_burst b = {.count = 0};

	(void)state;
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(restart_burst_add(&policy, &b, 100000 + i), 0);
	assert_int_equal(restart_burst_add(&policy, &b, 160000), 30000);
}

static void
test_deaths_outside_the_window_are_forgotten(void **state)
{
	struct restart_burst b = {.count = 0};

	(void)state;
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(restart_burst_add(&policy, &b, 100000 + i), 0);
	/* The first left the window: five are in it. */
	assert_int_equal(restart_burst_add(&policy, &b, 160001), 0);
	assert_int_equal(restart_burst_add(&policy, &b, 160001), 30000);
}

static void
test_slow_deaths_never_throttle(void **state)
{
	struct restart_burst b = {.count = 0};

	(void)state;
	for (uint64_t i = 1; i < 1000; i++)
		assert_int_equal(restart_burst_add(&policy, &b, 15000 * i), 0);
}

static void
test_the_count_begins_anew_after_throttling(void **state)
{
	struct restart_burst b = {.count = 0};

	(void)state;
	for (int i = 0; i < 5; i++)
		assert_int_equal(restart_burst_add(&policy, &b, 1000), 0);
	assert_int_equal(restart_burst_add(&policy, &b, 1000), 30000);
	for (int i = 0; i < 5; i++)
		assert_int_equal(restart_burst_add(&policy, &b, 1001), 0);
	assert_int_equal(restart_burst_add(&policy, &b, 1001), 30000);
}

static void
test_deaths_right_after_boot_count_too(void **state)
{
	struct restart_burst b = {.count = 0};

	(void)state;
	for (int i = 0; i < 5; i++)
		assert_int_equal(restart_burst_add(&policy, &b, 10), 0);
	assert_int_equal(restart_burst_add(&policy, &b, 10), 30000);
}

static void
test_a_burst_above_the_ring_never_throttles(void **state)
{
	struct restart_policy patient = policy;
	struct restart_burst b = {.count = 0};

	(void)state;
	patient.burst = RESTART_BURST_MAX;
	for (int i = 0; i < 10 * RESTART_BURST_MAX; i++)
		assert_int_equal(restart_burst_add(&patient, &b, 1000), 0);
}

static void
test_exit_77_and_78_are_refusals(void **state)
{
	(void)state;
	assert_int_equal(restart_read_status(EXITED(77)), RESTART_REFUSED);
	assert_int_equal(restart_read_status(EXITED(78)), RESTART_REFUSED);
}

static void
test_exit_0_is_leaving(void **state)
{
	(void)state;
	assert_int_equal(restart_read_status(EXITED(0)), RESTART_LEFT);
}

static void
test_all_other_ends_are_deaths(void **state)
{
	static const int statuses[] = {EXITED(1), EXITED(70), EXITED(71),
	    EXITED(76), EXITED(79), EXITED(255), KILLED(6), KILLED(9),
	    KILLED(11), KILLED(15), KILLED(77), KILLED(11) | 0x80};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		assert_int_equal(
		    restart_read_status(statuses[i]), RESTART_DIED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_failures_at_start_back_off_to_the_limit),
	    cmocka_unit_test(test_the_back_off_stays_at_its_limit_for_ever),
	    cmocka_unit_test(test_finished_work_clears_the_count),
	    cmocka_unit_test(test_a_long_enough_ready_life_clears_the_count),
	    cmocka_unit_test(test_a_short_ready_life_does_not),
	    cmocka_unit_test(test_readiness_of_an_earlier_life_does_not_count),
	    cmocka_unit_test(test_the_sixth_death_in_the_window_throttles),
	    cmocka_unit_test(test_deaths_outside_the_window_are_forgotten),
	    cmocka_unit_test(test_slow_deaths_never_throttle),
	    cmocka_unit_test(test_the_count_begins_anew_after_throttling),
	    cmocka_unit_test(test_deaths_right_after_boot_count_too),
	    cmocka_unit_test(test_a_burst_above_the_ring_never_throttles),
	    cmocka_unit_test(test_exit_77_and_78_are_refusals),
	    cmocka_unit_test(test_exit_0_is_leaving),
	    cmocka_unit_test(test_all_other_ends_are_deaths),
	};

	return cmocka_run_group_tests_name("restart", tests, NULL, NULL);
}

#include "tests/unit/worker/fixture.h"

#include "worker/link/pace.h"

static void
test_without_a_rate_nothing_waits(void **state)
{
	struct pace p;

	(void)state;
	pace_init(&p, 0, 1000);
	assert_int_equal(pace_charge(&p, SIZE_MAX / 4, 1000), 0);
	assert_int_equal(pace_charge(&p, SIZE_MAX / 4, 1000), 0);
}

static void
test_a_second_of_it_is_kept_and_no_more(void **state)
{
	struct pace p;

	(void)state;
	pace_init(&p, 1000, 0);
	assert_int_equal(pace_charge(&p, 1000, 0), 0);
	assert_int_equal(pace_charge(&p, 500, 0), 501);
	/* It has waited, and then rested for long. */
	assert_int_equal(pace_charge(&p, 1000, 100000), 0);
	assert_int_equal(pace_charge(&p, 1, 100000), 2);
}

static void
test_over_time_it_is_the_rate(void **state)
{
	uint64_t now = 5, total = 0;
	struct pace p;

	(void)state;
	pace_init(&p, 1 << 20, now);
	while (now < 60005) {
		uint64_t wait = pace_charge(&p, 70000, now);

		total += 70000;
		now += wait == 0 ? 1 : wait;
	}
	assert_in_range(total, UINT64_C(59) << 20, UINT64_C(62) << 20);
}

static void
test_a_new_rate_holds_at_once(void **state)
{
	struct pace p;

	(void)state;
	pace_init(&p, 0, 0);
	pace_set(&p, 1000, 0);
	assert_int_equal(pace_charge(&p, 1000, 0), 0);
	assert_int_equal(pace_charge(&p, 1000, 0), 1001);
	pace_set(&p, 0, 0);
	assert_int_equal(pace_charge(&p, 100000, 0), 0);
}

static void
test_what_was_saved_up_is_cut_to_a_lower_rate(void **state)
{
	struct pace p;

	(void)state;
	pace_init(&p, 100000, 0);
	pace_set(&p, 1000, 0);
	assert_int_equal(pace_charge(&p, 2000, 0), 1001);
}

static void
test_it_is_never_above_the_most(void **state)
{
	struct pace p;

	(void)state;
	pace_init(&p, 1000, 0);
	pace_set(&p, 5000, 0);
	assert_int_equal(pace_charge(&p, 2000, 0), 1001);
	pace_init(&p, UINT64_MAX, 0);
	assert_int_equal(pace_charge(&p, 1000, 999), 0);
	pace_set(&p, UINT64_MAX, 0);
	assert_int_equal(pace_charge(&p, 1000, 1998), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_without_a_rate_nothing_waits),
	    cmocka_unit_test(test_a_second_of_it_is_kept_and_no_more),
	    cmocka_unit_test(test_over_time_it_is_the_rate),
	    cmocka_unit_test(test_a_new_rate_holds_at_once),
	    cmocka_unit_test(test_what_was_saved_up_is_cut_to_a_lower_rate),
	    cmocka_unit_test(test_it_is_never_above_the_most),
	};

	return cmocka_run_group_tests_name("pace", tests, NULL, NULL);
}

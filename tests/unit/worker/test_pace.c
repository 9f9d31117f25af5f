#include "tests/unit/worker/fixture.h"

#include "worker/link/link.h"

TEST(without_a_rate_nothing_waits)
{
	struct pace p;

	pace_init(&p, 0, 1000);
	assert_int_equal(pace_charge(&p, SIZE_MAX / 4, 1000), 0);
	assert_int_equal(pace_charge(&p, SIZE_MAX / 4, 1000), 0);
}

TEST(a_second_of_it_is_kept_and_no_more)
{
	struct pace p;

	pace_init(&p, 1000, 0);
	assert_int_equal(pace_charge(&p, 1000, 0), 0);
	assert_int_equal(pace_charge(&p, 500, 0), 501);
	/* It has waited, and then rested for long. */
	assert_int_equal(pace_charge(&p, 1000, 100000), 0);
	assert_int_equal(pace_charge(&p, 1, 100000), 2);
}

TEST(over_time_it_is_the_rate)
{
	uint64_t now = 5, total = 0;
	struct pace p;

	pace_init(&p, 1 << 20, now);
	while (now < 60005) {
		uint64_t wait = pace_charge(&p, 70000, now);

		total += 70000;
		now += wait == 0 ? 1 : wait;
	}
	assert_in_range(total, UINT64_C(59) << 20, UINT64_C(62) << 20);
}

TEST(a_new_rate_holds_at_once)
{
	struct pace p;

	pace_init(&p, 0, 0);
	pace_set(&p, 1000, 0);
	assert_int_equal(pace_charge(&p, 1000, 0), 0);
	assert_int_equal(pace_charge(&p, 1000, 0), 1001);
	pace_set(&p, 0, 0);
	assert_int_equal(pace_charge(&p, 100000, 0), 0);
}

TEST(what_was_saved_up_is_cut_to_a_lower_rate)
{
	struct pace p;

	pace_init(&p, 100000, 0);
	pace_set(&p, 1000, 0);
	assert_int_equal(pace_charge(&p, 2000, 0), 1001);
}

TEST(it_is_never_above_the_most)
{
	struct pace p;

	pace_init(&p, 1000, 0);
	pace_set(&p, 5000, 0);
	assert_int_equal(pace_charge(&p, 2000, 0), 1001);
	pace_init(&p, UINT64_MAX, 0);
	assert_int_equal(pace_charge(&p, 1000, 999), 0);
	pace_set(&p, UINT64_MAX, 0);
	assert_int_equal(pace_charge(&p, 1000, 1998), 0);
}

TEST_MAIN(NULL, NULL)

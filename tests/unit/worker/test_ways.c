#include "tests/unit/worker/two_ways.h"

static const struct carrier_ops unix_ops = {.name = "unix"};
static const struct carrier_ops bridge_ops = {.name = "bridge"};

static int
setup(void **state)
{
	(void)state;
	two_ways_init(&unix_ops, &bridge_ops, NULL);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	two_ways_clear();
	return 0;
}

TEST(who_asks_before_it_is_known_has_it_found_out_and_waits)
{
	(void)two_ways_ask();
	assert_int_equal(two.wanted, 0); /* not inside the call */
	fixture_settle(two.base);
	assert_int_equal(two.wanted, 1);
	assert_int_equal(two.told, 0);
	ways_choose(&two.ways, two.other, "tried");
	assert_int_equal(two.told, 1);
	assert_int_equal(two.rc, 0);
	assert_ptr_equal(two.way, two.other);
	assert_string_equal(two.ways.why, "tried");
	assert_int_equal(two.chosen, 1);
}

TEST(who_asks_afterwards_is_told_in_a_later_turn)
{
	ways_choose(&two.ways, two.first, "set");
	(void)two_ways_ask();
	assert_int_equal(two.told, 0);
	fixture_settle(two.base);
	assert_int_equal(two.told, 1);
	assert_ptr_equal(two.way, two.first);
	assert_int_equal(two.wanted, 0);
}

TEST(what_could_not_be_found_out_is_tried_again_for_the_next)
{
	struct err e;

	(void)err_set(&e, ERR_BACKEND, "no engine");
	(void)two_ways_ask();
	fixture_settle(two.base);
	ways_fail(&two.ways, ERR_BACKEND, &e);
	assert_int_equal(two.rc, ERR_BACKEND);
	assert_null(two.ways.chosen);
	(void)two_ways_ask();
	fixture_settle(two.base);
	assert_int_equal(two.wanted, 2);
	ways_fail(&two.ways, ERR_BACKEND, &e);
	assert_int_equal(two.told, 2);
}

TEST(who_left_is_not_told)
{
	struct way_wait *wait = two_ways_ask();

	ways_leave(&two.ways, wait);
	ways_choose(&two.ways, two.first, "set");
	fixture_settle(two.base);
	assert_int_equal(two.told, 0);
}

TEST(a_box_keeps_the_way_that_its_label_names)
{
	ways_choose(&two.ways, two.other, "set");
	assert_ptr_equal(ways_of(&two.ways, "unix"), two.first);
	assert_ptr_equal(ways_of(&two.ways, "bridge"), two.other);
	assert_ptr_equal(
	    ways_of(&two.ways, ""), two.first); /* as they all were */
	assert_null(ways_of(&two.ways, "pigeon"));
}

TEST(a_runtime_with_a_kernel_of_its_own_has_a_way_of_its_own)
{
	ways_choose(&two.ways, two.first, "tried");
	assert_ptr_equal(ways_for(&two.ways, "runsc"), two.first);
	ways_set_own_kernel(&two.ways, two.other);
	assert_ptr_equal(ways_for(&two.ways, "runsc"), two.other);
	assert_ptr_equal(ways_for(&two.ways, "runc"), two.first);
	assert_ptr_equal(ways_for(&two.ways, ""), two.first);
}

TEST_MAIN(setup, teardown)

#include "tests/unit/test.h"

#include <event2/event.h>

#include "worker/link/ways.h"

static const struct carrier_ops unix_ops = {.name = "unix"};
static const struct carrier_ops bridge_ops = {.name = "bridge"};
static struct carrier by_unix = {&unix_ops}, by_bridge = {&bridge_ops};

static struct {
	struct event_base *base;
	struct ways w;
	const struct way *first, *second;
	unsigned int wanted, chosen, told;
	int rc;
	const struct way *way;
} fix;

static void
wanted_cb(void *arg)
{
	(void)arg;
	fix.wanted++;
}

static void
chosen_cb(void *arg)
{
	(void)arg;
	fix.chosen++;
}

static void
told_cb(int rc, const struct way *way, const struct err *why, void *arg)
{
	(void)why;
	(void)arg;
	fix.told++;
	fix.rc = rc;
	fix.way = way;
}

static void
settle(void)
{
	for (int i = 0; i < 3; i++)
		(void)event_base_loop(fix.base, EVLOOP_NONBLOCK);
}

static int
setup(void **state)
{
	(void)state;
	memset(&fix, 0, sizeof(fix));
	fix.base = event_base_new();
	ways_init(&fix.w, fix.base, wanted_cb, chosen_cb, NULL);
	fix.first = ways_add(&fix.w, &by_unix, NULL);
	fix.second = ways_add(&fix.w, &by_bridge, NULL);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	event_base_free(fix.base);
	return 0;
}

TEST(who_asks_before_it_is_known_has_it_found_out_and_waits)
{
	(void)ways_ask(&fix.w, told_cb, NULL);
	assert_int_equal(fix.wanted, 0); /* not inside the call */
	settle();
	assert_int_equal(fix.wanted, 1);
	assert_int_equal(fix.told, 0);
	ways_choose(&fix.w, fix.second, "tried");
	assert_int_equal(fix.told, 1);
	assert_int_equal(fix.rc, 0);
	assert_ptr_equal(fix.way, fix.second);
	assert_string_equal(fix.w.why, "tried");
	assert_int_equal(fix.chosen, 1);
}

TEST(who_asks_afterwards_is_told_in_a_later_turn)
{
	ways_choose(&fix.w, fix.first, "set");
	(void)ways_ask(&fix.w, told_cb, NULL);
	assert_int_equal(fix.told, 0);
	settle();
	assert_int_equal(fix.told, 1);
	assert_ptr_equal(fix.way, fix.first);
	assert_int_equal(fix.wanted, 0);
}

TEST(what_could_not_be_found_out_is_tried_again_for_the_next)
{
	struct err e;

	(void)err_set(&e, ERR_BACKEND, "no engine");
	(void)ways_ask(&fix.w, told_cb, NULL);
	settle();
	ways_fail(&fix.w, ERR_BACKEND, &e);
	assert_int_equal(fix.rc, ERR_BACKEND);
	assert_null(fix.w.chosen);
	(void)ways_ask(&fix.w, told_cb, NULL);
	settle();
	assert_int_equal(fix.wanted, 2);
	ways_fail(&fix.w, ERR_BACKEND, &e);
	assert_int_equal(fix.told, 2);
}

TEST(who_left_is_not_told)
{
	struct way_wait *wait = ways_ask(&fix.w, told_cb, NULL);

	ways_leave(&fix.w, wait);
	ways_choose(&fix.w, fix.first, "set");
	settle();
	assert_int_equal(fix.told, 0);
}

TEST(a_box_keeps_the_way_that_its_label_names)
{
	ways_choose(&fix.w, fix.second, "set");
	assert_ptr_equal(ways_of(&fix.w, "unix"), fix.first);
	assert_ptr_equal(ways_of(&fix.w, "bridge"), fix.second);
	assert_ptr_equal(ways_of(&fix.w, ""), fix.first); /* as they all were */
	assert_null(ways_of(&fix.w, "pigeon"));
}

TEST(a_runtime_with_a_kernel_of_its_own_has_a_way_of_its_own)
{
	ways_choose(&fix.w, fix.first, "tried");
	assert_ptr_equal(ways_for(&fix.w, "runsc"), fix.first);
	ways_set_own_kernel(&fix.w, fix.second);
	assert_ptr_equal(ways_for(&fix.w, "runsc"), fix.second);
	assert_ptr_equal(ways_for(&fix.w, "runc"), fix.first);
	assert_ptr_equal(ways_for(&fix.w, ""), fix.first);
}

TEST_MAIN(setup, teardown)

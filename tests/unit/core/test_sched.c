#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "supervisor/core/sched.h"

#define ITEMS 8

struct thing {
	struct sched_item item;
	char name;
};

static struct sched *sched;
static struct sched_queue one, two;
static struct thing t[ITEMS];
static char started[ITEMS + 1];
static struct thing *leaves_at_once;

static void
start(struct sched_item *item)
{
	struct thing *thing = (struct thing *)item;
	size_t n = strlen(started);

	started[n] = thing->name;
	started[n + 1] = '\0';
	if (thing == leaves_at_once) {
		sched_leave(item);
		sched_turn(sched); /* inside a turn: must do no harm */
	}
}

static int
set_up(void **state)
{
	(void)state;
	memset(t, 0, sizeof(t));
	memset(started, 0, sizeof(started));
	leaves_at_once = NULL;
	for (int i = 0; i < ITEMS; i++)
		t[i].name = (char)('a' + i);
	sched = sched_new(start);
	sched_queue_init(sched, &one, 2);
	sched_queue_init(sched, &two, 2);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	sched_queue_clear(&one);
	sched_queue_clear(&two);
	sched_free(sched);
	return 0;
}

static void
add(struct sched_queue *q, int i, bool lock)
{
	sched_add(q, &t[i].item, lock);
}

static void
test_nothing_starts_while_the_gate_is_shut(void **state)
{
	(void)state;
	assert_int_equal(sched_queue_waits(&one), SCHED_NOTHING_WAITS);
	add(&one, 0, false);
	sched_turn(sched);
	assert_string_equal(started, "");
	assert_int_equal(sched_queue_waits(&one), SCHED_WAITS_FOR_SANDBOX);
	sched_queue_gate(&one, SCHED_GATE_OPEN);
	assert_int_equal(sched_queue_waits(&one), SCHED_WAITS_FOR_TURN);
	sched_turn(sched);
	assert_string_equal(started, "a");
}

static void
test_only_so_many_run_at_a_time_in_order(void **state)
{
	(void)state;
	sched_queue_gate(&one, SCHED_GATE_OPEN);
	for (int i = 0; i < 4; i++)
		add(&one, i, false);
	sched_turn(sched);
	assert_string_equal(started, "ab");
	assert_int_equal(sched_queue_waits(&one), SCHED_WAITS_FOR_RUNS);
	sched_leave(&t[1].item);
	sched_turn(sched);
	assert_string_equal(started, "abc");
}

static void
test_the_lock_is_held_by_one_and_others_pass(void **state)
{
	(void)state;
	sched_queue_gate(&one, SCHED_GATE_OPEN);
	add(&one, 0, true);
	add(&one, 1, true);
	add(&one, 2, false);
	sched_turn(sched);
	assert_string_equal(started, "ac");
	sched_leave(&t[2].item);
	sched_turn(sched);
	assert_int_equal(sched_queue_waits(&one), SCHED_WAITS_FOR_LOCK);
	sched_leave(&t[0].item);
	sched_turn(sched);
	assert_string_equal(started, "acb");
}

static void
test_queues_take_turns(void **state)
{
	(void)state;
	add(&one, 0, false);
	add(&one, 1, false);
	add(&two, 2, false);
	add(&two, 3, false);
	sched_queue_gate(&one, SCHED_GATE_OPEN);
	sched_queue_gate(&two, SCHED_GATE_OPEN);
	sched_turn(sched);
	assert_string_equal(started, "acbd");
}

static void
test_an_item_may_be_over_when_it_starts(void **state)
{
	(void)state;
	one.limit = 1;
	leaves_at_once = &t[0];
	add(&one, 0, false);
	add(&one, 1, false);
	sched_queue_gate(&one, SCHED_GATE_OPEN);
	sched_turn(sched);
	assert_string_equal(started, "ab");
	assert_int_equal(one.nrunning, 1);
}

static void
test_what_waits_may_leave(void **state)
{
	(void)state;
	add(&one, 0, true);
	add(&one, 1, false);
	sched_leave(&t[0].item);
	sched_leave(&t[0].item);
	sched_queue_gate(&one, SCHED_GATE_OPEN);
	sched_turn(sched);
	assert_string_equal(started, "b");
	assert_ptr_equal(sched_queue_first(&one), &t[1].item);
	sched_leave(&t[1].item);
	assert_true(sched_queue_is_empty(&one));
}

static void
count(struct sched_item *item, void *arg)
{
	(void)item;
	(*(unsigned int *)arg)++;
}

static void
test_what_waits_moves_in_its_order_behind_what_is_there(void **state)
{
	unsigned int moved = 0;

	(void)state;
	two.limit = ITEMS;
	sched_queue_gate(&one, SCHED_GATE_OPEN);
	add(&one, 0, false);
	sched_turn(sched); /* runs: it stays */
	sched_queue_gate(&one, SCHED_GATE_SHUT);
	add(&two, 7, false);
	add(&one, 1, true);
	add(&one, 2, false);
	add(&one, 3, true);
	sched_move_waiting(&one, &two, count, &moved);
	assert_int_equal(moved, 3);
	sched_queue_gate(&two, SCHED_GATE_OPEN);
	sched_turn(sched);
	assert_string_equal(started, "ahbc");
	sched_leave(&t[1].item);
	sched_turn(sched);
	assert_string_equal(started, "ahbcd");
}

static void
test_what_ran_before_takes_its_lock_again(void **state)
{
	(void)state;
	sched_add_running(&one, &t[0].item, true);
	sched_add_running(&one, &t[1].item, true);
	assert_ptr_equal(one.lock_holder, &t[0].item);
	assert_int_equal(one.nrunning, 2);
	assert_string_equal(started, "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	    TEST(test_nothing_starts_while_the_gate_is_shut),
	    TEST(test_only_so_many_run_at_a_time_in_order),
	    TEST(test_the_lock_is_held_by_one_and_others_pass),
	    TEST(test_queues_take_turns),
	    TEST(test_an_item_may_be_over_when_it_starts),
	    TEST(test_what_waits_may_leave),
	    TEST(test_what_waits_moves_in_its_order_behind_what_is_there),
	    TEST(test_what_ran_before_takes_its_lock_again),
	};

	return cmocka_run_group_tests_name("sched", tests, NULL, NULL);
}

#include <string.h>

#include "supervisor/core/sched.h"
#include "tests/unit/test.h"

#define ITEMS 8

struct thing {
	struct sched_item item;
	char name;
};

static struct sched *sched;
static struct sched_lane lane;
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
	sched_lane_init(sched, &lane);
	sched_queue_init(&lane, &one, 2);
	sched_queue_init(&lane, &two, 2);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	sched_queue_clear(&one);
	sched_queue_clear(&two);
	sched_lane_clear(&lane);
	sched_free(sched);
	return 0;
}

static void
add(struct sched_queue *q, int i, bool lock)
{
	sched_add(q, &t[i].item, lock);
}

TEST_WITH(set_up, tear_down, nothing_starts_while_the_gate_is_shut)
{
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

TEST_WITH(set_up, tear_down, only_so_many_run_at_a_time_in_order)
{
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

TEST_WITH(set_up, tear_down, the_lock_is_held_by_one_and_others_pass)
{
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

TEST_WITH(set_up, tear_down, queues_take_turns)
{
	add(&one, 0, false);
	add(&one, 1, false);
	add(&two, 2, false);
	add(&two, 3, false);
	sched_queue_gate(&one, SCHED_GATE_OPEN);
	sched_queue_gate(&two, SCHED_GATE_OPEN);
	sched_turn(sched);
	assert_string_equal(started, "acbd");
}

TEST_WITH(set_up, tear_down, an_item_may_be_over_when_it_starts)
{
	one.limit = 1;
	leaves_at_once = &t[0];
	add(&one, 0, false);
	add(&one, 1, false);
	sched_queue_gate(&one, SCHED_GATE_OPEN);
	sched_turn(sched);
	assert_string_equal(started, "ab");
	assert_int_equal(one.nrunning, 1);
}

TEST_WITH(set_up, tear_down, what_waits_may_leave)
{
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

TEST_WITH(set_up, tear_down, what_waits_moves_in_its_order_behind_what_is_there)
{
	unsigned int moved = 0;

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

TEST_WITH(set_up, tear_down, what_ran_before_takes_its_lock_again)
{
	sched_add_running(&one, &t[0].item, true);
	sched_add_running(&one, &t[1].item, true);
	assert_ptr_equal(one.lock_holder, &t[0].item);
	assert_int_equal(one.nrunning, 2);
	assert_string_equal(started, "");
}

/* ---- lanes */

#define CROWD 500

struct flood {
	struct sched_lane lane;
	struct sched_queue queue;
	struct sched_item items[CROWD];
};

static struct flood a, b;
static struct sched_item *last;

static void
start_one(struct sched_item *item)
{
	last = item;
}

/* Of n starts with one place, how many are a's?  What started is over. */
static unsigned int
share_of_a(unsigned int n)
{
	unsigned int count = 0;

	for (; n > 0; n--) {
		last = NULL;
		sched_turn(sched);
		assert_non_null(last);
		count += last->queue == &a.queue;
		sched_leave(last);
	}
	return count;
}

static void
flood_open(struct flood *f, unsigned int weight)
{
	memset(f, 0, sizeof(*f));
	sched_lane_init(sched, &f->lane);
	sched_lane_set(&f->lane, 0, weight);
	sched_queue_init(&f->lane, &f->queue, CROWD);
	sched_queue_gate(&f->queue, SCHED_GATE_OPEN);
}

static void
flood_fill(struct flood *f, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		sched_add(&f->queue, &f->items[i], false);
}

static int
set_up_lanes(void **state)
{
	(void)state;
	sched = sched_new(start_one);
	sched_set_places(sched, 1);
	flood_open(&a, 1);
	flood_open(&b, 3);
	return 0;
}

static int
tear_down_lanes(void **state)
{
	struct flood *both[] = {&a, &b};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(both); i++) {
		for (size_t k = 0; k < CROWD; k++)
			sched_leave(&both[i]->items[k]);
		assert_int_equal(both[i]->lane.nwaiting, 0);
		assert_int_equal(both[i]->lane.nrunning, 0);
		sched_queue_clear(&both[i]->queue);
		sched_lane_clear(&both[i]->lane);
	}
	sched_free(sched);
	return 0;
}

TEST(places_are_shared_by_weight)
{
	unsigned int of_a;

	flood_fill(&a, CROWD);
	flood_fill(&b, CROWD);
	of_a = share_of_a(400);
	assert_in_range(of_a, 95, 105);
	/* A changed weight holds at once. */
	sched_lane_set(&a.lane, 0, 9);
	of_a = share_of_a(100);
	assert_in_range(of_a, 70, 80);
}

TEST(who_comes_late_starts_before_a_backlog)
{
	flood_fill(&b, CROWD);
	assert_int_equal(share_of_a(200), 0);
	flood_fill(&a, 1);
	assert_int_equal(share_of_a(2), 1);
	/* And what was idle saved nothing up. */
	assert_int_equal(share_of_a(100), 0);
	flood_fill(&a, CROWD / 2);
	assert_in_range(share_of_a(100), 24, 28);
}

TEST(a_full_lane_holds_up_only_itself)
{
	sched_set_places(sched, 0);
	sched_lane_set(&a.lane, 2, 1);
	flood_fill(&a, 5);
	flood_fill(&b, 5);
	sched_turn(sched);
	assert_int_equal(a.lane.nrunning, 2);
	assert_int_equal(a.lane.nwaiting, 3);
	assert_int_equal(b.lane.nrunning, 5);
	assert_int_equal(sched_item_waits(&a.items[4]), SCHED_WAITS_FOR_QUOTA);
	sched_leave(&a.items[0]);
	sched_turn(sched);
	assert_int_equal(a.lane.nrunning, 2);
	sched_lane_set(&a.lane, 4, 1);
	sched_turn(sched);
	assert_int_equal(a.lane.nrunning, 4);
	assert_int_equal(sched_item_waits(&a.items[4]), SCHED_NOTHING_WAITS);
}

TEST(what_waits_for_a_place_says_so)
{
	flood_fill(&a, 2);
	sched_turn(sched);
	assert_int_equal(sched_item_waits(&a.items[1]), SCHED_WAITS_FOR_PLACE);
	sched_set_places(sched, 2);
	sched_turn(sched);
	assert_int_equal(a.lane.nrunning, 2);
}

TEST_MAIN(set_up_lanes, tear_down_lanes)

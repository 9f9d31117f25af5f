#include <stdio.h>
#include <string.h>

#include "supervisor/core/bus.h"
#include "tests/unit/test.h"

static struct bus bus;
static struct bus_member a, b, c;
static char heard[64], A[] = "a", B[] = "b", C[] = "c";

static int
set_up(void **state)
{
	(void)state;
	bus_init(&bus);
	heard[0] = '\0';
	return 0;
}

static void
hear(const struct bus_event *ev, void *arg)
{
	(void)ev;
	(void)strncat(heard, arg, sizeof(heard) - strlen(heard) - 1);
}

static void
hear_and_leave(const struct bus_event *ev, void *arg)
{
	hear(ev, arg);
	bus_leave(&bus, &a);
}

static void
hear_and_drop_b(const struct bus_event *ev, void *arg)
{
	hear(ev, arg);
	bus_leave(&bus, &b);
}

static void
hear_and_tell_on(const struct bus_event *ev, void *arg)
{
	const struct bus_event more = {.kind = BUS_RUN_ENDED};

	hear(ev, arg);
	if (ev->kind != BUS_RUN_GREW)
		return;
	bus_leave(&bus, &b); /* the outer walk's next */
	bus_tell(&bus, &more);
}

static void
tell(void)
{
	const struct bus_event ev = {.kind = BUS_RUN_GREW};

	bus_tell(&bus, &ev);
}

TEST(members_hear_in_the_order_they_joined)
{
	bus_join(&bus, &a, hear, A);
	bus_join(&bus, &b, hear, B);
	tell();
	assert_string_equal(heard, "ab");
	bus_leave(&bus, &a);
	bus_leave(&bus, &a);
	tell();
	assert_string_equal(heard, "abb");
	bus_leave(&bus, &b);
	assert_true(TAILQ_EMPTY(&bus.members));
}

TEST(a_member_may_leave_while_it_is_told)
{
	bus_join(&bus, &a, hear_and_leave, A);
	bus_join(&bus, &b, hear, B);
	tell();
	tell();
	assert_string_equal(heard, "abb");
}

TEST(the_next_member_may_be_taken_away)
{
	bus_join(&bus, &a, hear_and_drop_b, A);
	bus_join(&bus, &b, hear, B);
	bus_join(&bus, &c, hear, C);
	tell();
	assert_string_equal(heard, "ac");
}

TEST(telling_inside_telling_keeps_both_walks_right)
{
	bus_join(&bus, &a, hear_and_tell_on, A);
	bus_join(&bus, &b, hear, B);
	bus_join(&bus, &c, hear, C);
	tell();
	assert_string_equal(heard, "aacc");
}

TEST_MAIN(set_up, NULL)

/* test_turns.c - a turn that keeps the others waiting is noticed */
#include <time.h>

#include <event2/event.h>

#include "common/log.h"
#include "common/turns.h"
#include "tests/unit/test.h"

static struct event_base *base;
static bool excuse;

/* As much of the processor's time. */
static void
work_ms(long ms)
{
	clock_t until = clock() + ms * (CLOCKS_PER_SEC / 1000);

	while (clock() < until)
		;
}

static void
long_cb(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	work_ms(20);
	if (excuse)
		turns_excuse();
}

static void
break_cb(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	(void)event_base_loopbreak(base);
}

static void
run_one(event_callback_fn cb)
{
	const struct timeval soon = {0, 1000};

	assert_int_equal(
	    event_base_once(base, -1, EV_TIMEOUT, cb, NULL, &soon), 0);
	assert_int_equal(turns_run(base), 0);
}

TEST(the_longest_turn_is_known_unless_it_is_excused)
{
	base = event_base_new();
	assert_non_null(base);
	excuse = true;
	run_one(long_cb);
	assert_true(turns_longest_us() < 15000);
	excuse = false;
	run_one(long_cb);
	assert_true(turns_longest_us() >= 15000);
	event_base_free(base);
}

TEST(a_break_ends_it)
{
	const struct timeval never = {3600, 0};

	base = event_base_new();
	assert_int_equal(
	    event_base_once(base, -1, EV_TIMEOUT, long_cb, NULL, &never), 0);
	run_one(break_cb);
	event_base_free(base);
}

int
main(void)
{
	log_set_level(LOG_ERROR);
	return tests_run(NULL, NULL, NULL, NULL);
}

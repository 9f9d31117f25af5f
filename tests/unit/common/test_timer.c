#include <event2/event.h>

#include "common/timer.h"
#include "tests/unit/test.h"

static struct event_base *base;
static struct timer *timer;
static unsigned int fired;

static void
count_cb(void *arg)
{
	assert_ptr_equal(arg, &fired);
	fired++;
}

static void
free_cb(void *arg)
{
	(void)arg;
	fired++;
	timer_free(timer);
	timer = NULL;
}

static int
setup(void **state)
{
	(void)state;
	base = event_base_new();
	fired = 0;
	return base == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	(void)state;
	timer_free(timer);
	timer = NULL;
	event_base_free(base);
	return 0;
}

TEST(it_fires_once_for_each_setting)
{
	timer = timer_new(base, count_cb, &fired);
	assert_false(timer_is_set(timer));
	for (unsigned int i = 0; i < 3; i++) {
		timer_set_ms(timer, 0);
		assert_true(timer_is_set(timer));
		assert_int_equal(fired, i); /* never inside the call */
		(void)event_base_dispatch(base);
		assert_int_equal(fired, i + 1);
		assert_false(timer_is_set(timer));
	}
}

TEST(a_new_setting_voids_the_one_before)
{
	timer = timer_new(base, count_cb, &fired);
	timer_set_ms(timer, 3600000);
	timer_set_ms(timer, 1);
	(void)event_base_dispatch(base); /* ends when nothing is set */
	assert_int_equal(fired, 1);
}

TEST(a_stopped_one_does_not_fire)
{
	timer = timer_new(base, count_cb, &fired);
	timer_set_ms(timer, 0);
	timer_stop(timer);
	(void)event_base_dispatch(base);
	assert_int_equal(fired, 0);
	timer_stop(timer); /* and again */
}

TEST(it_may_be_freed_in_its_own_callback)
{
	timer = timer_new(base, free_cb, NULL);
	timer_set_ms(timer, 0);
	(void)event_base_dispatch(base);
	assert_int_equal(fired, 1);
	assert_null(timer);
}

TEST(milliseconds_become_seconds_and_microseconds)
{
	struct timeval tv = timer_timeval(61234);

	assert_int_equal(tv.tv_sec, 61);
	assert_int_equal(tv.tv_usec, 234000);
}

TEST_MAIN(setup, teardown)

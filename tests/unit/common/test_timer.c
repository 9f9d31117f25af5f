#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <event2/event.h>

#include "common/timer.h"

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

static void
test_it_fires_once_for_each_setting(void **state)
{
	(void)state;
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

static void
test_a_new_setting_voids_the_one_before(void **state)
{
	(void)state;
	timer = timer_new(base, count_cb, &fired);
	timer_set_ms(timer, 3600000);
	timer_set_ms(timer, 1);
	(void)event_base_dispatch(base); /* ends when nothing is set */
	assert_int_equal(fired, 1);
}

static void
test_a_stopped_one_does_not_fire(void **state)
{
	(void)state;
	timer = timer_new(base, count_cb, &fired);
	timer_set_ms(timer, 0);
	timer_stop(timer);
	(void)event_base_dispatch(base);
	assert_int_equal(fired, 0);
	timer_stop(timer); /* and again */
}

static void
test_it_may_be_freed_in_its_own_callback(void **state)
{
	(void)state;
	timer = timer_new(base, free_cb, NULL);
	timer_set_ms(timer, 0);
	(void)event_base_dispatch(base);
	assert_int_equal(fired, 1);
	assert_null(timer);
}

static void
test_milliseconds_become_seconds_and_microseconds(void **state)
{
	struct timeval tv = timer_timeval(61234);

	(void)state;
	assert_int_equal(tv.tv_sec, 61);
	assert_int_equal(tv.tv_usec, 234000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_it_fires_once_for_each_setting),
	    TEST(test_a_new_setting_voids_the_one_before),
	    TEST(test_a_stopped_one_does_not_fire),
	    TEST(test_it_may_be_freed_in_its_own_callback),
	    TEST(test_milliseconds_become_seconds_and_microseconds),
	};

	return cmocka_run_group_tests_name("timer", tests, NULL, NULL);
}

/* link: -Wl,--wrap=clock_mono_us -Wl,--wrap=slice_set_batch */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/slice.h"
#include "worker/crowd.h"

#define MS 1000

static uint64_t now_us;
static unsigned int changes;
static bool is_batch;

uint64_t __wrap_clock_mono_us(void);
uint64_t
__wrap_clock_mono_us(void)
{
	return now_us;
}

void __wrap_slice_set_batch(bool on);
void
__wrap_slice_set_batch(bool on)
{
	changes++;
	is_batch = on;
}

static int
setup(void **state)
{
	(void)state;
	now_us = 3600000 * (uint64_t)MS;
	changes = 0;
	is_batch = false;
	return 0;
}

/* n runs at once for so long, each of which takes so much and is followed by
 * the next. */
static void
keep_going(struct crowd *c, unsigned int n, uint64_t took_us, uint64_t for_us)
{
	const uint64_t until = now_us + for_us;

	while (now_us < until) {
		now_us += took_us / n;
		crowd_on_end(c, now_us - took_us);
	}
}

static void
test_who_calls_one_after_the_other_is_no_crowd(void **state)
{
	struct crowd c = {0};

	(void)state;
	keep_going(&c, 1, 100, 200 * MS);
	keep_going(&c, 1, 90 * MS, 2000 * MS);
	keep_going(&c, 3, 20 * MS, 500 * MS);
	assert_int_equal(changes, 0);
}

static void
test_many_short_runs_are_a_crowd_until_they_are_few(void **state)
{
	struct crowd c = {0};

	(void)state;
	keep_going(&c, 16, 15 * MS, 200 * MS);
	assert_int_equal(changes, 1);
	assert_true(is_batch);
	keep_going(&c, 3, 10 * MS, 200 * MS); /* neither many nor few */
	assert_int_equal(changes, 1);
	keep_going(&c, 1, 1 * MS, 100 * MS);
	assert_int_equal(changes, 2);
	assert_false(is_batch);
}

/* Its last ones are long gone when somebody calls alone. */
static void
test_a_crowd_that_left_is_none_at_the_next_run(void **state)
{
	struct crowd c = {0};

	(void)state;
	keep_going(&c, 16, 15 * MS, 200 * MS);
	assert_true(is_batch);
	now_us += 60000 * (uint64_t)MS;
	crowd_on_end(&c, now_us - 1 * MS);
	assert_false(is_batch);
}

/* Nor does it go on while those that are left take long. */
static void
test_long_runs_alone_end_a_crowd(void **state)
{
	struct crowd c = {0};

	(void)state;
	keep_going(&c, 16, 15 * MS, 200 * MS);
	assert_true(is_batch);
	keep_going(&c, 8, 400 * MS, 200 * MS);
	assert_false(is_batch);
	assert_int_equal(changes, 2);
}

static void
test_long_runs_do_not_count(void **state)
{
	struct crowd c = {0};

	(void)state;
	keep_going(&c, 64, 101 * MS, 2000 * MS);
	crowd_on_end(&c, 0); /* never asked for */
	assert_int_equal(changes, 0);
	crowd_on_end(NULL, now_us);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(
		test_who_calls_one_after_the_other_is_no_crowd, setup),
	    cmocka_unit_test_setup(
		test_many_short_runs_are_a_crowd_until_they_are_few, setup),
	    cmocka_unit_test_setup(
		test_a_crowd_that_left_is_none_at_the_next_run, setup),
	    cmocka_unit_test_setup(test_long_runs_alone_end_a_crowd, setup),
	    cmocka_unit_test_setup(test_long_runs_do_not_count, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

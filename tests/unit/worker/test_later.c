#include "tests/unit/worker/fixture.h"

#include "worker/later.h"

static unsigned int calls;

static void
count_cb(void *arg)
{
	calls++;
	*(bool *)arg = true;
}

static void
test_it_is_not_done_inside_the_call(void **state)
{
	struct event_base *base = event_base_new();
	bool done = false;

	(void)state;
	calls = 0;
	later(base, count_cb, &done);
	assert_int_equal(calls, 0);
	fixture_loop(base, &done);
	fixture_settle(base);
	assert_int_equal(calls, 1);
	event_base_free(base);
}

static void
test_what_is_put_off_longer_comes_after(void **state)
{
	struct event_base *base = event_base_new();
	bool first = false, second = false;

	(void)state;
	calls = 0;
	later_ms(base, 20, count_cb, &second);
	later(base, count_cb, &first);
	fixture_loop(base, &first);
	assert_false(second);
	fixture_loop(base, &second);
	assert_int_equal(calls, 2);
	event_base_free(base);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_it_is_not_done_inside_the_call),
	    cmocka_unit_test(test_what_is_put_off_longer_comes_after),
	};

	return cmocka_run_group_tests_name("later", tests, NULL, NULL);
}

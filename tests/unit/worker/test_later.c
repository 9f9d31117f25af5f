#include "tests/unit/worker/fixture.h"

#include "worker/later.h"

static unsigned int calls;

static void
count_cb(void *arg)
{
	calls++;
	*(bool *)arg = true;
}

TEST(it_is_not_done_inside_the_call)
{
	struct event_base *base = event_base_new();
	bool done = false;

	calls = 0;
	later(base, count_cb, &done);
	assert_int_equal(calls, 0);
	fixture_loop(base, &done);
	fixture_settle(base);
	assert_int_equal(calls, 1);
	event_base_free(base);
}

TEST(what_is_put_off_longer_comes_after)
{
	struct event_base *base = event_base_new();
	bool first = false, second = false;

	calls = 0;
	later_ms(base, 20, count_cb, &second);
	later(base, count_cb, &first);
	fixture_loop(base, &first);
	assert_false(second);
	fixture_loop(base, &second);
	assert_int_equal(calls, 2);
	event_base_free(base);
}

TEST_MAIN(NULL, NULL)

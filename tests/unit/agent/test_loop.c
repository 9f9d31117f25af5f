#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/epoll.h>

#include "common/clock.h"
#include "images/agent/loop.h"

static struct loop loop;
static loop_token tokens[2];
static int calls;

static int
setup(void **state)
{
	struct err e;

	(void)state;
	calls = 0;
	return loop_init(&loop, &e);
}

static int
teardown(void **state)
{
	(void)state;
	return close(loop.epoll);
}

static void
count_cb(uint32_t events, void *arg)
{
	(void)arg;
	assert_int_equal(events & EPOLLIN, EPOLLIN);
	calls++;
}

static void
remove_other_cb(uint32_t events, void *arg)
{
	(void)events;
	calls++;
	loop_del(&loop, &tokens[*(const int *)arg]);
}

static void
make_readable(int fds[2])
{
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
}

static void
test_a_readable_descriptor_is_reported_until_removed(void **state)
{
	int fds[2];

	(void)state;
	make_readable(fds);
	tokens[0] = loop_add(&loop, fds[0], EPOLLIN, count_cb, NULL);
	assert_int_not_equal(tokens[0], 0);
	loop_turn(&loop, 0);
	loop_turn(&loop, 0);
	assert_int_equal(calls, 2);
	loop_del(&loop, &tokens[0]);
	assert_int_equal(tokens[0], 0);
	loop_turn(&loop, 0);
	assert_int_equal(calls, 2);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

static void
test_a_watch_removed_in_the_same_turn_is_not_called(void **state)
{
	static int other[2] = {1, 0};
	int a[2], b[2];

	(void)state;
	make_readable(a);
	make_readable(b);
	/* each removes the other: whichever is first, the second is stale */
	tokens[0] = loop_add(&loop, a[0], EPOLLIN, remove_other_cb, &other[0]);
	tokens[1] = loop_add(&loop, b[0], EPOLLIN, remove_other_cb, &other[1]);
	loop_turn(&loop, 0);
	assert_int_equal(calls, 1);
	for (int i = 0; i < 2; i++) {
		loop_del(&loop, &tokens[i]);
		(void)close(a[i]);
		(void)close(b[i]);
	}
}

static void
test_an_old_token_does_not_reach_the_watch_in_its_place(void **state)
{
	loop_token old;
	int a[2];

	(void)state;
	make_readable(a);
	tokens[0] = loop_add(&loop, a[0], EPOLLIN, count_cb, NULL);
	old = tokens[0];
	loop_del(&loop, &tokens[0]);
	tokens[1] = loop_add(&loop, a[0], EPOLLIN, count_cb, NULL);
	assert_int_not_equal(tokens[1], old);
	loop_del(&loop, &old);
	loop_turn(&loop, 0);
	assert_int_equal(calls, 1);
	loop_del(&loop, &tokens[1]);
	(void)close(a[0]);
	(void)close(a[1]);
}

static void
test_what_epoll_refuses_is_not_watched(void **state)
{
	(void)state;
	assert_int_equal(loop_add(&loop, -1, EPOLLIN, count_cb, NULL), 0);
	assert_int_equal(loop.first_free, 0);
}

static void
test_a_rest_is_taken_once_and_not_when_there_is_work(void **state)
{
	uint64_t began;

	(void)state;
	loop_rest(&loop);
	began = clock_mono_us();
	loop_turn(&loop, 1);
	assert_true(clock_mono_us() - began >= LOOP_REST_US);
	loop_rest(&loop);
	loop_turn(&loop, 0);
	assert_false(loop.rests);
}

static void
test_what_was_dropped_is_closed_in_the_next_turn(void **state)
{
	int fds[2], other[2];

	(void)state;
	make_readable(fds);
	make_readable(other);
	tokens[0] = loop_add(&loop, fds[0], EPOLLIN, count_cb, NULL);
	loop_drop(&loop, &tokens[0], fds[0]);
	assert_int_equal(tokens[0], 0);
	assert_int_not_equal(fcntl(fds[0], F_GETFD), -1);
	/* in its place, with the same index */
	tokens[1] = loop_add(&loop, other[0], EPOLLIN, count_cb, NULL);
	loop_turn(&loop, 0);
	assert_int_equal(calls, 1);
	assert_int_equal(fcntl(fds[0], F_GETFD), -1);
	tokens[0] = 0; /* one that is not watched */
	loop_drop(&loop, &tokens[0], fds[1]);
	loop_turn(&loop, 0);
	assert_int_equal(fcntl(fds[1], F_GETFD), -1);
	loop_del(&loop, &tokens[1]);
	(void)close(other[0]);
	(void)close(other[1]);
}

static void
test_more_can_be_dropped_than_wait(void **state)
{
	int fds[LOOP_DROPPED_MAX + 2];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(fds); i += 2) {
		loop_token none = 0;

		assert_int_equal(pipe2(&fds[i], O_CLOEXEC), 0);
		loop_drop(&loop, &none, fds[i]);
		loop_drop(&loop, &none, fds[i + 1]);
	}
	loop_turn(&loop, 0);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		assert_int_equal(fcntl(fds[i], F_GETFD), -1);
}

static void
refuse_cb(uint32_t events, void *arg)
{
	(void)events;
	(void)arg;
	fail();
}

static void
test_a_watch_that_was_rebound_calls_the_new_one(void **state)
{
	int fds[2];

	(void)state;
	make_readable(fds);
	tokens[0] = loop_add(&loop, fds[0], EPOLLIN, refuse_cb, NULL);
	loop_rebind(&loop, tokens[0], count_cb, NULL);
	loop_turn(&loop, 0);
	assert_int_equal(calls, 1);
	tokens[1] = tokens[0];
	loop_del(&loop, &tokens[0]);
	loop_rebind(&loop, tokens[1], refuse_cb, NULL); /* nobody's */
	tokens[0] = loop_add(&loop, fds[0], EPOLLIN, count_cb, NULL);
	loop_turn(&loop, 0);
	assert_int_equal(calls, 2);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(
		test_a_readable_descriptor_is_reported_until_removed, setup,
		teardown),
	    cmocka_unit_test_setup_teardown(
		test_a_watch_removed_in_the_same_turn_is_not_called, setup,
		teardown),
	    cmocka_unit_test_setup_teardown(
		test_an_old_token_does_not_reach_the_watch_in_its_place, setup,
		teardown),
	    cmocka_unit_test_setup_teardown(
		test_what_epoll_refuses_is_not_watched, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		test_a_rest_is_taken_once_and_not_when_there_is_work, setup,
		teardown),
	    cmocka_unit_test_setup_teardown(
		test_what_was_dropped_is_closed_in_the_next_turn, setup,
		teardown),
	    cmocka_unit_test_setup_teardown(
		test_more_can_be_dropped_than_wait, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		test_a_watch_that_was_rebound_calls_the_new_one, setup,
		teardown),
	};

	return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}

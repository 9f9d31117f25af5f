#include <fcntl.h>
#include <sys/epoll.h>

#include "common/clock.h"
#include "images/agent/loop.h"
#include "tests/unit/test.h"

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

TEST(a_readable_descriptor_is_reported_until_removed)
{
	int fds[2];

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

TEST(a_watch_removed_in_the_same_turn_is_not_called)
{
	static int other[2] = {1, 0};
	int a[2], b[2];

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

TEST(an_old_token_does_not_reach_the_watch_in_its_place)
{
	loop_token old;
	int a[2];

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

TEST(what_epoll_refuses_is_not_watched)
{
	assert_int_equal(loop_add(&loop, -1, EPOLLIN, count_cb, NULL), 0);
	assert_int_equal(loop.first_free, 0);
}

TEST(a_rest_is_taken_once_and_not_when_there_is_work)
{
	uint64_t began;

	loop_rest(&loop);
	began = clock_mono_us();
	loop_turn(&loop, 1);
	assert_true(clock_mono_us() - began >= LOOP_REST_US);
	loop_rest(&loop);
	loop_turn(&loop, 0);
	assert_false(loop.rests);
}

TEST_MAIN(setup, teardown)

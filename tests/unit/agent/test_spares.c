#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include "images/agent/command.h"
#include "images/agent/spares.h"

static struct loop loop;
static int calls;

static void
count_cb(uint32_t events, void *arg)
{
	assert_int_equal(events & EPOLLIN, EPOLLIN);
	assert_ptr_equal(arg, &calls);
	calls++;
}

static void
spare_close(const struct spare *s)
{
	(void)close(s->fd);
	(void)close(s->write_end);
}

static void
assert_is_pipe(const struct spare *s, int waits)
{
	assert_int_equal(fcntl(s->fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	assert_int_equal(fcntl(s->write_end, F_GETFL) & O_NONBLOCK, waits);
	assert_int_equal(fcntl(s->fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(s->write_end, F_GETFD), FD_CLOEXEC);
}

static void
test_none_is_there_before_it_is_made(void **state)
{
	struct spare s;

	(void)state;
	assert_false(spares_take(&loop, count_cb, &calls, &s));
	assert_int_equal(spares_make(&s), 0);
	assert_is_pipe(&s, 0);
	assert_int_equal(s.token, 0);
	spare_close(&s);
}

static void
test_each_is_taken_once_watched_and_the_users(void **state)
{
	struct spare s[SPARES_MAX + 1];
	struct stat st;

	(void)state;
	if (geteuid() != 0)
		skip(); /* who may not give them away has none */
	spares_fill(&loop);
	spares_fill(&loop); /* no more than there may be */
	for (int i = 0; i < SPARES_MAX; i++) {
		assert_true(spares_take(&loop, count_cb, &calls, &s[i]));
		assert_is_pipe(&s[i], 0);
		assert_int_equal(fstat(s[i].write_end, &st), 0);
		assert_int_equal(st.st_uid, COMMAND_UID);
		assert_int_equal(st.st_gid, COMMAND_UID);
	}
	assert_false(spares_take(&loop, count_cb, &calls, &s[SPARES_MAX]));
	loop_turn(&loop, 0);
	assert_int_equal(calls, 0);
	for (int i = 0; i < SPARES_MAX; i++)
		assert_int_equal(write(s[i].write_end, "x", 1), 1);
	loop_turn(&loop, 0);
	assert_int_equal(calls, SPARES_MAX);
	for (int i = 0; i < SPARES_MAX; i++)
		spare_close(&s[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_none_is_there_before_it_is_made),
	    cmocka_unit_test(test_each_is_taken_once_watched_and_the_users),
	};
	struct err e;

	if (loop_init(&loop, &e) != 0)
		return 1;
	return cmocka_run_group_tests_name("spares", tests, NULL, NULL);
}

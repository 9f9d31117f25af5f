#include <errno.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "images/agent/bridges.h"
#include "tests/unit/test.h"

#define FRAME_BYTES (FRAME_HEADER_BYTES + BRIDGES_SECRET_BYTES)

static struct loop loop;
static struct bridges door;
static int proven; /* handed over last; -1: none */
static int handed;

static void
on_proven(int fd, void *arg)
{
	assert_ptr_equal(arg, &door);
	if (proven != -1)
		(void)close(proven);
	proven = fd;
	handed++;
}

static int
setup(void **state)
{
	struct err e;

	(void)state;
	proven = -1;
	handed = 0;
	bridges_init(&door, &loop, on_proven, &door);
	return loop_init(&loop, &e);
}

static int
teardown(void **state)
{
	(void)state;
	bridges_close(&door);
	if (proven != -1)
		(void)close(proven);
	return close(loop.epoll);
}

/* The other end of one that is to knock. */
static int
admitted(void)
{
	int ends[2];

	assert_int_equal(
	    socketpair(
		AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends),
	    0);
	bridges_admit(&door, ends[1]);
	return ends[0];
}

static void
put_knock(uint8_t out[FRAME_BYTES], uint8_t fill)
{
	uint8_t secret[BRIDGES_SECRET_BYTES];
	struct buf b;

	memset(secret, fill, sizeof(secret));
	buf_init(&b, 0);
	assert_int_equal(
	    frame_put_knock(&b, &(struct frame_knock){.secret = secret}), 0);
	assert_int_equal(buf_len(&b), FRAME_BYTES);
	memcpy(out, buf_data(&b), FRAME_BYTES);
	buf_clear(&b);
}

static void
say(int fd, const void *p, size_t n)
{
	assert_int_equal(send(fd, p, n, MSG_NOSIGNAL), (ssize_t)n);
	loop_turn(&loop, 0);
}

static void
knock(int fd, uint8_t fill)
{
	uint8_t frame[FRAME_BYTES];

	put_knock(frame, fill);
	say(fd, frame, sizeof(frame));
}

static bool
is_closed(int fd)
{
	char byte;

	return recv(fd, &byte, 1, 0) != -1 || errno == ECONNRESET;
}

TEST(the_secret_of_the_first_is_asked_of_all_others)
{
	int first = admitted(), wrong = admitted(), right = admitted();

	knock(first, 1);
	assert_int_equal(handed, 1);
	knock(wrong, 2);
	assert_int_equal(handed, 1);
	assert_true(is_closed(wrong));
	knock(right, 1);
	assert_int_equal(handed, 2);
	assert_false(is_closed(right));
	(void)close(first);
	(void)close(wrong);
	(void)close(right);
}

TEST(a_secret_that_differs_in_one_bit_is_another)
{
	uint8_t frame[FRAME_BYTES];
	int fd = admitted();

	knock(fd, 1);
	(void)close(fd);
	for (size_t i = 0; i < BRIDGES_SECRET_BYTES; i++) {
		put_knock(frame, 1);
		frame[FRAME_HEADER_BYTES + i] ^= (uint8_t)(1u << i % 8);
		fd = admitted();
		say(fd, frame, sizeof(frame));
		assert_true(is_closed(fd));
		(void)close(fd);
	}
	assert_int_equal(handed, 1);
}

TEST(a_knock_in_pieces_is_one_and_what_follows_stays_in_the_socket)
{
	uint8_t frame[FRAME_BYTES + 1] = {0};
	char next = '\0';
	int fd = admitted();

	put_knock(frame, 7);
	frame[FRAME_BYTES] = 'x';
	for (size_t i = 0; i < FRAME_BYTES - 1; i++)
		say(fd, &frame[i], 1);
	assert_int_equal(handed, 0);
	say(fd, &frame[FRAME_BYTES - 1], 2);
	assert_int_equal(handed, 1);
	assert_int_equal(recv(proven, &next, 1, 0), 1);
	assert_int_equal(next, 'x');
	(void)close(fd);
}

TEST(who_begins_with_another_frame_is_closed_and_sets_no_secret)
{
	static const char ping[] = "\x0c\0\0\0\x21\0\0\0";
	static const char longer[] = "\x25\0\0\0\x27\0\0\0";
	int a = admitted(), b = admitted();

	say(a, ping, 8);
	say(a, ping, 8);
	assert_true(is_closed(a));
	say(b, longer, 8);
	assert_true(is_closed(b));
	assert_false(door.has_secret);
	assert_int_equal(handed, 0);
	(void)close(a);
	(void)close(b);
}

TEST(of_too_many_the_one_that_waits_longest_is_closed)
{
	int fds[BRIDGES_UNPROVEN_MAX + 1];

	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fds[i] = admitted();
	assert_true(is_closed(fds[0]));
	for (size_t i = 1; i < ARRAY_LEN(fds); i++) {
		assert_false(is_closed(fds[i]));
		knock(fds[i], 1);
	}
	assert_int_equal(handed, BRIDGES_UNPROVEN_MAX);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		(void)close(fds[i]);
}

TEST(who_hangs_up_leaves_its_place)
{
	int fds[BRIDGES_UNPROVEN_MAX];

	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fds[i] = admitted();
	(void)close(fds[1]);
	loop_turn(&loop, 0);
	fds[1] = admitted();
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		assert_false(is_closed(fds[i]));
		(void)close(fds[i]);
	}
}

TEST(who_does_not_knock_in_time_is_closed)
{
	const uint64_t begin = clock_mono_ms();
	int fd = admitted();
	uint64_t due = bridges_next_ms(&door);

	assert_true(due >= begin + BRIDGES_KNOCK_MS);
	assert_true(due <= clock_mono_ms() + BRIDGES_KNOCK_MS);
	bridges_tick(&door, due - 1);
	assert_false(is_closed(fd));
	bridges_tick(&door, due);
	assert_int_equal(bridges_next_ms(&door), UINT64_MAX);
	assert_true(is_closed(fd));
	(void)close(fd);
}

TEST_MAIN(setup, teardown)

#include "tests/unit/common/chan_ends.h"

TEST(messages_arrive_in_both_directions)
{
	struct end a, b;

	make_ends(&a, &b);
	b.reply = true;
	for (uint64_t i = 0; i < 500; i++)
		send_message(&a, i, (size_t)i);
	WAIT_FOR(a.next_id == 500);
	assert_int_equal(b.next_id, 500);
	free_ends(&a, &b);
	assert_int_equal(a.closes + b.closes, 0); /* freed, not closed */
}

TEST(descriptors_arrive_close_on_exec_and_are_the_same_files)
{
	unsigned int before = count_open_fds();
	struct stat want, got;
	struct end a, b;
	int fd;

	make_ends(&a, &b);
	b.take_at = 0;
	fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &want), 0);
	send_fds(&a, 0, fd, open_null());
	WAIT_FOR(b.nfds == 2);
	assert_int_equal(fstat(b.fds[0], &got), 0);
	assert_true(want.st_ino == got.st_ino && want.st_dev == got.st_dev);
	assert_true((fcntl(b.fds[0], F_GETFD) & FD_CLOEXEC) != 0);
	assert_true((fcntl(b.fds[1], F_GETFD) & FD_CLOEXEC) != 0);
	(void)close(b.fds[0]);
	(void)close(b.fds[1]);
	free_ends(&a, &b);
	assert_int_equal(count_open_fds(), before); /* the sender's are gone */
}

TEST(descriptors_that_nobody_takes_are_closed)
{
	unsigned int before = count_open_fds();
	struct end a, b;

	make_ends(&a, &b);
	send_fds(&a, 0, open_null(), -1);
	WAIT_FOR(b.next_id == 1);
	free_ends(&a, &b);
	assert_int_equal(count_open_fds(), before);
}

TEST(descriptors_in_the_queue_are_closed_with_the_channel)
{
	unsigned int before = count_open_fds();
	struct end a, b;
	uint64_t id = 0;

	make_ends(&a, &b);
	while (!ipc_chan_is_full(a.c))
		send_message(&a, id++, 60000);
	send_fds(&a, id, open_null(), -1);
	free_ends(&a, &b);
	assert_int_equal(count_open_fds(), before);
}

TEST(a_queue_beyond_the_kernels_buffer_keeps_order)
{
	struct end a, b;
	uint64_t id = 0;

	make_ends(&a, &b);
	while (!ipc_chan_is_full(a.c))
		send_message(&a, id++, 40000);
	assert_true(id * 40000 > IPC_QUEUE_BYTES);
	for (int i = 0; i < 100; i++) /* full is a request, not a wall */
		send_message(&a, id++, (size_t)i * 100);
	assert_int_equal(b.next_id, 0);
	assert_int_equal(a.drains, 0);
	WAIT_FOR(b.next_id == id);
	assert_int_equal(a.drains, 1);
	assert_false(ipc_chan_is_full(a.c));
	send_message(&a, id++, 0);
	WAIT_FOR(b.next_id == id);
	assert_int_equal(a.drains, 1);
	free_ends(&a, &b);
}

TEST(full_lasts_until_drain)
{
	struct end a, b;
	uint64_t id = 0;

	make_ends(&a, &b);
	while (!ipc_chan_is_full(a.c))
		send_message(&a, id++, 40000);
	while (a.drains == 0) {
		assert_true(ipc_chan_is_full(a.c));
		(void)event_base_loop(base, EVLOOP_ONCE);
	}
	assert_true(b.next_id > 0 && b.next_id < id); /* half of it is left */
	free_ends(&a, &b);
}

TEST(a_peer_that_never_reads_is_taken_for_dead)
{
	uint64_t id = 0;
	struct end a;
	int fds[2];

	make_pair(fds);
	end_open(&a, fds[0]);
	for (size_t sent = 0; sent <= IPC_QUEUE_HARD + (4u << 20);
	     sent += 65000)
		send_message(&a, id++, 65000);
	assert_int_equal(a.closes, 0); /* never inside a send */
	WAIT_FOR(a.closes == 1);
	assert_int_equal(a.why.code, ERR_LIMIT);
	assert_non_null(strstr(a.why.msg, "does not read"));
	ipc_chan_free(a.c);
	(void)close(fds[1]);
}

TEST(everything_sent_before_a_close_is_delivered_before_it)
{
	struct end a, b;

	make_ends(&a, &b);
	for (uint64_t i = 0; i < 300; i++) /* more than one turn reads */
		send_message(&a, i, 10);
	ipc_chan_free(a.c);
	a.c = NULL;
	WAIT_FOR(b.closes == 1);
	assert_int_equal(b.next_id, 300);
	assert_int_equal(b.why.code, 0);
	free_ends(&a, &b);
}

TEST(the_same_when_the_peer_left_ours_unread)
{
	struct end a, b;

	make_ends(&a, &b);
	for (uint64_t i = 0; i < 300; i++) {
		send_message(&a, i, 10);
		send_message(&b, i, 10); /* a never reads them: a reset */
	}
	ipc_chan_free(a.c);
	a.c = NULL;
	send_message(&b, 300, 10); /* fails: nobody is there */
	assert_int_equal(b.closes, 0);
	WAIT_FOR(b.closes == 1);
	assert_int_equal(b.next_id, 300);
	free_ends(&a, &b);
}

TEST(the_same_when_a_queue_was_waiting_for_the_peer)
{
	struct end a, b;
	uint64_t id = 0;

	make_ends(&a, &b);
	while (!ipc_chan_is_full(b.c))
		send_message(&b, id++, 60000);
	for (uint64_t i = 0; i < 300; i++)
		send_message(&a, i, 10);
	ipc_chan_free(a.c);
	a.c = NULL;
	WAIT_FOR(b.closes == 1);
	assert_int_equal(b.next_id, 300);
	assert_int_equal(b.drains, 0); /* a lost queue is not a drained one */
	free_ends(&a, &b);
}

TEST(a_peer_that_cannot_hear_any_more_ends_the_channel)
{
	struct end a;
	int fds[2];

	make_pair(fds);
	end_open(&a, fds[0]);
	assert_int_equal(shutdown(fds[1], SHUT_RD), 0);
	send_message(&a, 0, 10);
	WAIT_FOR(a.closes == 1);
	assert_int_equal(a.why.code, ERR_SYS);
	ipc_chan_free(a.c);
	(void)close(fds[1]);
}

/* Send raw bytes to a channel, of which the first good messages are; the reason
 * it gives for ending. */
static void
check_violation_behind(uint64_t good, const void *p, size_t n, const int *fds,
    size_t nfds, const char *why)
{
	union {
		char space[CMSG_SPACE(sizeof(int) * 8)];
		struct cmsghdr align;
	} control = {{0}};
	unsigned int before = count_open_fds();
	union {
		const void *in;
		void *out;
	} data = {p};
	struct iovec iov = {data.out, n};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	int pair[2];
	struct end a;

	make_pair(pair);
	end_open(&a, pair[0]);
	if (nfds > 0) {
		struct cmsghdr *cm;

		mh.msg_control = control.space;
		mh.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		cm = CMSG_FIRSTHDR(&mh);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(cm), fds, sizeof(int) * nfds);
	}
	assert_int_equal(sendmsg(pair[1], &mh, 0), (ssize_t)n);
	WAIT_FOR(a.closes == 1);
	assert_int_equal(a.next_id, good);
	assert_int_equal(a.why.code, ERR_PROTO);
	if (strstr(a.why.msg, why) == NULL)
		fail_msg("%s, want %s", a.why.msg, why);
	ipc_chan_free(a.c);
	(void)close(pair[1]);
	assert_int_equal(count_open_fds(), before);
}

static void
check_violation(
    const void *p, size_t n, const int *fds, size_t nfds, const char *why)
{
	check_violation_behind(0, p, n, fds, nfds, why);
}

TEST(every_violation_ends_the_channel_once)
{
	static uint8_t large[IPC_MSG_MAX + 1] = {7};
	uint8_t ping[24] = {7, 0, 0, 0, 24};
	uint8_t two[48] = {7, 0, 0, 0, 24};
	int null = open_null();
	int fds[8] = {null, null, null, null, null, null, null, null};

	memcpy(two + 24, ping, sizeof(ping));
	two[24 + 8] = 1; /* the second's id */
	check_violation(ping, 15, NULL, 0, "packet of 15 bytes");
	check_violation(ping, 1, NULL, 0, "packet of 1 bytes");
	check_violation(ping, 23, NULL, 0, "message 7 of 23 bytes says 24");
	check_violation_behind(1, two, 24 + 15, NULL, 0, "packet of 15 bytes");
	check_violation_behind(
	    1, two, 24 + 23, NULL, 0, "message 7 of 23 bytes says 24");
	two[2] = 1;
	check_violation(
	    two, 48, fds, 1, "message 7 with descriptors is not alone");
	check_violation(
	    ping, 24, fds, 1, "message 7 with 1 descriptors says 0");
	check_violation(ping, 24, fds, 3, "too many descriptors");
	check_violation(ping, 24, fds, 8, "too many descriptors");
	check_violation(large, sizeof(large), NULL, 0, "too many bytes");
	ping[2] = 1;
	check_violation(
	    ping, 24, NULL, 0, "message 7 with 0 descriptors says 1");
	(void)close(null);
}

TEST(a_refused_message_ends_the_channel_with_its_reason)
{
	struct end a, b;

	make_ends(&a, &b);
	b.error_at = 2;
	for (uint64_t i = 0; i < 10; i++)
		send_message(&a, i, 10);
	WAIT_FOR(a.closes == 1 && b.closes == 1);
	assert_int_equal(b.next_id, 3);
	assert_int_equal(b.why.code, ERR_PROTO);
	assert_string_equal(b.why.msg, "test: not like this");
	assert_int_equal(a.why.code, 0);
	free_ends(&a, &b);
}

TEST(a_channel_may_be_freed_in_any_callback)
{
	struct end a, b;
	uint64_t id;

	for (int how = 0; how < 4; how++) {
		make_ends(&a, &b);
		id = 0;
		if (how == 0)
			b.free_at = 2;
		if (how == 1) { /* freed and refused at once */
			b.free_at = b.error_at = 2;
			b.reply = true;
		}
		if (how == 2)
			b.error_at = 2;
		b.free_in_close = true;
		a.free_in_drain = how == 3;
		while (how == 3 ? !ipc_chan_is_full(a.c) : id < 10)
			send_message(&a, id++, 50000);
		a.reply = false;
		WAIT_FOR(b.c == NULL || a.c == NULL);
		if (how == 3)
			WAIT_FOR(b.closes == 1);
		else
			assert_int_equal(b.closes, how == 2 ? 1 : 0);
		free_ends(&a, &b);
	}
}

TEST(a_dead_channel_swallows_messages_and_their_descriptors)
{
	unsigned int before = count_open_fds();
	struct end a, b;

	make_ends(&a, &b);
	ipc_chan_free(b.c);
	b.c = NULL;
	WAIT_FOR(a.closes == 1);
	send_fds(&a, 0, open_null(), -1);
	assert_false(ipc_chan_is_full(a.c));
	assert_int_equal(a.closes, 1);
	free_ends(&a, &b);
	ipc_chan_free(NULL);
	assert_int_equal(count_open_fds(), before);
}

TEST(a_busy_channel_leaves_others_their_turn)
{
	struct end a, b, c, d;

	make_ends(&a, &b);
	make_ends(&c, &d);
	for (uint64_t i = 0; i < 1000; i++)
		send_message(&a, i, 10);
	send_message(&c, 0, 10);
	WAIT_FOR(d.next_id == 1);
	assert_true(b.next_id <= 128);
	WAIT_FOR(b.next_id == 1000);
	free_ends(&a, &b);
	free_ends(&c, &d);
}

TEST_MAIN(make_base, free_base)

#include "tests/unit/common/chan_ends.h"

/* How many packets wait in fd, which is read empty. */
static unsigned int
count_packets(int fd)
{
	static uint8_t packet[IPC_MSG_MAX];
	unsigned int n = 0;

	while (recv(fd, packet, sizeof(packet), MSG_DONTWAIT) > 0)
		n++;
	return n;
}

TEST(corked_messages_share_packets_in_their_order)
{
	struct end a, b;

	make_ends(&a, &b);
	ipc_chan_cork(a.c);
	for (uint64_t i = 0; i < 500; i++)
		send_message(&a, i, (size_t)i);
	ipc_chan_uncork(a.c);
	send_message(&a, 500, 10);
	WAIT_FOR(b.next_id == 501);
	free_ends(&a, &b);
	assert_int_equal(a.closes + b.closes, 0);
}

TEST(a_cork_holds_until_uncork_and_packets_are_filled)
{
	struct end a;
	int pair[2];

	make_pair(pair);
	end_open(&a, pair[0]);
	ipc_chan_cork(a.c);
	for (uint64_t i = 0; i < 6; i++)
		send_message(&a, i, 100);
	assert_int_equal(count_packets(pair[1]), 0);
	ipc_chan_uncork(a.c);
	assert_int_equal(count_packets(pair[1]), 1);

	ipc_chan_cork(a.c);
	ipc_chan_uncork(a.c); /* nothing was said */
	assert_int_equal(count_packets(pair[1]), 0);

	ipc_chan_cork(a.c);
	for (uint64_t i = 0; i < 5; i++) /* three fill a packet */
		send_message(&a, i, IPC_MSG_MAX / 3 - IPC_HEADER_BYTES);
	ipc_chan_uncork(a.c);
	assert_int_equal(count_packets(pair[1]), 2);
	ipc_chan_free(a.c);
	(void)close(pair[1]);
}

TEST(descriptors_keep_their_place_among_corked_messages)
{
	unsigned int before = count_open_fds();
	struct end a, b;

	make_ends(&a, &b);
	b.take_at = 2;
	ipc_chan_cork(a.c);
	send_message(&a, 0, 1);
	send_message(&a, 1, 1);
	send_fds(&a, 2, open_null(), -1);
	send_message(&a, 3, 1);
	ipc_chan_uncork(a.c);
	WAIT_FOR(b.next_id == 4);
	assert_int_equal(b.nfds, 1);
	(void)close(b.fds[0]);
	free_ends(&a, &b);
	assert_int_equal(count_open_fds(), before);
}

TEST(a_corked_channel_may_be_freed_or_closed)
{
	unsigned int before = count_open_fds();
	struct end a, b;

	make_ends(&a, &b);
	ipc_chan_cork(a.c);
	send_message(&a, 0, 1);
	free_ends(&a, &b);

	make_ends(&a, &b);
	ipc_chan_cork(a.c);
	send_message(&a, 0, 1);
	ipc_chan_free(b.c);
	WAIT_FOR(a.closes == 1);
	send_message(&a, 1, 1);
	ipc_chan_uncork(a.c);
	ipc_chan_free(a.c);
	assert_int_equal(count_open_fds(), before);
}

TEST(the_messages_of_a_packet_stop_with_their_channel)
{
	struct end a, b;

	make_ends(&a, &b);
	b.free_at = 1;
	ipc_chan_cork(a.c);
	for (uint64_t i = 0; i < 4; i++)
		send_message(&a, i, 1);
	ipc_chan_uncork(a.c);
	WAIT_FOR(a.closes == 1);
	assert_int_equal(b.next_id, 2);
	ipc_chan_free(a.c);

	make_ends(&a, &b);
	b.error_at = 1;
	ipc_chan_cork(a.c);
	for (uint64_t i = 0; i < 4; i++)
		send_message(&a, i, 1);
	ipc_chan_uncork(a.c);
	WAIT_FOR(b.closes == 1);
	assert_int_equal(b.next_id, 2);
	free_ends(&a, &b);
}

TEST(what_is_late_shares_a_packet_and_is_overtaken)
{
	unsigned int before = count_open_fds();
	struct end a, b;

	make_ends(&a, &b);
	ipc_chan_late(a.c, true);
	send_message(&a, 2, 1);
	send_message(&a, 3, 1);
	ipc_chan_late(a.c, false);
	send_message(&a, 0, 1);
	send_fds(&a, 1, open_null(), -1);
	WAIT_FOR(b.next_id == 4); /* in the order of their numbers */
	assert_int_equal(a.closes + b.closes, 0);
	free_ends(&a, &b);
	assert_int_equal(count_open_fds(), before);
}

TEST(what_is_late_is_one_packet)
{
	struct end a;
	int pair[2];
	unsigned int n = 0;

	make_pair(pair);
	end_open(&a, pair[0]);
	ipc_chan_late(a.c, true);
	for (uint64_t i = 0; i < 6; i++)
		send_message(&a, i, 100);
	ipc_chan_late(a.c, false);
	assert_int_equal(count_packets(pair[1]), 0);
	WAIT_FOR((n += count_packets(pair[1])) > 0);
	assert_int_equal(n, 1);

	ipc_chan_late(a.c, true); /* it is forgotten with the channel */
	send_message(&a, 6, 1);
	ipc_chan_free(a.c);
	assert_int_equal(count_packets(pair[1]), 0);
	(void)close(pair[1]);
}

TEST_MAIN(make_base, free_base)

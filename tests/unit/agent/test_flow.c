#include "images/agent/flow.h"
#include "tests/unit/test.h"

#define CHAN 7

static struct flow
flow_of(size_t bytes)
{
	struct flow f;

	flow_init(&f, 0, 4096);
	for (size_t i = 0; i < bytes; i++)
		ring_append(&f.ring, "x", 1);
	return f;
}

TEST(nothing_is_sendable_before_a_channel_has_it)
{
	struct flow f = flow_of(100);
	struct err e;

	assert_int_equal(flow_sendable(&f), 0);
	assert_int_equal(flow_open(&f, CHAN, 0, 1000, &e), 0);
	assert_int_equal(flow_sendable(&f), 100);
	flow_close(&f);
	assert_int_equal(flow_sendable(&f), 0);
	flow_clear(&f);
}

TEST(only_what_is_granted_is_sendable)
{
	struct flow f = flow_of(1000);
	struct err e;

	assert_int_equal(flow_open(&f, CHAN, 0, 0, &e), 0);
	assert_int_equal(flow_sendable(&f), 0);
	assert_int_equal(flow_grant(&f, 0, 300, &e), 0);
	assert_int_equal(flow_sendable(&f), 300);
	f.credit.sent = 300;
	assert_int_equal(flow_sendable(&f), 0);
	assert_int_equal(flow_grant(&f, 100, 400, &e), 0);
	assert_int_equal(flow_sendable(&f), 100);
	assert_int_equal(flow_grant(&f, 100, 5000, &e), 0);
	assert_int_equal(flow_sendable(&f), 700); /* there is no more */
	flow_clear(&f);
}

TEST(what_is_taken_is_kept_no_longer)
{
	struct flow f = flow_of(1000);
	struct err e;

	assert_int_equal(flow_open(&f, CHAN, 0, 300, &e), 0);
	f.credit.sent = 300;
	assert_int_equal(flow_grant(&f, 301, 600, &e), ERR_PROTO);
	assert_int_equal(flow_grant(&f, 300, 600, &e), 0);
	assert_int_equal(f.ring.start, 300);
	assert_int_equal(flow_grant(&f, 10, 10, &e), 0); /* old news */
	assert_int_equal(f.ring.start, 300);
	assert_int_equal(flow_sendable(&f), 300);
	flow_clear(&f);
}

TEST(the_next_channel_needs_the_bytes_to_be_kept)
{
	struct flow f = flow_of(1000);
	struct err e;

	assert_int_equal(flow_open(&f, CHAN, 500, 1000, &e), 0);
	flow_close(&f);
	assert_int_equal(flow_open(&f, CHAN, 499, 1000, &e), ERR_NOTFOUND);
	assert_int_equal(flow_open(&f, CHAN, 1001, 2000, &e), ERR_NOTFOUND);
	assert_int_equal(flow_open(&f, CHAN, 1000, 2000, &e), 0);
	assert_int_equal(flow_sendable(&f), 0);
	flow_clear(&f);
}

TEST_MAIN(NULL, NULL)

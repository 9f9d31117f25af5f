#include "tests/unit/worker/fixture.h"

#include <errno.h>

#include "common/leftlist.h"
#include "worker/left_asks.h"

#define SANDBOX 42

struct fixture {
	struct event_base *base;
	struct front front;
	struct fake_link link;
	struct peer *peer;
	struct left_asks *asks;
};
static struct fixture fix;

static int
on_hello(const struct peer_hello *h, void *arg, struct err *e)
{
	(void)h;
	(void)arg;
	(void)e;
	left_asks_attach(fix.asks, fix.peer);
	return 0;
}

static void
on_down(const struct err *why, void *arg)
{
	(void)why;
	(void)arg;
	left_asks_detach(fix.asks);
}

static const struct peer_ops peer_ops = {
    .on_hello = on_hello, .on_down = on_down};

static void
greet(uint32_t left)
{
	const struct frame_hello hello = {
	    .version = FRAME_VERSION, .boot = {{1}}};
	const struct frame_hello_end end = {.left = left};
	struct buf b;
	struct err e;

	buf_init(&b, 0);
	fake_link_open(&fix.link);
	assert_int_equal(frame_put_hello(&b, &hello), 0);
	assert_int_equal(frame_put_hello_end(&b, &end), 0);
	assert_int_equal(fake_link_say(&fix.link, &b, &e), 0);
	(void)fake_link_sent(&fix.link, FRAME_WELCOME);
}

static int
setup(void **state)
{
	(void)state;
	memset(&fix, 0, sizeof(fix));
	fix.base = event_base_new();
	front_init(&fix.front, fix.base);
	fake_link_init(&fix.link, fix.base);
	fix.peer = peer_new(fix.link.l, &peer_ops, NULL);
	fix.asks = left_asks_new(&fix.front.chan, SANDBOX);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	if (fix.asks != NULL)
		left_asks_free(fix.asks);
	peer_free(fix.peer);
	fake_link_clear(&fix.link);
	front_clear(&fix.front);
	fixture_settle(fix.base);
	event_base_free(fix.base);
	return 0;
}

/* ---- what is asked and answered */

static void
start(uint64_t number, enum msg_left_action action, uint32_t process)
{
	left_asks_start(fix.asks,
	    &(struct msg_left_ask){.id = SANDBOX,
		.ask = number,
		.action = action,
		.run = {{7}},
		.process = process});
}

/* The channel on which the agent was asked. */
static uint32_t
ask(uint64_t number, enum msg_left_action action, uint32_t process)
{
	start(number, action, process);
	return fake_link_sent_chan(&fix.link, FRAME_OPEN_LEFT);
}

static struct msg_left_answer
answered(uint64_t number)
{
	struct ipc_msg in = front_next(&fix.front, IPC_LEFT_ANSWER);
	struct msg_left_answer m;
	struct err e;

	assert_int_equal(msg_get_left_answer(&in, &m, &e), 0);
	assert_int_equal(m.id, SANDBOX);
	assert_int_equal(m.ask, number);
	return m;
}

static int
say_data(uint32_t chan, uint64_t at, size_t n)
{
	static const uint8_t bytes[FRAME_DATA_MAX];

	return fake_link_data(&fix.link, chan, at, bytes, n);
}

static void
test_the_agents_list_goes_on_as_it_came(void **state)
{
	struct msg_left_answer m;
	uint32_t n;

	(void)state;
	greet(0);
	n = ask(3, MSG_LEFT_ACTION_LIST, 0);
	assert_int_equal(fake_link_data(&fix.link, n, 0, "abc", 3), 0);
	assert_int_equal(fake_link_data(&fix.link, n, 3, "de", 2), 0);
	front_expect_nothing(&fix.front);
	assert_int_equal(fake_link_close(&fix.link, n, 0, ""), 0);
	m = answered(3);
	assert_int_equal(m.code, 0);
	assert_int_equal(m.list.n, 5);
	assert_memory_equal(m.list.p, "abcde", 5);
	front_expect_nothing(&fix.front);
}

static void
test_an_end_without_a_list_is_for_the_front_to_judge(void **state)
{
	struct msg_left_answer m;
	uint32_t n;

	(void)state;
	greet(0);
	n = ask(1, MSG_LEFT_ACTION_LIST, 0);
	assert_int_equal(fake_link_close(&fix.link, n, 0, ""), 0);
	m = answered(1);
	assert_int_equal(m.code, 0);
	assert_int_equal(m.list.n, 0);
	assert_int_equal(fake_link_close(&fix.link, n, 0, ""), 0); /* again */
	front_expect_nothing(&fix.front);
}

static void
test_a_refusal_is_told(void **state)
{
	uint32_t n;

	(void)state;
	greet(0);
	n = ask(1, MSG_LEFT_ACTION_KILL, 5);
	assert_int_equal(fake_link_close(&fix.link, n, ESRCH, "x"), 0);
	assert_int_equal(answered(1).code, ERR_NOTFOUND);
	n = ask(2, MSG_LEFT_ACTION_KILL, 5);
	assert_int_equal(fake_link_data(&fix.link, n, 0, "abc", 3), 0);
	assert_int_equal(fake_link_close(&fix.link, n, EINVAL, "x"), 0);
	assert_int_equal(answered(2).code, ERR_BACKEND);
}

static void
test_an_answer_longer_than_a_list_is_refused(void **state)
{
	uint32_t n;

	(void)state;
	greet(0);
	n = ask(1, MSG_LEFT_ACTION_LIST, 0);
	assert_int_equal(say_data(n, 0, LEFTLIST_BYTES_MAX), 0);
	assert_int_equal(say_data(n, LEFTLIST_BYTES_MAX, 1), ERR_PROTO);
	front_expect_nothing(&fix.front);
	fake_link_lose(&fix.link);
	assert_int_equal(answered(1).code, ERR_BACKEND);
}

static void
test_bytes_of_another_channel_are_none_of_it(void **state)
{
	uint32_t n;

	(void)state;
	greet(0);
	n = ask(1, MSG_LEFT_ACTION_LIST, 0);
	assert_int_equal(say_data(n + 1, 0, 1), ERR_PROTO);
	fake_link_lose(&fix.link);
	(void)answered(1);
}

/* One that may have been killed must not be killed again unasked. */
static void
test_a_lost_link_tells_what_may_have_been_done(void **state)
{
	static const struct {
		enum msg_left_action action;
		uint32_t process;
		int code;
	} asks[] = {{MSG_LEFT_ACTION_LIST, 0, ERR_BACKEND},
	    {MSG_LEFT_ACTION_KILL, 0, ERR_BACKEND},
	    {MSG_LEFT_ACTION_KILL, 5, ERR_WRONG_STATE}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(asks); i++) {
		greet(0);
		(void)ask(i, asks[i].action, asks[i].process);
		fake_link_lose(&fix.link);
		assert_int_equal(answered(i).code, asks[i].code);
		start(9, MSG_LEFT_ACTION_LIST, 0); /* while it is away */
		assert_int_equal(answered(9).code, ERR_BACKEND);
	}
	front_expect_nothing(&fix.front);
}

static void
test_an_agent_that_never_answers_is_asked_so_often_only(void **state)
{
	uint32_t first;

	(void)state;
	greet(0);
	first = ask(0, MSG_LEFT_ACTION_LIST, 0);
	for (uint64_t i = 1; i < LEFT_ASKS_MAX; i++)
		(void)ask(i, MSG_LEFT_ACTION_LIST, 0);
	for (uint64_t i = 0; i < 100; i++) {
		start(1000 + i, MSG_LEFT_ACTION_LIST, 0);
		assert_int_equal(answered(1000 + i).code, ERR_BACKEND);
	}
	fake_link_sent_nothing(&fix.link);
	assert_int_equal(fake_link_close(&fix.link, first, 0, ""), 0);
	assert_int_equal(answered(0).code, 0);
	(void)ask(LEFT_ASKS_MAX, MSG_LEFT_ACTION_LIST, 0);
}

static void
test_a_box_that_goes_answers_all(void **state)
{
	bool seen[3] = {false};
	uint32_t n = 0;

	(void)state;
	greet(0);
	for (uint64_t i = 0; i < ARRAY_LEN(seen); i++)
		n = ask(i, MSG_LEFT_ACTION_KILL, (uint32_t)i);
	left_asks_free(fix.asks);
	fix.asks = NULL;
	for (size_t i = 0; i < ARRAY_LEN(seen); i++) {
		struct ipc_msg in = front_next(&fix.front, IPC_LEFT_ANSWER);
		struct msg_left_answer m;
		struct err e;

		assert_int_equal(msg_get_left_answer(&in, &m, &e), 0);
		assert_int_equal(m.code, ERR_LOST);
		assert_true(m.ask < ARRAY_LEN(seen) && !seen[m.ask]);
		seen[m.ask] = true;
	}
	/* what the agent still says of it goes nowhere */
	assert_int_equal(say_data(n, 0, 3), 0);
	assert_int_equal(fake_link_close(&fix.link, n, 0, ""), 0);
	front_expect_nothing(&fix.front);
}

static void
expect_left(uint32_t count)
{
	struct ipc_msg in = front_next(&fix.front, IPC_SANDBOX_LEFT);
	struct msg_sandbox_left m;
	struct err e;

	assert_int_equal(msg_get_sandbox_left(&in, &m, &e), 0);
	assert_int_equal(m.id, SANDBOX);
	assert_int_equal(m.count, count);
}

static void
test_how_many_there_are_is_told_and_none_once(void **state)
{
	static const uint32_t counts[] = {0, 3, 3, 0, 0, UINT32_MAX};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		greet(counts[i]);
		left_asks_on_turn(fix.asks);
		if (counts[i] != 0 || (i > 0 && counts[i - 1] != 0))
			expect_left(counts[i]);
		left_asks_on_turn(fix.asks);
		front_expect_nothing(&fix.front);
		fake_link_lose(&fix.link);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_the_agents_list_goes_on_as_it_came),
	    TEST(test_an_end_without_a_list_is_for_the_front_to_judge),
	    TEST(test_a_refusal_is_told),
	    TEST(test_an_answer_longer_than_a_list_is_refused),
	    TEST(test_bytes_of_another_channel_are_none_of_it),
	    TEST(test_a_lost_link_tells_what_may_have_been_done),
	    TEST(test_an_agent_that_never_answers_is_asked_so_often_only),
	    TEST(test_a_box_that_goes_answers_all),
	    TEST(test_how_many_there_are_is_told_and_none_once),
	};

	return cmocka_run_group_tests_name("left_asks", tests, NULL, NULL);
}

#include "tests/unit/worker/ends.h"

#include <errno.h>

#include "common/agent_ask.h"
#include "worker/tasks.h"

#define SANDBOX 42

struct fixture {
	struct box_asks_host host;
	struct box_asks *asks;
};
static struct fixture fix;

static void
on_hello(const struct peer_hello *h)
{
	box_asks_attach(fix.asks, ends.peer, h->version);
}

static void
on_down(void)
{
	box_asks_detach(fix.asks);
}

static void
greet(uint32_t version)
{
	const struct frame_hello hello = {.version = version, .boot = {{1}}};
	const struct frame_hello_end end = {.left = 0};
	struct buf b;
	struct err e;

	buf_init(&b, 0);
	fake_link_open(&ends.link);
	assert_int_equal(frame_put_hello(&b, &hello), 0);
	assert_int_equal(frame_put_hello_end(&b, &end), 0);
	assert_int_equal(fake_link_say(&ends.link, &b, &e), 0);
	(void)fake_link_sent(&ends.link, FRAME_WELCOME);
}

static int
setup(void **state)
{
	(void)state;
	memset(&fix, 0, sizeof(fix));
	ends_open(on_hello, on_down);
	fix.host.front = &ends.front.chan;
	fix.asks = box_asks_new(&fix.host, SANDBOX);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	if (fix.asks != NULL)
		box_asks_free(fix.asks);
	ends_close();
	return 0;
}

/* ---- what is asked and answered */

static void
start(uint64_t number)
{
	struct err e;

	assert_int_equal(box_asks_start(fix.asks,
			     &(struct msg_ask){.id = SANDBOX,
				 .ask = number,
				 .kind = ASK_LEFT_KILL,
				 .arguments = {(const uint8_t *)"which", 5}},
			     &e),
	    0);
}

/* The channel on which the agent was asked. */
static uint32_t
ask(uint64_t number)
{
	start(number);
	return fake_link_sent_chan(&ends.link, FRAME_OPEN_ASK);
}

static struct msg_answer
answered(uint64_t number)
{
	struct ipc_msg in = front_next(&ends.front, IPC_ANSWER);
	struct msg_answer m;
	struct err e;

	assert_int_equal(msg_get_answer(&in, &m, &e), 0);
	assert_int_equal(m.id, SANDBOX);
	assert_int_equal(m.ask, number);
	return m;
}

static int
say_data(uint32_t chan, uint64_t at, size_t n)
{
	static const uint8_t bytes[FRAME_DATA_MAX];

	return fake_link_data(&ends.link, chan, at, bytes, n);
}

TEST(the_agents_answer_goes_on_as_it_came)
{
	struct msg_answer m;
	uint32_t n;

	greet(FRAME_VERSION);
	n = ask(3);
	assert_int_equal(fake_link_data(&ends.link, n, 0, "abc", 3), 0);
	assert_int_equal(fake_link_data(&ends.link, n, 3, "de", 2), 0);
	front_expect_nothing(&ends.front);
	assert_int_equal(fake_link_close(&ends.link, n, 0, ""), 0);
	m = answered(3);
	assert_int_equal(m.end, MSG_ASK_END_ANSWERED);
	assert_int_equal(m.error, 0);
	assert_int_equal(m.bytes.n, 5);
	assert_memory_equal(m.bytes.p, "abcde", 5);
	front_expect_nothing(&ends.front);
}

TEST(an_empty_answer_is_for_the_front_to_judge)
{
	struct msg_answer m;
	uint32_t n;

	greet(FRAME_VERSION);
	n = ask(1);
	assert_int_equal(fake_link_close(&ends.link, n, 0, ""), 0);
	m = answered(1);
	assert_int_equal(m.end, MSG_ASK_END_ANSWERED);
	assert_int_equal(m.error, 0);
	assert_int_equal(m.bytes.n, 0);
	assert_int_equal(fake_link_close(&ends.link, n, 0, ""), 0); /* again */
	front_expect_nothing(&ends.front);
}

TEST(a_refusal_is_told)
{
	struct msg_answer m;
	uint32_t n;

	greet(FRAME_VERSION);
	n = ask(1);
	assert_int_equal(fake_link_close(&ends.link, n, ESRCH, "x"), 0);
	assert_int_equal(answered(1).error, ESRCH);
	n = ask(2);
	assert_int_equal(fake_link_data(&ends.link, n, 0, "abc", 3), 0);
	assert_int_equal(fake_link_close(&ends.link, n, EINVAL, "x"), 0);
	m = answered(2);
	assert_int_equal(m.error, EINVAL);
	assert_int_equal(m.bytes.n, 0);
}

TEST(an_answer_beyond_its_bound_ends_the_link)
{
	uint32_t n;

	greet(FRAME_VERSION);
	n = ask(1);
	assert_int_equal(say_data(n, 0, ASK_ANSWER_MAX), 0);
	assert_int_equal(say_data(n, ASK_ANSWER_MAX, 1), ERR_PROTO);
	front_expect_nothing(&ends.front);
	fake_link_lose(&ends.link);
	assert_int_equal(answered(1).end, MSG_ASK_END_CUT);
}

TEST(bytes_of_another_channel_are_none_of_it)
{
	uint32_t n;

	greet(FRAME_VERSION);
	n = ask(1);
	assert_int_equal(say_data(n + 1, 0, 1), ERR_PROTO);
	fake_link_lose(&ends.link);
	(void)answered(1);
}

TEST(a_lost_link_tells_that_it_may_have_been_done)
{
	greet(FRAME_VERSION);
	(void)ask(1);
	fake_link_lose(&ends.link);
	assert_int_equal(answered(1).end, MSG_ASK_END_CUT);
	start(9); /* while it is away */
	assert_int_equal(answered(9).end, MSG_ASK_END_NOT_ASKED);
	front_expect_nothing(&ends.front);
}

TEST(an_agent_that_never_answers_is_asked_so_often_only)
{
	uint32_t first;

	greet(FRAME_VERSION);
	first = ask(0);
	for (uint64_t i = 1; i < BOX_ASKS_MAX; i++)
		(void)ask(i);
	for (uint64_t i = 0; i < 100; i++) {
		start(1000 + i);
		assert_int_equal(answered(1000 + i).end, MSG_ASK_END_NOT_ASKED);
	}
	fake_link_sent_nothing(&ends.link);
	assert_int_equal(fake_link_close(&ends.link, first, 0, ""), 0);
	assert_int_equal(answered(0).error, 0);
	(void)ask(BOX_ASKS_MAX);
}

TEST(a_box_that_goes_answers_all)
{
	bool seen[3] = {false};
	uint32_t n = 0;

	greet(FRAME_VERSION);
	for (uint64_t i = 0; i < ARRAY_LEN(seen); i++)
		n = ask(i);
	box_asks_free(fix.asks);
	fix.asks = NULL;
	for (size_t i = 0; i < ARRAY_LEN(seen); i++) {
		struct ipc_msg in = front_next(&ends.front, IPC_ANSWER);
		struct msg_answer m;
		struct err e;

		assert_int_equal(msg_get_answer(&in, &m, &e), 0);
		assert_int_equal(m.end, MSG_ASK_END_GONE);
		assert_true(m.ask < ARRAY_LEN(seen) && !seen[m.ask]);
		seen[m.ask] = true;
	}
	/* what the agent still says of it goes nowhere */
	assert_int_equal(say_data(n, 0, 3), 0);
	assert_int_equal(fake_link_close(&ends.link, n, 0, ""), 0);
	front_expect_nothing(&ends.front);
}

TEST(an_agent_that_does_not_know_the_question_is_told_as_such)
{
	uint32_t n;

	greet(FRAME_VERSION);
	n = ask(1);
	assert_int_equal(fake_link_close(&ends.link, n, ENOSYS, "what?"), 0);
	assert_int_equal(answered(1).end, MSG_ASK_END_TOO_OLD);
}

/* Before version 7 the frame had the number, and its fields these bytes: u32
 * chan, u64 limit, action LIST or KILL, uuid run, u32 process. */
TEST(an_older_agent_is_asked_in_bytes_that_it_knows)
{
	struct wire_in in;

	assert_int_equal(FRAME_OPEN_ASK, 45);
	greet(6);
	start(1);
	in = fake_link_sent(&ends.link, FRAME_OPEN_ASK);
	assert_int_equal(wire_get_u32(&in), 1);
	assert_int_equal(wire_get_u64(&in), ASK_ANSWER_MAX);
	assert_int_equal(wire_get_u8(&in), 1);
	assert_int_equal(in.left, 5);
	assert_memory_equal(in.p, "which", 5);
}

TEST(a_kind_that_does_not_exist_ends_the_fronts_channel)
{
	const struct msg_ask m = {.id = SANDBOX, .kind = ASK_KINDS};
	struct err e;

	greet(FRAME_VERSION);
	assert_int_equal(box_asks_start(fix.asks, &m, &e), ERR_PROTO);
}

TEST(a_cancel_closes_the_channel_and_frees_its_place)
{
	uint32_t n[BOX_ASKS_MAX];

	greet(FRAME_VERSION);
	for (uint64_t i = 0; i < ARRAY_LEN(n); i++)
		n[i] = ask(i);
	box_asks_cancel(fix.asks, 1000);
	fake_link_sent_nothing(&ends.link);
	box_asks_cancel(fix.asks, 3);
	assert_int_equal(fake_link_sent_chan(&ends.link, FRAME_CLOSE), n[3]);
	/* its answer and the cancel crossed */
	assert_int_equal(say_data(n[3], 0, 3), 0);
	assert_int_equal(fake_link_close(&ends.link, n[3], 0, ""), 0);
	front_expect_nothing(&ends.front);
	(void)ask(ARRAY_LEN(n));
}

TEST(all_boxes_together_have_a_bound)
{
	greet(FRAME_VERSION);
	fix.host.open = BOX_ASKS_WORKER_MAX - 1;
	(void)ask(1);
	start(2);
	assert_int_equal(answered(2).end, MSG_ASK_END_NOT_ASKED);
	box_asks_cancel(fix.asks, 1);
	assert_int_equal(fix.host.open, BOX_ASKS_WORKER_MAX - 1);
}

TEST_MAIN(setup, teardown)

#include "tests/unit/core/core_ground.h"

#include <errno.h>

#include "supervisor/core/asks.h"

/* Questions to agents, and agents that do not answer them. */

struct asked {
	struct ask *ask; /* NULL: closed, or over */
	unsigned int answers;
	int rc;
	char bytes[16];
};
static struct asked one;

static void
answer_cb(int rc, const struct span *answer, const struct err *why, void *arg)
{
	struct asked *a = arg;

	a->ask = NULL;
	a->answers++;
	a->rc = rc;
	if (rc == 0) {
		assert_true(answer->n < sizeof(a->bytes));
		memcpy(a->bytes, answer->p, answer->n);
	} else {
		assert_int_equal(why->code, rc);
		assert_true(why->msg[0] != '\0');
	}
}

/* A list may be asked for again, a kill not. */
static struct ask *
open_ask(struct asked *a, enum ask_kind kind)
{
	const struct ask_wish wish = {.sandbox = 1,
	    .kind = kind,
	    .repeat = kind == ASK_LEFT_KILL ? ASK_ONCE : ASK_AGAIN,
	    .arguments = {(const uint8_t *)"which", 5}};
	struct err e;

	*a = (struct asked){0};
	a->ask = ask_open(core_asks(g.core), &wish, answer_cb, a, &e);
	return a->ask;
}

static struct sandbox *
make_box(void)
{
	struct sandbox *sb = ground_open("box");

	expect_told(0, "create 1");
	say_ready(0, 1);
	return sb;
}

static void
say(uint64_t sandbox, uint64_t number, struct msg_answer m)
{
	m.id = sandbox;
	m.ask = number;
	msg_send_answer(g.worker[0].chan, &m);
	ground_settle(0);
}

static void
say_bytes(uint64_t sandbox, uint64_t number, const char *text)
{
	say(sandbox, number,
	    (struct msg_answer){
		.bytes = {(const uint8_t *)text, strlen(text)}});
}

static void
say_end(enum msg_ask_end end)
{
	say(1, g.worker[0].asked, (struct msg_answer){.end = end});
}

TEST(the_answer_comes_once)
{
	(void)make_box();
	assert_non_null(open_ask(&one, ASK_LEFT_KILL));
	assert_int_equal(one.answers, 0);
	expect_told(0, "kill 1");
	say_bytes(1, g.worker[0].asked, "so it is");
	ground_wait_until(one.answers == 1);
	assert_int_equal(one.rc, 0);
	assert_string_equal(one.bytes, "so it is");
	say_bytes(1, g.worker[0].asked, "again");
	assert_int_equal(one.answers, 1);
	assert_false(was_told(0, "unasked 1"));
}

TEST(an_answer_to_something_else_is_none)
{
	(void)make_box();
	assert_non_null(open_ask(&one, ASK_LEFT_LIST));
	expect_told(0, "list 1");
	say_bytes(1, g.worker[0].asked + 1, "no");
	say_bytes(1, 0, "no");
	say_bytes(2, g.worker[0].asked, "no"); /* of another sandbox */
	assert_int_equal(one.answers, 0);
	say_bytes(1, g.worker[0].asked, "yes");
	ground_wait_until(one.answers == 1);
	assert_string_equal(one.bytes, "yes");
}

TEST(a_refusal_has_its_reason)
{
	static const struct {
		uint32_t error;
		int rc;
	} refusals[] = {
	    {ESRCH, ERR_NOTFOUND}, {ENOENT, ERR_NOTFOUND}, {EIO, ERR_BACKEND}};

	(void)make_box();
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		assert_non_null(open_ask(&one, ASK_LEFT_LIST));
		expect_told(0, "list 1");
		forget_told(0);
		say(1, g.worker[0].asked,
		    (struct msg_answer){.error = refusals[i].error});
		ground_wait_until(one.answers == 1);
		assert_int_equal(one.rc, refusals[i].rc);
	}
}

TEST(what_cannot_be_reached_is_asked_again)
{
	(void)make_box();
	assert_non_null(open_ask(&one, ASK_LEFT_KILL));
	for (int i = 0; i < 3; i++) {
		expect_told(0, "kill 1");
		forget_told(0);
		say_end(MSG_ASK_END_NOT_ASKED);
		assert_int_equal(one.answers, 0);
	}
	expect_told(0, "kill 1");
	say_bytes(1, g.worker[0].asked, "done");
	ground_wait_until(one.answers == 1);
	assert_int_equal(one.rc, 0);
}

TEST(after_a_lost_link_only_what_is_fit_for_it_is_asked_again)
{
	(void)make_box();
	assert_non_null(open_ask(&one, ASK_LEFT_LIST));
	expect_told(0, "list 1");
	forget_told(0);
	say_end(MSG_ASK_END_CUT);
	expect_told(0, "list 1");
	assert_int_equal(one.answers, 0);
	ask_close(one.ask);
	assert_non_null(open_ask(&one, ASK_LEFT_KILL));
	expect_told(0, "kill 1");
	say_end(MSG_ASK_END_CUT);
	ground_wait_until(one.answers == 1);
	assert_int_equal(one.rc, ERR_WRONG_STATE);
}

TEST(an_agent_that_is_too_old_is_not_asked_again)
{
	(void)make_box();
	assert_non_null(open_ask(&one, ASK_LEFT_LIST));
	expect_told(0, "list 1");
	say_end(MSG_ASK_END_TOO_OLD);
	ground_wait_until(one.answers == 1);
	assert_int_equal(one.rc, ERR_WRONG_STATE);
}

TEST(a_sandbox_that_is_gone_is_told_as_such)
{
	struct sandbox *sb = make_box();
	static struct asked other;

	assert_non_null(open_ask(&one, ASK_LEFT_LIST));
	expect_told(0, "list 1");
	say_end(MSG_ASK_END_GONE);
	ground_wait_until(one.answers == 1);
	assert_int_equal(one.rc, ERR_LOST);

	/* deleted while the agent is silent */
	forget_told(0);
	assert_non_null(open_ask(&other, ASK_LEFT_KILL));
	expect_told(0, "kill 1");
	sandbox_remove(sb);
	expect_told(0, "remove 1");
	say_removed(0, 1, 0);
	ground_wait_until(other.answers == 1);
	assert_int_equal(other.rc, ERR_LOST);
}

TEST(silence_has_an_end_and_a_cancel)
{
	static struct asked kill;

	(void)make_box();
	assert_non_null(open_ask(&kill, ASK_LEFT_KILL));
	expect_told(0, "kill 1");
	assert_non_null(open_ask(&one, ASK_LEFT_LIST));
	expect_told(0, "list 1");
	forget_told(0);
	ground_wait_until(one.answers == 1 && kill.answers == 1);
	assert_int_equal(one.rc, ERR_BACKEND);
	assert_int_equal(kill.rc, ERR_BACKEND);
	expect_told(0, "unasked 1");
	assert_false(was_told(0, "kill 1"));
	assert_false(was_told(0, "list 1"));
}

TEST(the_next_worker_is_asked_what_is_fit_for_it)
{
	static struct asked kill;

	(void)make_box();
	assert_non_null(open_ask(&one, ASK_LEFT_LIST));
	expect_told(0, "list 1");
	assert_non_null(open_ask(&kill, ASK_LEFT_KILL));
	expect_told(0, "kill 1");
	ground_kill_worker(0);
	ground_wait_until(kill.answers == 1);
	assert_int_equal(kill.rc, ERR_WRONG_STATE);
	forget_told(0);
	ground_worker(0);
	expect_told(0, "adopt 1");
	expect_told(0, "list 1");
	say_bytes(1, g.worker[0].asked, "yes");
	ground_wait_until(one.answers == 1);
	assert_int_equal(one.rc, 0);
}

TEST(so_many_of_a_tenant_may_be_open)
{
	static struct asked many[ASKS_TENANT_MAX];
	const struct ask_wish wish = {.sandbox = 1};
	uint64_t number;
	struct err e;

	(void)make_box();
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		assert_non_null(open_ask(&many[i], ASK_LEFT_LIST));
	assert_null(ask_open(core_asks(g.core), &wish, answer_cb, &one, &e));
	assert_int_equal(e.code, ERR_LIMIT);
	/* another's, of a sandbox that is gone */
	assert_non_null(ask_open(core_asks(g.core),
	    &(struct ask_wish){.sandbox = 2}, answer_cb, &one, &e));
	expect_told(0, "list 1");
	number = g.worker[0].asked;
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		ask_close(many[i].ask);
	say_bytes(1, number, "late"); /* nobody waits any more */
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		assert_int_equal(many[i].answers, 0);
	assert_non_null(open_ask(&many[0], ASK_LEFT_LIST));
	/* It goes with the core, unanswered. */
}

TEST_MAIN(ground_set_up, ground_tear_down)

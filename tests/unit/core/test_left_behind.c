#include "tests/unit/core/core_ground.h"

#include "supervisor/core/left_behind.h"

/* Questions about what is left behind, and agents that answer them badly. */

struct asked {
	struct left_ask *ask; /* NULL: closed, or over */
	unsigned int answers;
	int rc;
	uint32_t count, killed;
};
static struct asked one;

static void
answer_cb(int rc, const struct leftlist *l, const struct err *why, void *arg)
{
	struct asked *a = arg;

	a->ask = NULL;
	a->answers++;
	a->rc = rc;
	if (rc == 0) {
		a->count = l->count;
		a->killed = l->killed;
	} else {
		assert_int_equal(why->code, rc);
		assert_true(why->msg[0] != '\0');
	}
}

static struct left_ask *
open_ask(struct asked *a, enum msg_left_action action, uint32_t process)
{
	const struct left_wish wish = {
	    .sandbox = 1, .run = {{7}}, .action = action, .process = process};
	struct err e;

	*a = (struct asked){0};
	a->ask =
	    left_ask_open(core_left_behind(g.core), &wish, answer_cb, a, &e);
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
say_answer(uint64_t sandbox, uint64_t number, int code, const void *p, size_t n)
{
	msg_send_left_answer(g.worker[0].chan,
	    &(struct msg_left_answer){.id = sandbox,
		.ask = number,
		.code = code,
		.text = "so it is",
		.list = {p, n}});
	ground_settle(0);
}

static void
say_list(uint64_t sandbox, uint64_t number, uint32_t count)
{
	const struct leftlist l = {
	    .total = count + 1, .count = count, .killed = 2};
	struct buf b;

	buf_init(&b, LEFTLIST_BYTES_MAX);
	leftlist_encode(&l, &b);
	say_answer(sandbox, number, 0, buf_data(&b), buf_len(&b));
	buf_clear(&b);
}

TEST(the_answer_comes_once_and_counts_the_sandboxs)
{
	const struct sandbox *sb = make_box();

	assert_non_null(open_ask(&one, MSG_LEFT_ACTION_KILL, 0));
	assert_int_equal(one.answers, 0);
	expect_told(0, "kill 1");
	say_list(1, g.worker[0].asked, 4);
	ground_wait_until(one.answers == 1);
	assert_int_equal(one.rc, 0);
	assert_int_equal(one.count, 4);
	assert_int_equal(one.killed, 2);
	assert_int_equal(sb->left, 5);
	say_list(1, g.worker[0].asked, 9);
	assert_int_equal(one.answers, 1);
	assert_int_equal(sb->left, 5);
}

TEST(an_answer_to_something_else_is_none)
{
	(void)make_box();
	assert_non_null(open_ask(&one, MSG_LEFT_ACTION_LIST, 0));
	expect_told(0, "list 1");
	say_list(1, g.worker[0].asked + 1, 4);
	say_list(1, 0, 4);
	say_list(2, g.worker[0].asked, 4); /* of another sandbox */
	assert_int_equal(one.answers, 0);
	say_list(1, g.worker[0].asked, 4);
	ground_wait_until(one.answers == 1);
	assert_int_equal(one.count, 4);
}

TEST(an_answer_without_sense_is_told_as_such)
{
	static const uint8_t nonsense[60] = {1, 2, 3};
	static const size_t lengths[] = {0, 1, sizeof(nonsense)};

	(void)make_box();
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		assert_non_null(open_ask(&one, MSG_LEFT_ACTION_LIST, 0));
		expect_told(0, "list 1");
		forget_told(0);
		say_answer(1, g.worker[0].asked, 0, nonsense, lengths[i]);
		ground_wait_until(one.answers == 1);
		assert_int_equal(one.rc, ERR_BACKEND);
	}
}

TEST(what_cannot_be_reached_is_asked_again)
{
	(void)make_box();
	assert_non_null(open_ask(&one, MSG_LEFT_ACTION_KILL, 5));
	for (int i = 0; i < 3; i++) {
		expect_told(0, "kill 1");
		forget_told(0);
		say_answer(1, g.worker[0].asked, ERR_BACKEND, "", 0);
		assert_int_equal(one.answers, 0);
	}
	expect_told(0, "kill 1");
	say_answer(1, g.worker[0].asked, ERR_NOTFOUND, "", 0);
	ground_wait_until(one.answers == 1);
	assert_int_equal(one.rc, ERR_NOTFOUND);
}

TEST(a_sandbox_that_is_gone_has_left_nothing)
{
	struct sandbox *sb = make_box();
	static struct asked kill;

	assert_non_null(open_ask(&one, MSG_LEFT_ACTION_LIST, 0));
	expect_told(0, "list 1");
	say_answer(1, g.worker[0].asked, ERR_LOST, "", 0);
	ground_wait_until(one.answers == 1);
	assert_int_equal(one.rc, 0);
	assert_int_equal(one.count, 0);

	/* deleted while the agent is silent */
	forget_told(0);
	assert_non_null(open_ask(&one, MSG_LEFT_ACTION_LIST, 0));
	expect_told(0, "list 1");
	assert_non_null(open_ask(&kill, MSG_LEFT_ACTION_KILL, 5));
	expect_told(0, "kill 1");
	sandbox_remove(sb);
	expect_told(0, "remove 1");
	say_removed(0, 1, 0);
	ground_wait_until(one.answers == 1 && kill.answers == 1);
	assert_int_equal(one.rc, 0);
	assert_int_equal(one.count, 0);
	assert_int_equal(kill.rc, ERR_NOTFOUND);
}

/* A list may be asked for twice, a process not be killed twice. */
TEST(silence_has_an_end)
{
	static struct asked kill;

	(void)make_box();
	assert_non_null(open_ask(&kill, MSG_LEFT_ACTION_KILL, 5));
	expect_told(0, "kill 1");
	forget_told(0);
	assert_non_null(open_ask(&one, MSG_LEFT_ACTION_LIST, 0));
	expect_told(0, "list 1");
	forget_told(0);
	expect_told(0, "list 1");
	ground_wait_until(one.answers == 1 && kill.answers == 1);
	assert_int_equal(one.rc, ERR_BACKEND);
	assert_int_equal(kill.rc, ERR_BACKEND);
	assert_false(was_told(0, "kill 1"));
}

TEST(the_next_worker_is_asked)
{
	(void)make_box();
	assert_non_null(open_ask(&one, MSG_LEFT_ACTION_LIST, 0));
	expect_told(0, "list 1");
	ground_kill_worker(0);
	forget_told(0);
	ground_worker(0);
	expect_told(0, "adopt 1");
	expect_told(0, "list 1");
	say_list(1, g.worker[0].asked, 1);
	ground_wait_until(one.answers == 1);
	assert_int_equal(one.count, 1);
}

TEST(so_many_may_ask_at_once)
{
	static struct asked many[LEFT_ASKS_OPEN_MAX];
	const struct left_wish wish = {.sandbox = 1};
	uint64_t number;
	struct err e;

	(void)make_box();
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		assert_non_null(open_ask(&many[i], MSG_LEFT_ACTION_LIST, 0));
	assert_null(left_ask_open(
	    core_left_behind(g.core), &wish, answer_cb, &one, &e));
	assert_int_equal(e.code, ERR_LIMIT);
	expect_told(0, "list 1");
	number = g.worker[0].asked;
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		left_ask_close(many[i].ask);
	say_list(1, number, 4); /* nobody waits any more */
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		assert_int_equal(many[i].answers, 0);
	assert_non_null(open_ask(&one, MSG_LEFT_ACTION_LIST, 0));
	/* It goes with the core, unanswered. */
}

TEST_MAIN(ground_set_up, ground_tear_down)

#include "tests/unit/worker/task_fixture.h"

#include "common/clock.h"
#include "common/timer.h"

/* The end, with as much of the log as never was in the spool. */
static void
expect_end_with(const uint8_t *log, size_t n)
{
	struct ipc_msg in = front_next(&ends.front, IPC_RUN_ENDED);
	struct msg_run_ended m;
	struct err e;

	assert_int_equal(msg_get_run_ended(&in, &m, &e), 0);
	assert_int_equal(m.reason, RUNLOG_EXIT);
	assert_int_equal(m.log.n, n);
	if (n > 0) {
		assert_memory_equal(m.log.p, log, n);
		assert_int_equal(m.length, n);
		assert_int_equal(spool_length(), 0);
	} else {
		assert_int_equal(m.length, spool_length());
	}
	front_expect_nothing(&ends.front);
	assert_int_equal(fix.completed, 1);
}

static void
expect_records(unsigned int n)
{
	while (n-- > 0)
		(void)front_next(&ends.front, IPC_RUN_RECORD);
}

TEST(a_whole_log_is_told_in_order)
{
	AUTO(auto_free) uint8_t *said = NULL;
	struct buf b;
	size_t n;

	begin(1 << 20);
	buf_init(&b, 0);
	log_whole(&b, "hello", false);
	n = buf_len(&b);
	said = xmemdup(buf_data(&b), n);
	say_log(0, &b);
	front_expect_nothing(&ends.front); /* not before the turn's end */
	task_flush(fix.task);
	expect_records(4);
	expect_end_with(said, n);
	/* So little is freed with the run. */
	fake_link_sent_nothing(&ends.link);
}

/* In pieces of one turn it is the same log. */
TEST(a_short_log_in_pieces_comes_with_its_end)
{
	AUTO(auto_free) uint8_t *said = NULL;
	struct buf b, piece;
	size_t n;

	begin(1 << 20);
	buf_init(&b, 0);
	buf_init(&piece, 0);
	log_whole(&b, "hello", false);
	n = buf_len(&b);
	said = xmemdup(buf_data(&b), n);
	for (size_t at = 0; at < n; at++) {
		assert_int_equal(buf_append(&piece, said + at, 1), 0);
		say_log(at, &piece);
	}
	buf_clear(&b);
	task_flush(fix.task);
	expect_records(4);
	expect_end_with(said, n);
}

static void
say_whole_and_expect_spool(const char *text, bool artifacts)
{
	struct buf b;
	size_t n;

	begin(1 << 20);
	buf_init(&b, 0);
	log_whole(&b, text, artifacts);
	n = buf_len(&b);
	say_log(0, &b);
	task_flush(fix.task);
	expect_bytes(n);
	assert_int_equal(spool_length(), n);
	expect_records(4);
}

TEST(a_log_too_long_for_the_end_is_in_the_spool)
{
	char text[MSG_RUN_ENDED_LOG_MAX + 1];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	say_whole_and_expect_spool(text, false);
	expect_end_with(NULL, 0);
}

/* Its end is not told before they are copied; who follows it reads on. */
TEST(a_short_log_with_artifacts_is_in_the_spool)
{
	say_whole_and_expect_spool("hello", true);
	front_expect_nothing(&ends.front);
	task_finish(fix.task, "");
	expect_end_with(NULL, 0);
}

TEST(a_log_of_two_turns_is_in_the_spool)
{
	struct buf b;
	uint64_t at;

	begin_log(&b);
	at = buf_len(&b);
	say_log(0, &b);
	assert_int_equal(spool_length(), 0);
	task_flush(fix.task);
	assert_int_equal(spool_length(), at);
	expect_bytes(at);
	expect_records(2);
	log_command_end(&b, 0);
	log_run_end(&b, RUNLOG_EXIT, false);
	at += buf_len(&b);
	say_log(spool_length(), &b);
	task_flush(fix.task);
	expect_bytes(at);
	expect_records(2);
	expect_end_with(NULL, 0);
}

/* What is believed so far is told, whatever comes behind it. */
TEST(an_end_from_outside_has_what_was_held)
{
	struct msg_run_ended m;
	struct ipc_msg in;
	struct err e;
	struct buf b;
	size_t n;

	begin(1 << 20);
	buf_init(&b, 0);
	log_plain(&b, RUNLOG_RUN_STARTED, 0);
	n = buf_len(&b);
	say_log(0, &b);
	assert_int_equal(
	    buf_append(&b, "rubbish, as long as a header is", 31), 0);
	say_log(n, &b);
	expect_records(1);
	in = front_next(&ends.front, IPC_RUN_ENDED);
	assert_int_equal(msg_get_run_ended(&in, &m, &e), 0);
	assert_int_equal(m.reason, RUNLOG_INTERNAL);
	assert_int_equal(m.log.n, n);
	assert_int_equal(m.length, n);
	assert_int_equal(spool_length(), 0);
}

/* Its bytes are in the agent's way only when they are many. */
TEST(a_log_is_acknowledged_when_it_is_more_than_a_little)
{
	AUTO(auto_free) char *text = xcalloc(1, TASK_UNACKED_MAX + 1);
	struct buf b;
	size_t n;

	memset(text, 'x', TASK_UNACKED_MAX);
	begin_log(&b);
	n = buf_len(&b);
	say_log(0, &b);
	task_flush(fix.task);
	fake_link_sent_nothing(&ends.link);
	log_output(&b, text);
	say_log(n, &b);
	task_flush(fix.task);
	assert_int_equal(fake_link_sent_credit(&ends.link), spool_length());
}

/* Four records of 32 KiB. */
static void
say_a_lot(void)
{
	AUTO(auto_free) char *text = xcalloc(1, TASK_ACK_BYTES / 16 + 1);
	struct buf b;

	memset(text, 'x', TASK_ACK_BYTES / 16);
	buf_init(&b, 0);
	for (int i = 0; i < 4; i++)
		log_output(&b, text);
	say_log(spool_length(), &b);
	task_flush(fix.task);
}

TEST(a_fast_log_is_acknowledged_by_half_windows)
{
	struct buf b;

	begin_log(&b);
	say_log(0, &b);
	task_flush(fix.task);
	for (int i = 0; i < 3; i++) {
		say_a_lot();
		fake_link_sent_nothing(&ends.link);
	}
	say_a_lot();
	assert_true(spool_length() > TASK_ACK_BYTES);
	assert_int_equal(fake_link_sent_credit(&ends.link), spool_length());
}

TEST(a_long_log_is_acknowledged_at_its_end)
{
	AUTO(auto_free) char *text = xcalloc(1, TASK_UNACKED_MAX + 1);
	struct buf b;
	size_t n;

	memset(text, 'x', TASK_UNACKED_MAX);
	begin(1 << 20);
	buf_init(&b, 0);
	log_whole(&b, text, false);
	n = buf_len(&b);
	say_log(0, &b);
	task_flush(fix.task);
	assert_int_equal(fake_link_sent_credit(&ends.link), n);
	assert_int_equal(fix.completed, 1);
}

TEST(bytes_are_told_once_a_turn_and_never_twice)
{
	struct buf b;
	uint64_t at = 0;

	begin_log(&b);
	at = buf_len(&b);
	say_log(0, &b);
	log_output(&b, "abc");
	say_log(at, &b);
	task_flush(fix.task);
	expect_bytes(at + 19);
	(void)front_next(&ends.front, IPC_RUN_RECORD);
	(void)front_next(&ends.front, IPC_RUN_RECORD);
	task_flush(fix.task);
	front_expect_nothing(&ends.front);
}

/* Messages that say how long the log is, up to the one that says length. */
static unsigned int
count_tells(uint64_t length)
{
	struct msg_run_bytes m = {0};
	unsigned int n = 0;
	struct err e;

	for (; m.length < length; n++) {
		struct ipc_msg in = front_next(&ends.front, IPC_RUN_BYTES);

		assert_int_equal(msg_get_run_bytes(&in, &m, &e), 0);
	}
	assert_int_equal(m.length, length);
	return n;
}

TEST(what_comes_in_many_turns_is_told_in_a_few)
{
	struct buf b;
	uint64_t at, began, most;

	begin_log(&b);
	at = buf_len(&b);
	say_log(0, &b);
	task_flush(fix.task);
	expect_bytes(at);
	(void)front_next(&ends.front, IPC_RUN_RECORD);
	(void)front_next(&ends.front, IPC_RUN_RECORD);
	began = clock_mono_ms();
	for (int i = 0; i < 200; i++) {
		log_output(&b, "abc");
		say_log(at, &b);
		at += 19;
		task_flush(fix.task);
	}
	while (timer_is_set(fix.task->tell))
		(void)event_base_loop(ends.base, EVLOOP_ONCE);
	most = (clock_mono_ms() - began) / TASK_TELL_MS + 2;
	assert_in_range(count_tells(at), 1, most);
	front_expect_nothing(&ends.front);
}

TEST(a_forged_log_ends_the_run_and_is_wanted_no_more)
{
	struct buf b;
	char *text;

	begin(1 << 20);
	buf_init(&b, 0);
	log_output(&b, "before any command");
	say_log(0, &b);
	text = expect_end(RUNLOG_INTERNAL);
	assert_non_null(strstr(text, "the sandbox sent a broken log: "));
	free(text);
	assert_int_equal(spool_length(), 0);
	assert_int_equal(
	    fake_link_sent_chan(&ends.link, FRAME_CLOSE), fix.chan);
}

TEST(a_log_before_its_run_is_known_breaks_the_protocol)
{
	struct buf b;

	new_task(1 << 20);
	task_begin(fix.task);
	attach(NULL);
	buf_init(&b, 0);
	log_plain(&b, RUNLOG_RUN_STARTED, 0);
	assert_int_equal(try_log(0, &b), ERR_PROTO);
	assert_int_equal(spool_length(), 0);
}

TEST(no_part_of_a_piece_with_rubbish_is_kept)
{
	struct buf b;

	begin(1 << 20);
	buf_init(&b, 0);
	log_whole(&b, "hello", true);
	assert_int_equal(buf_append(&b, "x", 1), 0); /* behind the end */
	say_log(0, &b);
	free(expect_end(RUNLOG_INTERNAL));
	assert_int_equal(spool_length(), 0);
	assert_int_equal(fix.completed, 0);
}

TEST(forged_byte_counts_end_the_run)
{
	struct buf b;

	begin_log(&b);
	log_output(&b, "abc");
	log_command_end(&b, 4);
	say_log(0, &b);
	free(expect_end(RUNLOG_INTERNAL));
}

TEST(a_command_that_was_never_asked_for_ends_the_run)
{
	struct buf b;

	begin(1 << 20);
	buf_init(&b, 0);
	log_plain(&b, RUNLOG_RUN_STARTED, 0);
	log_plain(&b, RUNLOG_COMMAND_STARTED, 1);
	say_log(0, &b);
	free(expect_end(RUNLOG_INTERNAL));
}

TEST(an_agent_that_heeds_no_limit_is_cut_off_at_the_margin)
{
	begin(100000);
	(void)say_much(TASK_MARGIN_BYTES * 2, true);
	assert_int_equal(fix.over, 1);
	skip_to_end(RUNLOG_OUTPUT_LIMIT);
	assert_true(spool_length() <= 100000 + TASK_MARGIN_BYTES);
	/* told to stop when the limit was passed, not at the margin */
	(void)fake_link_sent_credit(&ends.link);
	(void)fake_link_sent(&ends.link, FRAME_CANCEL);
}

TEST(what_comes_after_the_end_is_passed_over)
{
	struct buf b;

	begin(1 << 20);
	task_end(fix.task, RUNLOG_LOST, "gone");
	free(expect_end(RUNLOG_LOST));
	assert_int_equal(
	    fake_link_sent_chan(&ends.link, FRAME_CLOSE), fix.chan);
	buf_init(&b, 0);
	log_plain(&b, RUNLOG_RUN_STARTED, 0);
	say_log(0, &b);
	fake_link_sent_nothing(&ends.link);
	front_expect_nothing(&ends.front);
	assert_int_equal(spool_length(), 0);
}

TEST(an_agent_that_starts_a_begun_run_anew_breaks_the_protocol)
{
	begin(1 << 20);
	reconnect();
	assert_int_equal(
	    fake_link_known(&ends.link, fix.chan, true), ERR_PROTO);
}

TEST(a_cancel_is_said_again_on_the_next_stream)
{
	struct wire_in in;

	begin(1 << 20);
	task_cancel(fix.task, RUNLOG_CANCELED);
	(void)fake_link_sent(&ends.link, FRAME_CANCEL);
	reconnect();
	in = fake_link_sent(&ends.link, FRAME_CANCEL);
	assert_int_equal(wire_get_u32(&in), fix.chan);
	assert_int_equal(wire_get_u8(&in), RUNLOG_CANCELED);
}

TEST(a_refused_run_never_began)
{
	char *text;

	new_task(1 << 20);
	attach(NULL);
	assert_int_equal(fake_link_close(&ends.link, fix.chan, 11,
			     "too many\xc2\x9b\x01runs"),
	    0);
	text = expect_end(RUNLOG_START_FAILED);
	assert_string_equal(text, "the sandbox refused the run: too many runs");
	free(text);
}

TEST(a_run_that_is_whole_is_forgotten_by_its_channel)
{
	say_whole(false);
	task_flush(fix.task);
	fake_link_sent_nothing(&ends.link); /* not before the front has it */
	task_forget(fix.task);
	assert_int_equal(
	    fake_link_sent_chan(&ends.link, FRAME_CLOSE), fix.chan);
}

TEST(a_run_that_was_whole_before_the_link_is_forgotten_by_its_key)
{
	struct wire_in in;
	struct uuid u;
	uint32_t chan;

	say_whole(false);
	task_flush(fix.task);
	fake_link_lose(&ends.link);
	fake_link_greet(&ends.link);
	(void)fake_link_sent(&ends.link, FRAME_WELCOME);
	task_attach(fix.task, ends.peer, &known_from_start);
	fake_link_sent_nothing(&ends.link);
	task_forget(fix.task);
	in = fake_link_sent(&ends.link, FRAME_OPEN_SEQUENCE);
	chan = wire_get_u32(&in);
	wire_get_uuid(&in, &u);
	assert_true(uuid_is_equal(&u, &run_uuid));
	assert_int_equal(fake_link_sent_chan(&ends.link, FRAME_CLOSE), chan);
}

TEST(a_whole_log_outlives_its_sandbox)
{
	say_whole(true);
	task_flush(fix.task);
	assert_int_equal(fix.completed, 1);
	task_end(fix.task, RUNLOG_LOST, "gone");
	skip_to_end(RUNLOG_EXIT);
}

/* ---- an agent that does not end it */

static void
expect_given_up(enum runlog_reason reason)
{
	fixture_loop(ends.base, &fix.overdue);
	free(expect_end(reason));
	assert_int_equal(fix.completed, 0);
}

TEST(a_run_past_its_limits_ends_without_its_agent)
{
	fix.limit_ms = 20;
	begin(1 << 20);
	expect_given_up(RUNLOG_TIMEOUT);
}

TEST(an_agent_that_does_not_even_know_a_run_is_not_waited_for)
{
	fix.limit_ms = 20;
	new_task(1 << 20);
	task_begin(fix.task);
	attach(NULL);
	expect_given_up(RUNLOG_TIMEOUT);
}

TEST(a_new_link_gives_a_run_no_new_time)
{
	fix.limit_ms = 20;
	begin(1 << 20);
	reconnect();
	expect_given_up(RUNLOG_TIMEOUT);
}

TEST(a_cancel_that_is_not_heeded_ends_the_run_all_the_same)
{
	begin(1 << 20);
	task_cancel(fix.task, RUNLOG_CANCELED);
	expect_given_up(RUNLOG_CANCELED);
}

TEST(a_whole_log_is_in_time_whatever_follows)
{
	fix.limit_ms = 0;
	say_whole(true);
	task_flush(fix.task);
	assert_false(timer_is_set(fix.task->overdue));
}

TEST_MAIN(setup, teardown)

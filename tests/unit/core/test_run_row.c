#include "common/xmalloc.h"
#include "supervisor/core/run_row.h"
#include "tests/unit/test.h"

#define WHEN_US INT64_C(1795201200123456)

static struct store_run row;
static struct run_log_end log_end;
static unsigned int told;

static int
set_up(void **state)
{
	(void)state;
	row = (struct store_run){.ncommands = 2};
	row.commands = xcalloc(2, sizeof(*row.commands));
	for (uint32_t i = 0; i < 2; i++) {
		row.commands[i].index = i;
		row.commands[i].error = xstrdup("");
		row.commands[i].exit_code = -1;
	}
	row.error = xstrdup("");
	row.artifacts_error = xstrdup("");
	log_end = (struct run_log_end){0};
	told = 0;
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	store_run_clear(&row);
	return 0;
}

static void
tell(uint32_t command, void *arg)
{
	(void)command;
	(void)arg;
	told++;
}

static bool
take(enum runlog_type type, uint16_t command, const struct buf *payload)
{
	const struct runlog_header h = {.type = type,
	    .command = command,
	    .length = payload == NULL ? 0 : (uint32_t)buf_len(payload),
	    .wall_us = WHEN_US};

	return run_row_take(
	    &row, &log_end, &h, payload == NULL ? NULL : buf_data(payload));
}

static bool
take_end(uint16_t command, enum runlog_reason reason, int exit_code)
{
	const struct runlog_end end = {.reason = (uint8_t)reason,
	    .exit_code = exit_code,
	    .stdout_bytes = 7,
	    .cpu_us = 1000 * (command + 1u),
	    .text = "why",
	    .memory_peak_bytes = 4096 / (command + 1u),
	    .memory_kills = command + 1u};
	struct buf b = {0};
	bool is_new;

	runlog_put_end(&b, &end);
	is_new = take(RUNLOG_COMMAND_ENDED, command, &b);
	buf_clear(&b);
	return is_new;
}

static void
take_run_end(uint8_t failed, uint16_t command)
{
	const struct runlog_run_end end = {
	    .reason = RUNLOG_EXIT, .failed = failed, .command = command};
	struct buf b = {0};

	runlog_put_run_end(&b, &end);
	(void)take(RUNLOG_RUN_ENDED, 0, &b);
	buf_clear(&b);
}

static struct run_ending
end_as(enum runlog_reason reason, const char *text)
{
	struct run_ending end;

	run_row_end(&row, &log_end, reason, text, tell, NULL, &end);
	return end;
}

TEST(records_fill_the_row)
{
	assert_false(take(RUNLOG_RUN_STARTED, 0, NULL));
	assert_int_equal(row.state, RUN_STATE_RUNNING);
	assert_int_equal(row.started_ms, WHEN_US / 1000);
	assert_false(take(RUNLOG_COMMAND_STARTED, 0, NULL));
	assert_int_equal(row.commands[0].status, COMMAND_RUNNING);
	assert_true(take_end(0, RUNLOG_EXIT, 0));
	assert_int_equal(row.commands[0].status, COMMAND_COMPLETED);
	assert_int_equal(row.commands[0].end_reason, RUNLOG_EXIT);
	assert_int_equal(row.commands[0].stdout_bytes, 7);
	assert_string_equal(row.commands[0].error, "why");
	/* The same again, from a worker that came later: it is not new. */
	assert_false(take_end(0, RUNLOG_EXIT, 0));
}

TEST(how_a_command_ended_is_its_status)
{
	static const struct {
		enum runlog_reason reason;
		int exit_code;
		enum command_status status;
	} ends[] = {
	    {RUNLOG_EXIT, 0, COMMAND_COMPLETED},
	    {RUNLOG_EXIT, 3, COMMAND_FAILED},
	    {RUNLOG_SIGNAL, 139, COMMAND_FAILED},
	    {RUNLOG_TIMEOUT, 137, COMMAND_TIMED_OUT},
	    {RUNLOG_CANCELED, 137, COMMAND_CANCELED},
	    {RUNLOG_MEMORY, 137, COMMAND_FAILED},
	    {RUNLOG_START_FAILED, 127, COMMAND_FAILED},
	};

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		(void)take_end(0, ends[i].reason, ends[i].exit_code);
		assert_int_equal(row.commands[0].status, ends[i].status);
	}
}

TEST(a_record_of_a_command_there_is_not_changes_nothing)
{
	assert_false(take(RUNLOG_COMMAND_STARTED, 2, NULL));
	assert_false(take_end(9, RUNLOG_EXIT, 0));
	assert_int_equal(row.commands[0].status, COMMAND_QUEUED);
	assert_int_equal(row.commands[1].status, COMMAND_QUEUED);
}

TEST(a_whole_log_without_a_failure_is_completed)
{
	struct run_ending end;

	take_run_end(0, 0);
	end = end_as(RUNLOG_EXIT, "");
	assert_int_equal(end.state, RUN_STATE_COMPLETED);
	assert_string_equal(end.error, "");
	run_ending_clear(&end);
}

TEST(a_run_is_what_its_commands_come_to)
{
	struct run_ending end;

	(void)take(RUNLOG_RUN_STARTED, 0, NULL);
	(void)take_end(0, RUNLOG_EXIT, 2);
	(void)take_end(0, RUNLOG_EXIT, 2); /* told again */
	end = end_as(RUNLOG_LOST, "");
	assert_int_equal(row.exit_code, 2);
	assert_int_equal(row.cpu_us, 1000);
	run_ending_clear(&end);
	(void)take_end(1, RUNLOG_EXIT, 9);
	end = end_as(RUNLOG_EXIT, "");
	assert_int_equal(row.exit_code, 9);
	assert_int_equal(row.stdout_bytes, 14);
	assert_int_equal(row.cpu_us, 3000);
	assert_int_equal(row.memory_peak_bytes, 4096);
	assert_int_equal(row.commands[0].memory_kills, 1);
	assert_int_equal(row.commands[1].memory_kills, 2);
	assert_int_equal(row.sent_ms, WHEN_US / 1000);
	run_ending_clear(&end);
}

TEST(without_a_command_that_ended_there_is_no_exit_code)
{
	struct run_ending end;

	row.exit_code = 7;
	end = end_as(RUNLOG_LOST, "");
	assert_int_equal(row.exit_code, -1);
	run_ending_clear(&end);
}

TEST(the_reason_of_a_failure_is_in_words)
{
	static const struct {
		enum runlog_reason reason;
		int exit_code;
		const char *text;
	} ends[] = {
	    {RUNLOG_EXIT, 3, "command 1 failed with exit 3"},
	    {RUNLOG_TIMEOUT, 137, "command 1 timed out"},
	    {RUNLOG_DENIED, 1, "denylist matched: why"},
	    {RUNLOG_START_FAILED, 127, "command 1 could not start: why"},
	    {RUNLOG_MEMORY, 137,
		"command 1 was killed at the sandbox's memory limit"},
	};
	struct run_ending end;

	take_run_end(1, 1);
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		(void)take_end(1, ends[i].reason, ends[i].exit_code);
		end = end_as(RUNLOG_EXIT, "");
		assert_int_equal(end.state, RUN_STATE_FAILED);
		assert_string_equal(end.error, ends[i].text);
		assert_int_equal(end.reason, ends[i].reason);
		run_ending_clear(&end);
	}
}

TEST(what_still_ran_ends_with_its_run)
{
	struct run_ending end;

	(void)take(RUNLOG_COMMAND_STARTED, 0, NULL);
	end = end_as(RUNLOG_LOST, "the sandbox was lost: gone");
	assert_int_equal(told, 1);
	assert_int_equal(row.commands[0].status, COMMAND_FAILED);
	assert_int_equal(row.commands[0].end_reason, RUNLOG_LOST);
	assert_int_equal(row.commands[0].exit_code, 137);
	assert_int_equal(row.commands[1].status, COMMAND_QUEUED);
	assert_string_equal(end.error, "the sandbox was lost: gone");
	run_ending_clear(&end);
}

TEST(an_ending_is_the_rows_only_when_it_is_closed)
{
	struct run_ending end;
	struct store_run ended;

	(void)take(RUNLOG_RUN_STARTED, 0, NULL);
	end = end_as(RUNLOG_CANCELED, "");
	ended = run_row_ended(&row, &end);
	assert_int_equal(row.state, RUN_STATE_RUNNING);
	assert_int_equal(ended.state, RUN_STATE_CANCELED);
	assert_string_equal(ended.error, "the run was canceled");
	run_row_close(&row, &end);
	assert_int_equal(row.state, RUN_STATE_CANCELED);
	assert_string_equal(row.error, "the run was canceled");
	assert_null(end.error);
}

TEST_MAIN(set_up, tear_down)

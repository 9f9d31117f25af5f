#include "supervisor/core/run.h"
#include "supervisor/core/task_rules.h"
#include "tests/unit/test.h"

#define MADE 100000
#define NOW (MADE + 12500)

static struct store_task
row_in(const char *state)
{
	return (struct store_task){
	    .created_ms = MADE, .run_state = (char *)(uintptr_t)state};
}

static struct task_status
of(const struct store_task *row, const struct run *run)
{
	struct task_status s;

	task_stands(row, run, NOW, &s);
	return s;
}

TEST(a_wish_is_kept_within_limits)
{
	assert_int_equal(task_ttl_ms(-1), 24 * 3600000);
	assert_int_equal(task_ttl_ms(0), 15 * 60000);
	assert_int_equal(task_ttl_ms(3600000), 3600000);
	assert_int_equal(task_ttl_ms(INT64_MAX), INT64_C(7) * 24 * 3600000);
}

TEST(a_task_works_while_its_run_does)
{
	const struct store_task row = row_in("queued");
	struct run run = {.row.created_ms = MADE - 500, .length = 999};
	struct task_status s = of(&row, &run);

	assert_int_equal(s.standing, TASK_WORKS);
	assert_string_equal(s.message, "queued for 13 s");
	assert_int_equal(s.updated_ms, MADE);
	run.row.started_ms = MADE + 500;
	s = of(&row, &run);
	assert_string_equal(s.message, "running for 12 s");
	assert_int_equal(s.updated_ms, MADE + 500);
	run.length = 4096;
	assert_string_equal(
	    of(&row, &run).message, "running for 12 s, 4 kB printed");
	run.length = 2147483648;
	assert_string_equal(
	    of(&row, &run).message, "running for 12 s, 2147 MB printed");
	run.row.started_ms = NOW + 5000; /* the clock was set back */
	assert_string_equal(
	    of(&row, &run).message, "running for 0 s, 2147 MB printed");
}

TEST(a_row_that_was_read_before_the_end_is_stale)
{
	struct store_task row = row_in("running");
	struct run run = {.phase = RUN_SENT};

	assert_false(task_is_stale(&row, &run));
	run.phase = RUN_OVER;
	assert_true(task_is_stale(&row, &run));
	assert_true(task_is_stale(&row, NULL));
	row = row_in("completed");
	assert_false(task_is_stale(&row, NULL));
	assert_false(task_is_stale(&row, &run));
	row = row_in("");
	assert_false(task_is_stale(&row, NULL));
}

TEST(a_program_that_failed_is_a_task_that_is_done)
{
	struct store_task row = row_in("failed");
	struct task_status s;

	row.run_reason = RUNLOG_TIMEOUT;
	row.run_began_ms = MADE + 1;
	row.run_ended_ms = MADE + 2;
	s = of(&row, NULL);
	assert_int_equal(s.standing, TASK_IS_DONE);
	assert_string_equal(s.message, "the run failed: timeout");
	assert_int_equal(s.updated_ms, MADE + 2);
	row = row_in("completed");
	row.run_ended_ms = MADE - 1; /* before there was a task of it */
	s = of(&row, NULL);
	assert_int_equal(s.standing, TASK_IS_DONE);
	assert_string_equal(s.message, "");
	assert_int_equal(s.updated_ms, MADE);
}

TEST(a_run_that_never_began_or_is_forgotten_is_a_failed_task)
{
	struct store_task row = row_in("failed");

	row.run_reason = RUNLOG_START_FAILED;
	assert_int_equal(of(&row, NULL).standing, TASK_HAS_FAILED);
	row.run_began_ms = MADE; /* its command did not start: an end */
	assert_int_equal(of(&row, NULL).standing, TASK_IS_DONE);
	row = row_in("");
	assert_int_equal(of(&row, NULL).standing, TASK_HAS_FAILED);
	assert_string_equal(
	    of(&row, NULL).message, "what it came to is not kept any more");
}

TEST(a_cancel_is_final_whatever_the_run_comes_to)
{
	struct store_task row = row_in("completed");

	row.cancelled_ms = MADE + 7;
	assert_int_equal(of(&row, NULL).standing, TASK_IS_CANCELED);
	assert_int_equal(of(&row, NULL).updated_ms, MADE + 7);
	row = row_in("canceled"); /* by somebody else */
	assert_int_equal(of(&row, NULL).standing, TASK_IS_CANCELED);
}

TEST_MAIN(NULL, NULL)

#include "tests/unit/core/core_ground.h"

#include <errno.h>

#include "supervisor/core/lookup.h"

/* Logs of which a disk has not kept all. */

TEST(a_lost_runs_log_ends_with_its_last_record)
{
	struct run *r = ground_run(ground_open("box"), false);
	const uint8_t out[] = "hello";
	static const uint8_t zeros[3000];
	uint64_t good;

	expect_told(0, "start 1");
	say_ready(0, 1);
	say_begun(0, 1);
	say_record(0, 1, RUNLOG_STDOUT, out, sizeof(out));
	ground_settle(0);
	ground_wait_until(r->recorded == RUN_IS_RECORDED);
	good = r->length;
	assert_int_equal(
	    write(g.worker[0].spool, zeros, sizeof(zeros)), sizeof(zeros));
	say_lost(0, 1);
	ground_wait_over(r);
	assert_int_equal(r->row.end_reason, RUNLOG_LOST);
	assert_int_equal(r->row.spool_bytes, good);
	assert_int_equal(r->row.commands[0].stdout_bytes, sizeof(out));
}

static void
found_row_cb(
    int rc, const struct lookup_found *found, const struct err *why, void *arg)
{
	(void)why;
	assert_int_equal(rc, 0);
	assert_int_equal(found->row->evicted_ms, 0);
	*(int64_t *)arg = found->row->lost_ms;
}

/* Not for newer runs: the row would say so. */
TEST(a_run_whose_log_went_says_that_it_is_lost)
{
	struct run *r = ground_run(ground_open("box"), false);
	const struct uuid uuid = r->row.uuid;
	char text[UUID_TEXT_LEN + 1], path[128];
	static char bytes[10000];
	int64_t lost_ms = -1;
	struct lookup *l;

	expect_told(0, "start 1");
	say_ready(0, 1);
	say_begun(0, 1);
	say_record(0, 1, RUNLOG_STDOUT, bytes, sizeof(bytes));
	say_record(0, 1, RUNLOG_STDOUT, bytes, sizeof(bytes));
	say_command_ended(0, 1, 0);
	say_ended(0, 1, RUNLOG_EXIT);
	ground_wait_over(r);
	run_unref(r);
	uuid_format(&uuid, text);
	(void)snprintf(
	    path, sizeof(path), "%s/spool/%.2s/%s.log", g.dir, text, text);
	if (unlink(path) != 0)
		fail_msg("%s: %s", path, strerror(errno));
	l = lookup_open(g.core, g.who, &uuid, 0, found_row_cb, &lost_ms);
	ground_wait_until(lost_ms != -1);
	assert_true(lost_ms > 0);
	lookup_close(l);
}

TEST_MAIN(ground_set_up, ground_tear_down)

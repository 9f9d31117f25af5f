#include "tests/unit/core/core_ground.h"

/* Sandboxes in the core: names, loss, removal, recovery. */

TEST(what_waits_for_a_lost_sandbox_goes_to_a_fresh_one)
{
	struct sandbox *sb = ground_open("box");
	struct run *first = ground_run(sb, true);
	struct run *second = ground_run(sb, true);

	expect_told(0, "start 1");
	say_ready(0, 1);
	say_begun(0, 1);
	say_lost(0, 1);
	expect_told(0, "create 2");
	expect_told(0, "start 2");
	ground_wait_over(first);
	assert_int_equal(first->row.end_reason, RUNLOG_LOST);
	assert_int_equal(first->row.state, RUN_STATE_FAILED);
	assert_int_equal(second->phase, RUN_SENT);
	assert_int_equal(second->row.sandbox, 2);
	assert_int_equal(ground_find("box")->row.generation, 2);
}

TEST(a_run_whose_log_is_whole_is_not_lost_with_its_sandbox)
{
	struct run *r = ground_run(ground_open("box"), false);

	expect_told(0, "start 1");
	say_ready(0, 1);
	say_begun(0, 1);
	say_command_ended(0, 1, 0);
	ground_settle(0);
	say_lost(0, 1);
	ground_wait_over(r);
	assert_int_equal(r->row.end_reason, RUNLOG_EXIT);
	assert_int_equal(r->row.state, RUN_STATE_COMPLETED);
}

TEST(a_lost_runs_log_is_read_for_what_nobody_told)
{
	struct run *r = ground_run(ground_open("box"), false);
	struct buf b = {0};
	const struct runlog_header h = {.type = RUNLOG_RUN_STARTED,
	    .wall_us = INT64_C(1700000000) * 1000000};

	expect_told(0, "start 1");
	say_ready(0, 1);
	/* The worker wrote it and died before it said so. */
	runlog_put_header(&b, &h);
	assert_int_equal(
	    write(g.worker[0].spool, buf_data(&b), buf_len(&b)), buf_len(&b));
	buf_clear(&b);
	say_lost(0, 1);
	ground_wait_over(r);
	assert_int_equal(r->row.started_ms, INT64_C(1700000000) * 1000);
	assert_int_equal(r->row.end_reason, RUNLOG_LOST);
}

TEST(a_sandbox_that_cannot_be_made_fails_its_runs)
{
	struct run *r = ground_run(ground_open("box"), false);

	expect_told(0, "start 1");
	say_failed(0, 1, ERR_POLICY);
	ground_wait_over(r);
	assert_int_equal(r->row.end_reason, RUNLOG_START_FAILED);
	assert_int_equal(r->fail_code, ERR_POLICY);
	assert_string_equal(r->row.error, "no such image");
	assert_null(ground_find("box"));
}

TEST(a_removed_sandbox_gives_its_name_up_at_once)
{
	struct sandbox *old = ground_open("box"), *fresh;
	struct run *r = ground_run(old, false);

	expect_told(0, "start 1");
	say_ready(0, 1);
	sandbox_remove(old);
	assert_null(ground_find("box"));
	fresh = ground_open("box");
	assert_ptr_equal(ground_find("box"), fresh);
	ground_wait_over(r);
	assert_int_equal(r->row.state, RUN_STATE_CANCELED);
	expect_told(0, "remove 1");
	say_removed(0, 1, 0);
	assert_null(sandboxes_find(core_sandboxes(g.core), 1));
	assert_ptr_equal(ground_find("box"), fresh);
}

TEST(a_removal_is_told_when_its_row_is_on_disk)
{
	struct sandbox *sb = ground_open("box");
	sqlite3 *lock;

	say_ready(0, 1);
	ground_wait_until(sb->nwrites == 0);
	lock = ground_lock();
	sandbox_remove(sb);
	ground_settle(0);
	assert_false(was_told(0, "remove 1"));
	(void)sqlite3_close(lock);
	expect_told(0, "remove 1");
}

/* It went while no worker was there. */
TEST(what_came_for_a_sandbox_that_is_not_there_runs_in_a_fresh_one)
{
	struct sandbox *sb = ground_open("box");
	struct run *r;

	say_ready(0, 1);
	ground_kill_worker(0);
	ground_worker(0);
	expect_told(0, "adopt 1");
	r = ground_run(sb, false);
	ground_settle(0);
	assert_false(was_told(0, "start 1"));
	say_lost(0, 1);
	expect_told(0, "create 2");
	expect_told(0, "start 1");
	assert_int_equal(r->row.sandbox, 2);
}

TEST(replacing_leaves_one_holder_however_often)
{
	struct sandbox *sb = ground_open("box");
	struct err e;

	say_ready(0, 1);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(sandbox_replace(sb, 60, &sb, &e), 0);
		assert_ptr_equal(ground_find("box"), sb);
	}
	assert_int_equal(sb->row.generation, 6);
	assert_int_equal(sandboxes_live(core_sandboxes(g.core)), 1);
	expect_told(0, "remove 5");
	for (uint64_t id = 1; id <= 5; id++)
		say_removed(0, id, 0);
	say_ready(0, 6);
	assert_int_equal(ground_find("box")->state, SANDBOX_READY);
}

TEST(what_is_being_removed_bounds_what_replaces_it)
{
	struct sandbox *sb = ground_open("box"), *kept;
	struct err e;

	say_ready(0, 1);
	assert_int_equal(conf_set(g.conf, "MAX_SANDBOXES", "1", &e), 0);
	assert_int_equal(sandbox_replace(sb, 60, &sb, &e), 0);
	kept = sb;
	assert_int_equal(sandbox_replace(sb, 60, &sb, &e), ERR_LIMIT);
	assert_non_null(strstr(e.msg, "MAX_SANDBOXES"));
	assert_ptr_equal(ground_find("box"), kept);
	expect_told(0, "remove 1");
	say_removed(0, 1, 0);
	assert_int_equal(sandbox_replace(sb, 60, &sb, &e), 0);
}

TEST(a_failed_removal_is_tried_again)
{
	struct sandbox *sb = ground_open("box");

	say_ready(0, 1);
	sandbox_remove(sb);
	expect_told(0, "remove 1");
	forget_told(0);
	say_removed(0, 1, ERR_BACKEND);
	assert_int_equal(sb->state, SANDBOX_LEAVING);
	expect_told(0, "remove 1"); /* two seconds later */
	say_removed(0, 1, 0);
	assert_null(sandboxes_find(core_sandboxes(g.core), 1));
}

/* ---- files that outlive a sandbox */

static void
keep_volumes(void)
{
	struct err e;

	assert_int_equal(
	    conf_set(g.conf, "KUBERNETES_VOLUME_CLASS", "fast", &e), 0);
}

TEST(where_files_outlive_sandboxes_the_next_is_made_behind_the_removal)
{
	struct sandbox *sb = ground_open("box");
	struct err e;

	keep_volumes();
	say_ready(0, 1);
	forget_told(0);
	assert_int_equal(sandbox_replace(sb, 60, &sb, &e), 0);
	expect_told(0, "remove 1");
	ground_settle(0);
	assert_false(was_told(0, "create 2"));
	(void)ground_open("other");
	expect_told(0, "create 3");
	say_removed(0, 1, 0);
	expect_told(0, "create 2");
}

TEST(a_removal_that_fails_does_not_hold_the_next_one_up)
{
	struct sandbox *sb = ground_open("box");
	struct err e;

	keep_volumes();
	say_ready(0, 1);
	assert_int_equal(sandbox_replace(sb, 60, &sb, &e), 0);
	expect_told(0, "remove 1");
	say_removed(0, 1, ERR_BACKEND);
	expect_told(0, "create 2");
}

TEST(the_next_one_is_not_asked_for_twice_when_its_worker_comes_again)
{
	struct sandbox *sb = ground_open("box");
	struct err e;

	keep_volumes();
	say_ready(0, 1);
	assert_int_equal(sandbox_replace(sb, 60, &sb, &e), 0);
	expect_told(0, "remove 1");
	ground_kill_worker(0);
	ground_worker(0);
	forget_told(0);
	ground_settle(0);
	assert_false(was_told(0, "create 2"));
	say_removed(0, 1, 0);
	expect_told(0, "create 2");
	assert_int_equal(sb->state, SANDBOX_CREATING);
}

TEST(a_sandbox_that_hangs_leaves_its_files_and_a_deleted_one_does_not)
{
	struct sandbox *hangs = ground_open("a"), *deleted = ground_open("b");

	say_ready(0, 1);
	say_ready(0, 2);
	sandbox_on_hung(hangs);
	sandbox_remove(deleted);
	expect_told(0, "give up 1");
	expect_told(0, "remove 2");
}

TEST(what_a_lost_sandbox_left_is_removed_and_the_next_one_made_behind_it)
{
	struct sandbox *sb;

	assert_null(sandbox_remainder(core_sandboxes(g.core), g.who, "box"));
	keep_volumes();
	sb = sandbox_remainder(core_sandboxes(g.core), g.who, "box");
	assert_non_null(sb);
	assert_null(ground_find("box"));
	expect_told(0, "remove 1 of box");
	(void)ground_open("box");
	ground_settle(0);
	assert_false(was_told(0, "create 2"));
	say_removed(0, 1, 0);
	expect_told(0, "create 2");
	assert_null(sandboxes_find(core_sandboxes(g.core), 1));
}

static void
say_ready_with_old_files(unsigned int i, uint64_t sandbox)
{
	msg_send_sandbox_ready(g.worker[i].chan,
	    &(struct msg_sandbox_ready){.id = sandbox,
		.container_id = "c0ffee",
		.has_old_files = true});
	ground_settle(i);
}

TEST(the_run_that_a_sandbox_came_up_for_knows_of_old_files_and_no_later_one)
{
	struct sandbox *sb = ground_open("box");
	struct run *first = ground_run(sb, false), *second;

	expect_told(0, "start 1");
	say_ready_with_old_files(0, 1);
	second = ground_run(sb, false);
	expect_told(0, "start 2");
	assert_true(first->has_old_files);
	assert_false(second->has_old_files);
	ground_kill_worker(0);
	ground_worker(0);
	say_ready_with_old_files(0, 1);
	assert_false(second->has_old_files);
}

TEST(an_expired_sandbox_is_removed_but_not_while_in_use)
{
	struct sandbox *sb = ground_open("box");
	struct run *r = ground_run(sb, false);
	int64_t later = clock_wall_ms() + 7200000;

	expect_told(0, "start 1");
	say_ready(0, 1);
	sandboxes_reap(core_sandboxes(g.core), later);
	assert_ptr_equal(ground_find("box"), sb);
	say_ended(0, 1, RUNLOG_EXIT);
	ground_wait_over(r);
	sandboxes_reap(core_sandboxes(g.core), later);
	assert_null(ground_find("box"));
	expect_told(0, "remove 1");
	assert_int_equal(core_counters(g.core)->reaper_deletes, 0);
	say_removed(0, 1, 0);
	assert_int_equal(core_counters(g.core)->reaper_deletes, 1);
}

/* ---- workers that die */

TEST(the_next_worker_is_told_all_in_order)
{
	struct sandbox *sb = ground_open("box");
	struct run *second;

	(void)ground_run(sb, true);
	second = ground_run(sb, true);
	expect_told(0, "start 1");
	say_ready(0, 1);
	ground_kill_worker(0);
	assert_int_equal(sb->state, SANDBOX_AWAY);
	forget_told(0);
	ground_worker(0);
	assert_string_equal(ground_told(0), "adopt 1\nstart 1\nsettled 1\n");
	assert_int_equal(second->phase, RUN_WAITING);
}

TEST(a_sandbox_that_perhaps_never_was_is_looked_for)
{
	struct sandbox *sb = ground_open("box");
	struct run *r = ground_run(sb, false);

	expect_told(0, "start 1");
	ground_kill_worker(0); /* while it was making it */
	assert_int_equal(sb->state, SANDBOX_DOUBTFUL);
	forget_told(0);
	ground_worker(0);
	assert_string_equal(ground_told(0), "adopt 1\n");
	say_lost(0, 1); /* it is not there */
	expect_told(0, "start 1");
	assert_string_equal(
	    ground_told(0), "adopt 1\ncreate 1\nstart 1\nsettled 1\n");
	assert_int_equal(r->phase, RUN_SENT);
}

TEST(a_sandbox_that_was_made_after_all_is_taken_over)
{
	(void)ground_run(ground_open("box"), false);
	expect_told(0, "start 1");
	ground_kill_worker(0);
	forget_told(0);
	ground_worker(0);
	say_ready(0, 1);
	assert_string_equal(ground_told(0), "adopt 1\nstart 1\nsettled 1\n");
}

TEST(what_is_to_be_removed_is_told_to_the_next_worker)
{
	struct sandbox *sb = ground_open("box");

	say_ready(0, 1);
	ground_kill_worker(0);
	sandbox_remove(sb);
	assert_null(ground_find("box"));
	forget_told(0);
	ground_worker(0);
	expect_told(0, "remove 1");
	assert_string_equal(ground_told(0), "remove 1\n");
	say_removed(0, 1, 0);
	assert_null(sandboxes_find(core_sandboxes(g.core), 1));
}

TEST_WITH(ground_set_up_alone, ground_tear_down,
    nothing_new_is_made_while_its_worker_is_away)
{
	const struct sandbox_wish w = {.who = g.who,
	    .identifier = "box",
	    .image = "image",
	    .origin = "run",
	    .ttl_s = 60};
	struct sandbox *sb;
	struct err e;

	assert_int_equal(
	    sandbox_open(core_sandboxes(g.core), &w, &sb, &e), ERR_BACKEND);
	assert_non_null(strstr(e.msg, "is starting"));
	assert_null(ground_find("box"));
	assert_int_equal(core_check(g.core, &e), ERR_BACKEND);
}

/* ---- a front that dies */

TEST(a_new_front_takes_everything_over)
{
	struct sandbox *sb = ground_open("box");
	struct run *second;

	(void)ground_run(sb, true);
	second = ground_run(sb, true);
	expect_told(0, "start 1");
	say_ready(0, 1);
	say_begun(0, 1);
	ground_wait_until(second->recorded == RUN_IS_RECORDED);
	ground_stop_core();
	forget_told(0);
	ground_start_core();
	assert_int_equal(runs_active(core_runs(g.core)), 2);
	assert_int_equal(ground_find("box")->state, SANDBOX_AWAY);
	ground_worker(0);
	/* The second may have begun for all that the front knows: the worker
	 * is not told that this was all before it was told of it. */
	assert_string_equal(ground_told(0), "adopt 1\nstart 1\n");
	say_ready(0, 1);
	say_ended(0, 1, RUNLOG_CANCELED);
	expect_told(0, "settled 1");
	assert_true(was_told(0, "start 2"));
}

/* The front dies between the sandbox's end, or its delete, and the run's. */
static void
expect_end_across_crash(
    bool was_up, enum sandbox_word state, enum runlog_reason reason)
{
	struct sandbox *sb = ground_open("box");
	struct run *r = ground_run(sb, false);
	struct uuid uuid = r->row.uuid;

	expect_told(0, "start 1");
	if (was_up)
		say_ready(0, 1);
	ground_wait_until(r->recorded == RUN_IS_RECORDED);
	sb->row.state = state;
	store_sandbox_put(g.store, &sb->row, NULL, NULL);
	r = ground_restart(&uuid);
	ground_wait_over(r);
	assert_int_equal(r->row.end_reason, reason);
}

TEST(a_run_ends_as_its_sandbox_did_though_a_crash_came_between)
{
	expect_end_across_crash(false, SANDBOX_IS_REMOVED, RUNLOG_START_FAILED);
}

TEST(runs_of_a_sandbox_that_is_gone_end_as_lost)
{
	expect_end_across_crash(true, SANDBOX_IS_LOST, RUNLOG_LOST);
}

TEST(runs_of_a_sandbox_that_is_being_removed_end_as_canceled)
{
	expect_end_across_crash(true, SANDBOX_IS_REMOVING, RUNLOG_CANCELED);
}

TEST(what_may_have_begun_in_a_lost_sandbox_does_not_run_again)
{
	struct sandbox *sb = ground_open("box");
	struct run *second, *third;
	struct uuid uuid;

	(void)ground_run(sb, true);
	second = ground_run(sb, true);
	uuid = second->row.uuid;
	expect_told(0, "start 1");
	say_ready(0, 1);
	say_begun(0, 1);
	ground_wait_until(second->recorded == RUN_IS_RECORDED);
	/* The front dies, and the next cannot know that the second waited for
	 * the lock: the first may have been over, and its end not on disk. */
	second = ground_restart(&uuid);
	ground_worker(0);
	third = ground_run(ground_find("box"), true);
	forget_told(0);
	assert_true(second->is_doubtful);
	say_lost(0, 1);
	ground_wait_over(second);
	assert_int_equal(second->row.end_reason, RUNLOG_LOST);
	assert_int_equal(third->row.sandbox, 2);
	expect_told(0, "start 3");
	assert_false(was_told(0, "start 2"));
}

/* ---- a database that does not take it */

TEST(a_sandbox_without_a_row_ends_with_the_reason)
{
	struct sandbox *sb = ground_open("other");
	struct store_sandbox row;
	struct run *r;

	/* The database knows another of that name. */
	store_sandbox_copy(&row, &sb->row);
	row.id = 99;
	uuid_random(&row.uuid);
	free(row.identifier);
	row.identifier = xstrdup("box");
	store_sandbox_put(g.store, &row, NULL, NULL);
	store_sandbox_clear(&row);
	sb = ground_open("box");
	r = ground_run(sb, false);
	expect_told(0, "create 2");
	ground_wait_over(r);
	assert_int_equal(r->recorded, RUN_WAS_REFUSED);
	assert_non_null(strstr(r->why_text, "could not be recorded"));
	assert_null(ground_find("box"));
	expect_told(0, "give up 2");
	say_removed(0, 2, 0);
	assert_null(sandboxes_find(core_sandboxes(g.core), 2));
}

TEST(numbers_are_never_given_out_twice)
{
	struct run *r = ground_run(ground_open("box"), false);

	expect_told(0, "start 1");
	ground_wait_until(r->recorded == RUN_IS_RECORDED);
	ground_stop_core();
	ground_start_core();
	ground_worker(0);
	r = ground_run(ground_open("other"), false);
	assert_int_equal(r->row.id, 2);
	assert_int_equal(r->row.sandbox, 2);
}

TEST_MAIN(ground_set_up, ground_tear_down)

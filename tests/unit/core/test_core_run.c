#include "tests/unit/core/core_ground.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* Runs in the core: told to a worker, ended by it or without it. */

TEST(a_run_goes_right_behind_its_sandbox)
{
	struct sandbox *sb = ground_open("box");
	struct run *r = ground_run(sb, false);

	expect_told(0, "start 1");
	assert_string_equal(ground_told(0), "create 1\nsettled 1\nstart 1\n");
	assert_int_equal(r->phase, RUN_SENT);
}

TEST(an_end_is_told_when_it_is_on_disk)
{
	struct sandbox *sb = ground_open("box");
	struct run *r = ground_run(sb, false);

	expect_told(0, "start 1");
	say_ready(0, 1);
	say_begun(0, 1);
	assert_int_equal(r->row.state, RUN_STATE_RUNNING);
	say_command_ended(0, 1, 0);
	say_ended(0, 1, RUNLOG_EXIT);
	/* Over, but nobody may see it yet. */
	if (r->phase == RUN_STORING)
		assert_int_equal(r->row.state, RUN_STATE_RUNNING);
	ground_wait_over(r);
	assert_int_equal(r->row.state, RUN_STATE_COMPLETED);
	assert_int_equal(core_counters(g.core)->total.runs_completed, 1);
	assert_int_equal(core_counters(g.core)->total.commands_completed, 1);
	expect_told(0, "forget 1");
	assert_null(runs_find(core_runs(g.core), 1));
}

TEST(a_failed_command_fails_its_run)
{
	struct run *r = ground_run(ground_open("box"), false);

	expect_told(0, "start 1");
	say_begun(0, 1);
	say_command_ended(0, 1, 3);
	say_ended(0, 1, RUNLOG_EXIT);
	ground_wait_over(r);
	assert_int_equal(r->row.state, RUN_STATE_FAILED);
	assert_string_equal(r->row.error, "command 0 failed with exit 3");
}

TEST(a_cancel_before_its_turn_ends_it_here)
{
	struct sandbox *sb = ground_open("box");
	struct run *second;

	(void)ground_run(sb, true);
	second = ground_run(sb, true);
	expect_told(0, "start 1");
	assert_int_equal(second->phase, RUN_WAITING);
	assert_int_equal(sched_queue_waits(&sb->queue), SCHED_WAITS_FOR_LOCK);
	run_cancel(second, RUNLOG_CANCELED);
	ground_wait_over(second);
	assert_int_equal(second->row.state, RUN_STATE_CANCELED);
	assert_false(was_told(0, "start 2"));
	assert_false(was_told(0, "cancel 2"));
}

TEST(a_cancel_after_it_was_sent_is_the_workers)
{
	struct run *r = ground_run(ground_open("box"), false);

	expect_told(0, "start 1");
	run_cancel(r, RUNLOG_CANCELED);
	expect_told(0, "cancel 1");
	assert_int_equal(r->phase, RUN_SENT);
	say_ended(0, 1, RUNLOG_CANCELED);
	ground_wait_over(r);
	assert_int_equal(r->row.state, RUN_STATE_CANCELED);
	assert_string_equal(r->row.error, "the run was canceled");
}

TEST(a_cancel_is_told_again_to_the_next_worker)
{
	struct run *r = ground_run(ground_open("box"), false);

	expect_told(0, "start 1");
	say_ready(0, 1);
	run_cancel(r, RUNLOG_CANCELED);
	ground_kill_worker(0);
	forget_told(0);
	ground_worker(0);
	expect_told(0, "cancel 1");
	assert_string_equal(
	    ground_told(0), "adopt 1\nstart 1\ncancel 1\nsettled 1\n");
}

TEST(late_news_of_a_run_that_is_over_change_nothing)
{
	struct run *r = ground_run(ground_open("box"), false);

	expect_told(0, "start 1");
	say_begun(0, 1);
	say_ended(0, 1, RUNLOG_TIMEOUT);
	say_ended(0, 1, RUNLOG_EXIT);
	ground_wait_over(r);
	say_begun(0, 1);
	assert_int_equal(r->row.end_reason, RUNLOG_TIMEOUT);
	assert_int_equal(r->row.state, RUN_STATE_FAILED);
}

TEST(only_so_many_runs_of_a_sandbox_go_at_a_time)
{
	struct sandbox *sb = ground_open("box");
	unsigned int limit = sb->queue.limit;
	struct run *r[64];
	char line[32];

	assert_true(limit > 0 && limit + 1 < ARRAY_LEN(r));
	for (unsigned int i = 0; i <= limit; i++)
		r[i] = ground_run(sb, false);
	(void)snprintf(line, sizeof(line), "start %u", limit);
	expect_told(0, line);
	assert_int_equal(r[limit]->phase, RUN_WAITING);
	assert_int_equal(sched_queue_waits(&sb->queue), SCHED_WAITS_FOR_RUNS);
	say_ended(0, 1, RUNLOG_CANCELED);
	(void)snprintf(line, sizeof(line), "start %u", limit + 1);
	expect_told(0, line);
}

TEST(a_file_of_a_run_that_is_over_is_not_taken)
{
	static const uint8_t path[] = "a";
	struct run *r = ground_run(ground_open("box"), false);

	expect_told(0, "start 1");
	msg_send_artifact_open(g.worker[0].chan,
	    &(struct msg_artifact_open){.id = 1, .size = 1, .path = {path, 1}});
	expect_told(0, "file 1");
	say_ended(0, 1, RUNLOG_CANCELED);
	msg_send_artifact_open(g.worker[0].chan,
	    &(struct msg_artifact_open){
		.id = 1, .file = 1, .size = 1, .path = {path, 1}});
	ground_settle(0);
	ground_wait_over(r);
	assert_int_equal(r->row.nartifacts, 0);
}

/* ---- its time, when nobody else looks at it */

static void
set_conf(const char *key, const char *value)
{
	struct err e;

	assert_int_equal(conf_set(g.conf, key, value, &e), 0);
}

TEST(a_run_over_all_its_limits_ends_though_nobody_says_so)
{
	struct sandbox *sb = ground_open("box");
	struct run *silent, *other, *waits;

	set_conf("RUN_GRACE_MS", "100");
	say_ready(0, 1);
	silent = ground_run(sb, true);
	waits = ground_run(sb, true);
	other = ground_run_of(sb, false, 3600000);
	expect_told(0, "start 1");
	expect_told(0, "start 3");
	ground_wait_over(silent);
	ground_wait_over(other);
	assert_int_equal(silent->row.end_reason, RUNLOG_TIMEOUT);
	assert_int_equal(silent->row.state, RUN_STATE_FAILED);
	assert_non_null(strstr(silent->row.error, "agent does not answer"));
	assert_int_equal(other->row.end_reason, RUNLOG_LOST);
	/* Its sandbox is replaced, and what waited goes on there. */
	expect_told(0, "give up 1");
	expect_told(0, "create 2");
	expect_told(0, "start 2");
	assert_int_equal(waits->row.sandbox, 2);
	say_removed(0, 1, 0);
}

TEST(the_time_of_a_run_begins_when_its_sandbox_is_up)
{
	struct run *r = ground_run(ground_open("box"), false);

	expect_told(0, "start 1");
	assert_int_equal(r->deadline_ms, 0);
	say_ready(0, 1);
	assert_true(r->deadline_ms >= clock_mono_ms() + 1000);
}

TEST(a_worker_that_was_away_gets_the_grace_again)
{
	struct run *r = ground_run(ground_open("box"), false);

	set_conf("RUN_GRACE_MS", "100");
	expect_told(0, "start 1");
	say_ready(0, 1);
	ground_kill_worker(0);
	set_conf("RUN_GRACE_MS", "3600000");
	ground_wait_until(r->deadline_ms < clock_mono_ms());
	ground_worker(0);
	assert_int_equal(r->phase, RUN_SENT);
	say_ready(0, 1);
	assert_true(r->deadline_ms > clock_mono_ms() + 1000000);
	say_ended(0, 1, RUNLOG_EXIT);
	ground_wait_over(r);
	assert_int_equal(r->row.end_reason, RUNLOG_EXIT);
}

/* ---- places, descriptors */

TEST(one_sandbox_does_not_take_all_places)
{
	struct sandbox *sb = ground_open("box"), *other = ground_open("other");
	struct run *second;
	struct err e;

	set_conf("MAX_SANDBOX_RUNS", "2");
	(void)ground_run(sb, true);
	assert_int_equal(core_admit_run(g.core, g.who, sb, &e), 0);
	second = ground_run(sb, true);
	assert_int_equal(core_admit_run(g.core, g.who, sb, &e), ERR_LIMIT);
	assert_non_null(strstr(e.msg, "MAX_SANDBOX_RUNS"));
	assert_int_equal(core_admit_run(g.core, g.who, other, &e), 0);
	assert_int_equal(core_admit_run(g.core, g.who, NULL, &e), 0);
	run_cancel(second, RUNLOG_CANCELED);
	assert_int_equal(core_admit_run(g.core, g.who, sb, &e), 0);
}

TEST(a_lost_run_ends_with_what_its_log_says_without_a_descriptor)
{
	struct run *r = ground_run(ground_open("box"), false);
	const uint8_t out[] = "hello";
	struct rlimit was, none;

	expect_told(0, "start 1");
	say_ready(0, 1);
	say_begun(0, 1);
	say_record(0, 1, RUNLOG_STDOUT, out, sizeof(out));
	ground_settle(0);
	ground_wait_until(r->recorded == RUN_IS_RECORDED);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	say_lost(0, 1);
	ground_wait_over(r);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(r->row.end_reason, RUNLOG_LOST);
	assert_true(r->row.started_ms != 0);
	assert_int_equal(r->row.commands[0].stdout_bytes, sizeof(out));
}

TEST(what_a_worker_writes_late_is_in_nobody_elses_log)
{
	struct sandbox *sb = ground_open("box");
	struct run *old, *next;
	static const uint8_t late[] = "late";
	int was;

	g.when = STORE_SOON; /* no log gets a name */
	say_ready(0, 1);
	old = ground_run(sb, false);
	expect_told(0, "start 1");
	was = dup(g.worker[0].spool);
	sandbox_remove(sb);
	ground_wait_over(old);
	run_unref(old);
	next = ground_run(ground_open("box"), false);
	expect_told(0, "start 2");
	/* Before it heard that the run is over. */
	assert_int_equal(write(was, late, sizeof(late)), sizeof(late));
	assert_int_equal(lseek(store_log_fd(next->log), 0, SEEK_END), 0);
	(void)close(was);
}

TEST(a_log_is_used_again_when_its_worker_is_done_with_it)
{
	struct sandbox *sb = ground_open("box");
	struct stat before, after;
	struct run *r;
	int was;

	g.when = STORE_SOON;
	say_ready(0, 1);
	r = ground_run(sb, false);
	expect_told(0, "start 1");
	assert_int_equal(fstat(store_log_fd(r->log), &before), 0);
	was = dup(store_log_fd(r->log));
	assert_int_equal(write(was, "x", 1), 1);
	say_command_ended(0, 1, 0);
	say_ended(0, 1, RUNLOG_EXIT);
	ground_wait_over(r);
	run_unref(r);
	ground_settle(0);
	/* when it is empty */
	ground_wait_until(fstat(was, &after) == 0 && after.st_size == 0);
	(void)close(was);
	r = ground_run(sb, false);
	expect_told(0, "start 2");
	assert_int_equal(fstat(store_log_fd(r->log), &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
}

/* ---- a log that comes with the end */

static int64_t
held_in_rows(const uint8_t *p, size_t n)
{
	AUTO(auto_free) char *path = xasprintf("%s/mcp-sandboxd.db", g.dir);
	sqlite3_stmt *st;
	sqlite3 *db;
	int64_t rows;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(
	    sqlite3_prepare_v2(
		db, "SELECT count(*) FROM run WHERE log = ?", -1, &st, NULL),
	    SQLITE_OK);
	assert_int_equal(
	    sqlite3_bind_blob(st, 1, p, (int)n, SQLITE_STATIC), SQLITE_OK);
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	rows = sqlite3_column_int64(st, 0);
	(void)sqlite3_finalize(st);
	(void)sqlite3_close(db);
	return rows;
}

/* A run to its end; whether somebody reads the file from before. */
static void
hold_to_end(bool is_followed)
{
	struct script *w = &g.worker[0];
	AUTO(auto_free) uint8_t *said = NULL;
	struct run *r = ground_run(ground_open("box"), false);
	uint64_t n;

	expect_told(0, "start 1");
	if (is_followed)
		(void)run_view(r);
	w->is_holding = true;
	say_begun(0, 1);
	say_command_ended(0, 1, 0);
	n = buf_len(&w->held);
	said = xmemdup(buf_data(&w->held), (size_t)n);
	assert_true(n > 0 && r->length == 0);
	say_ended(0, 1, RUNLOG_EXIT);
	ground_wait_over(r);
	assert_int_equal(r->row.state, RUN_STATE_COMPLETED);
	assert_int_equal(r->length, n);
	assert_int_equal(store_log_length(r->log), n);
	assert_int_equal(lseek(store_log_fd(r->log), 0, SEEK_END),
	    is_followed ? (off_t)n : 0);
	assert_int_equal(held_in_rows(said, (size_t)n), 1);
}

TEST(a_log_that_comes_with_the_end_is_in_its_row)
{
	hold_to_end(false);
}

TEST(who_follows_a_run_finds_such_a_log_in_its_file)
{
	hold_to_end(true);
}

/* What was told and what comes do not fit: whatever says so is no worker. */
TEST(a_log_in_two_places_is_not_believed)
{
	struct run *r = ground_run(ground_open("box"), false);

	expect_told(0, "start 1");
	say_begun(0, 1);
	assert_true(r->length > 0);
	assert_int_equal(
	    buf_append(&g.worker[0].held, "again", strlen("again")), 0);
	msg_send_run_ended(g.worker[0].chan,
	    &(struct msg_run_ended){.id = 1,
		.reason = RUNLOG_EXIT,
		.length = 5,
		.log = {buf_data(&g.worker[0].held), 5}});
	buf_clear(&g.worker[0].held);
	ground_wait_until(g.worker[0].chan == NULL);
	assert_int_equal(r->phase, RUN_SENT);
}

/* ---- what waits is on disk */

static struct run *
large_run(struct sandbox *sb)
{
	AUTO(auto_free) char *text = xmalloc(100001);
	struct run *r;

	memset(text, 'x', 100000);
	text[100000] = '\0';
	g.arg = text;
	r = ground_run(sb, true);
	g.arg = NULL;
	return r;
}

static void
read_cb(int rc, const struct err *why, void *arg)
{
	(void)why;
	*(int *)arg = rc;
}

TEST(what_a_large_run_is_asked_to_do_waits_on_disk)
{
	struct sandbox *sb = ground_open("box");
	struct run *first = ground_run(sb, true), *large = large_run(sb);
	struct run_reader reader;
	int rc = 1;

	say_ready(0, 1);
	ground_wait_until(large->recorded == RUN_IS_RECORDED);
	assert_null(large->row.spec);
	assert_string_equal(large->row.commands[0].argv_json, "");
	assert_true(runs_asked_bytes(core_runs(g.core)) > 100000);
	/* A reader gets all of it back, for as long as it looks. */
	assert_false(run_read(large, &reader, read_cb, &rc));
	ground_wait_until(rc == 0);
	assert_int_equal(strlen(large->row.commands[0].argv_json),
	    strlen("[\"true\",\"\"]") + 100000);
	assert_string_equal(large->row.commands[0].cwd, "/");
	run_read_end(large, &reader);
	assert_string_equal(large->row.commands[0].argv_json, "");
	/* And its worker, when its turn comes. */
	say_ended(0, 1, RUNLOG_CANCELED);
	expect_told(0, "start 2");
	assert_true(g.worker[0].spec_bytes > 100000);
	ground_wait_over(first);
	/* The next worker, too. */
	ground_kill_worker(0);
	g.worker[0].spec_bytes = 0;
	forget_told(0);
	ground_worker(0);
	expect_told(0, "start 2");
	assert_true(g.worker[0].spec_bytes > 100000);
	say_ended(0, 2, RUNLOG_CANCELED);
	ground_wait_over(large);
	assert_int_equal(runs_asked_bytes(core_runs(g.core)), 0);
}

TEST(each_news_of_a_run_is_a_change)
{
	struct run *r = ground_run(ground_open("box"), false);
	uint64_t before;

	expect_told(0, "start 1");
	say_ready(0, 1);
	before = r->changes;
	say_record(0, 1, RUNLOG_RUN_STARTED, "", 0);
	ground_wait_until(r->row.started_ms != 0);
	assert_true(r->changes > before);
}

TEST(a_new_worker_is_told_of_a_large_run_before_all_was_told)
{
	struct sandbox *sb = ground_open("box");
	struct run *large = large_run(sb);
	const char *start, *settled;

	say_ready(0, 1);
	say_begun(0, 1);
	ground_wait_until(large->row.spec == NULL);
	ground_kill_worker(0);
	forget_told(0);
	ground_worker(0);
	expect_told(0, "settled 1");
	start = strstr(ground_told(0), "start 1");
	settled = strstr(ground_told(0), "settled 1");
	assert_non_null(start);
	assert_true(start < settled);
}

TEST(a_new_front_leaves_on_disk_what_waits)
{
	struct sandbox *sb = ground_open("box");
	struct run *large;
	struct uuid uuid;

	(void)ground_run(sb, true);
	large = large_run(sb);
	uuid = large->row.uuid;
	expect_told(0, "start 1");
	say_ready(0, 1);
	say_begun(0, 1);
	ground_wait_until(large->recorded == RUN_IS_RECORDED);
	large = ground_restart(&uuid);
	assert_null(large->row.spec);
	assert_true(large->turn.wants_lock);
	assert_true(runs_asked_bytes(core_runs(g.core)) > 100000);
	ground_worker(0);
	say_ready(0, 1);
	say_ended(0, 1, RUNLOG_CANCELED);
	expect_told(0, "start 2");
	assert_true(g.worker[0].spec_bytes > 100000);
}

TEST(a_large_run_can_be_canceled_while_its_spec_is_read)
{
	struct sandbox *sb = ground_open("box");
	struct run *first = ground_run(sb, true), *large = large_run(sb);

	say_ready(0, 1);
	ground_wait_until(large->recorded == RUN_IS_RECORDED);
	run_cancel(first, RUNLOG_CANCELED);
	sched_leave(&first->turn);
	core_turn(g.core);
	assert_int_equal(large->phase, RUN_SENT);
	run_cancel(large, RUNLOG_CANCELED);
	expect_told(0, "start 2");
	expect_told(0, "cancel 2");
}

static void
change_database(const char *sql)
{
	sqlite3 *db = ground_lock();

	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(
	    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	(void)sqlite3_close(db);
}

/* Two runs of a sandbox one after the other; in which way the second one's spec
 * is lost meanwhile. */
static void
lose_spec(const char *sql, enum runlog_reason reason)
{
	struct sandbox *sb = ground_open("box");
	struct run *first = ground_run(sb, true), *large = large_run(sb);

	say_ready(0, 1);
	ground_wait_until(large->recorded == RUN_IS_RECORDED);
	change_database(sql);
	say_ended(0, 1, RUNLOG_CANCELED);
	ground_wait_over(large);
	assert_int_equal(large->row.end_reason, reason);
	assert_non_null(strstr(large->row.error, "cannot be read"));
	assert_false(was_told(0, "start 2"));
	run_unref(first);
	run_unref(large);
	/* The sandbox has its place again. */
	first = ground_run(sb, true);
	expect_told(0, "start 3");
}

TEST(a_run_whose_spec_is_gone_ends)
{
	lose_spec("DELETE FROM spec WHERE run = 2", RUNLOG_INTERNAL);
}

TEST(a_run_whose_spec_is_damaged_ends)
{
	lose_spec(
	    "UPDATE spec SET data = x'0102' WHERE run = 2", RUNLOG_INTERNAL);
}

TEST(a_new_front_ends_what_it_cannot_read)
{
	struct sandbox *sb = ground_open("box");
	struct run *begun = ground_run(sb, true), *next = ground_run(sb, true);
	struct uuid uuids[2] = {begun->row.uuid, next->row.uuid};

	expect_told(0, "start 1");
	say_ready(0, 1);
	say_begun(0, 1);
	ground_wait_until(next->recorded == RUN_IS_RECORDED);
	ground_stop_core();
	change_database("UPDATE spec SET data = x'ffffffff'");
	ground_start_core();
	begun = run_ref(
	    runs_find_uuid(core_runs(g.core), g.who->tenant, &uuids[0]));
	next = run_ref(
	    runs_find_uuid(core_runs(g.core), g.who->tenant, &uuids[1]));
	forget_told(0);
	ground_worker(0);
	say_ready(0, 1);
	ground_wait_over(begun);
	ground_wait_over(next);
	assert_int_equal(begun->row.end_reason, RUNLOG_INTERNAL);
	assert_int_equal(next->row.end_reason, RUNLOG_INTERNAL);
	assert_false(was_told(0, "start 1"));
	assert_false(was_told(0, "start 2"));
}

TEST(what_is_queued_has_a_limit_of_bytes)
{
	struct sandbox *sb = ground_open("box");
	struct run *r = ground_run(sb, false);
	char limit[32];
	struct err e;

	(void)snprintf(limit, sizeof(limit), "%u", RUNSPEC_BYTES_MAX * 2);
	set_conf("MAX_QUEUED_BYTES", limit);
	assert_int_equal(core_admit_run(g.core, g.who, sb, &e), 0);
	run_unref(r);
	r = NULL;
	while (core_admit_run(g.core, g.who, sb, &e) == 0)
		run_unref(large_run(sb));
	assert_int_equal(e.code, ERR_LIMIT);
	assert_non_null(strstr(e.msg, "MAX_QUEUED_BYTES"));
}

static void
found_cb(int rc, const struct store_run *row, const struct err *why, void *arg)
{
	(void)row;
	(void)why;
	*(int *)arg = rc;
}

TEST(the_oldest_run_goes_when_there_is_one_too_many)
{
	struct sandbox *sb = ground_open("box");
	uint64_t until = clock_mono_ms() + PATIENCE_MS;
	struct uuid first = {0};
	int rc = 0;

	set_conf("MAX_RUNS", "2");
	say_ready(0, 1);
	for (uint64_t id = 1; id <= 3; id++) {
		struct run *r = ground_run(sb, false);
		char line[32];

		(void)snprintf(
		    line, sizeof(line), "start %llu", (unsigned long long)id);
		expect_told(0, line);
		if (id == 1)
			first = r->row.uuid;
		say_ended(0, id, RUNLOG_CANCELED);
		ground_wait_over(r);
		run_unref(r);
	}
	while (rc != ERR_NOTFOUND) {
		assert_true(clock_mono_ms() < until);
		rc = 1;
		store_run_get(g.store, g.who->tenant, &first, 0, found_cb, &rc);
		ground_wait_until(rc != 1);
	}
}

TEST_MAIN(ground_set_up, ground_tear_down)

#include "tests/unit/store/fixture.h"

#define OTHER_TENANT 2

static void
assert_same_command(
    const struct store_command *a, const struct store_command *b)
{
	assert_int_equal(a->index, b->index);
	assert_string_equal(a->shell, b->shell);
	assert_string_equal(a->argv_json, b->argv_json);
	assert_string_equal(a->cwd, b->cwd);
	assert_string_equal(a->env_json, b->env_json);
	assert_int_equal(a->status, b->status);
	assert_int_equal(a->end_reason, b->end_reason);
	assert_string_equal(a->error, b->error);
	assert_int_equal(a->exit_code, b->exit_code);
	assert_int_equal(a->signal, b->signal);
	assert_int_equal(a->timeout_ms, b->timeout_ms);
	assert_int_equal(a->allow_failure, b->allow_failure);
	assert_int_equal(a->started_ms, b->started_ms);
	assert_int_equal(a->ended_ms, b->ended_ms);
	assert_int_equal(a->stdout_bytes, b->stdout_bytes);
	assert_int_equal(a->stderr_bytes, b->stderr_bytes);
}

static void
assert_same_run(const struct store_run *a, const struct store_run *b)
{
	assert_int_equal(a->id, b->id);
	assert_memory_equal(&a->uuid, &b->uuid, sizeof(a->uuid));
	assert_int_equal(a->tenant, b->tenant);
	assert_int_equal(a->sandbox, b->sandbox);
	assert_string_equal(a->identifier, b->identifier);
	assert_string_equal(a->sandbox_name, b->sandbox_name);
	assert_string_equal(a->container_id, b->container_id);
	assert_string_equal(a->tool, b->tool);
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->end_reason, b->end_reason);
	assert_string_equal(a->error, b->error);
	assert_string_equal(a->artifacts_error, b->artifacts_error);
	assert_int_equal(a->created_ms, b->created_ms);
	assert_int_equal(a->started_ms, b->started_ms);
	assert_int_equal(a->ended_ms, b->ended_ms);
	assert_int_equal(a->spool_bytes, b->spool_bytes);
	assert_int_equal(a->stdout_max, b->stdout_max);
	assert_int_equal(a->stderr_max, b->stderr_max);
	assert_int_equal(a->ncommands, b->ncommands);
	for (uint32_t i = 0; i < a->ncommands; i++)
		assert_same_command(&a->commands[i], &b->commands[i]);
}

TEST(a_run_comes_back_as_it_was_put)
{
	struct store_run r;
	struct got_run g;

	fixture_put_sandbox(f, 1, "a");
	fixture_run(&r, 1, 1, "a");
	fixture_set(&r.error, "caf\xc3\xa9 \"quoted\"; -- '");
	r.spool_bytes = UINT64_MAX; /* all 64 bits */
	r.commands[0].signal = -9;
	fixture_insert(f, &r);
	fixture_get(f, STORE_TENANT_DEFAULT, &r.uuid, &g);
	assert_int_equal(g.rc, 0);
	assert_same_run(&r, &g.row);
	assert_int_equal(g.row.spec_len, 4);
	assert_memory_equal(g.row.spec, "SPEC", 4);
	assert_null(g.row.log);
	store_run_clear(&g.row);
	store_run_clear(&r);
}

TEST(an_ended_run_has_its_log_commands_and_artifacts)
{
	struct store_log *log;
	struct store_run r;
	struct got_run g;

	fixture_insert_first(f, &r);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	fixture_set(&r.container_id, "c0ffee");
	fixture_run_artifact(&r, "plot.png", 7);
	fixture_run_artifact(&r, "a/b.csv", 8);
	log = fixture_log_open(f, &r);
	fixture_log_fill(log, &r, 'a', 1);
	fixture_log_fill(log, &r, '\0', 1);
	fixture_log_fill(log, &r, 'b', 1);
	r.digest = xmemdup("d\0g\0", 4);
	r.digest_len = 4;
	r.commands[0].stdout_bytes = 2;
	fixture_end_with(f, &r, log);
	store_log_close(log);
	fixture_get(f, STORE_TENANT_DEFAULT, &r.uuid, &g);
	assert_int_equal(g.rc, 0);
	assert_same_run(&r, &g.row);
	assert_null(g.row.spec);
	assert_int_equal(g.row.log_len, 3);
	assert_memory_equal(g.row.log, "a\0b", 3);
	assert_int_equal(g.row.digest_len, 4);
	assert_memory_equal(g.row.digest, "d\0g\0", 4);
	assert_int_equal(g.row.nartifacts, 2); /* by path */
	assert_string_equal(g.row.artifacts[0].path, "a/b.csv");
	assert_string_equal(g.row.artifacts[1].path, "plot.png");
	assert_int_equal(g.row.artifacts[1].size, 100);
	assert_int_equal(g.row.artifacts[1].mode, 0644);
	assert_int_equal(g.row.artifacts[1].mtime_ns, 1700000000123456789);
	assert_memory_equal(
	    g.row.artifacts[1].sha256, r.artifacts[0].sha256, 32);
	store_run_clear(&g.row);
	store_run_clear(&r);
}

TEST(an_empty_log_differs_from_one_in_the_spool)
{
	struct store_log *log;
	struct store_run r;
	struct got_run g;

	fixture_insert_first(f, &r);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	log = fixture_log_open(f, &r);
	fixture_end_with(f, &r, log);
	store_log_close(log);
	fixture_get(f, STORE_TENANT_DEFAULT, &r.uuid, &g);
	assert_non_null(g.row.log);
	assert_int_equal(g.row.log_len, 0);
	assert_null(g.row.digest);
	store_run_clear(&g.row);
	store_run_clear(&r);
}

TEST(a_move_sets_sandbox_and_name)
{
	struct result result = {0};
	struct store_run r;
	struct got_run g;

	fixture_put_sandbox(f, 1, "a");
	fixture_put_sandbox(f, 2, "b");
	fixture_run(&r, 1, 1, "a");
	fixture_insert(f, &r);
	store_run_move(f->store, 1, 2, "other", result_cb, &result);
	fixture_wait(f, &result.calls, 1);
	assert_int_equal(result.rc, 0);
	fixture_get(f, STORE_TENANT_DEFAULT, &r.uuid, &g);
	assert_int_equal(g.row.sandbox, 2);
	assert_string_equal(g.row.sandbox_name, "other");
	assert_non_null(g.row.spec);
	store_run_clear(&g.row);
	store_run_clear(&r);
}

TEST(what_may_wait_comes_with_its_end_or_soon)
{
	struct result result = {0};
	struct store_stats before, after;
	struct store_run r;
	struct got_run g;

	fixture_put_sandbox(f, 1, "a");
	fixture_run(&r, 1, 1, "a");
	store_stats(f->store, &before);
	store_run_begin(f->store, &r, NULL, STORE_SOON, result_cb, &result);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	store_run_end(f->store, &r, NULL, result_cb, &result);
	fixture_wait(f, &result.calls, 2);
	assert_int_equal(result.rc, 0);
	store_stats(f->store, &after);
	assert_int_equal(after.writes - before.writes, 1);
	assert_int_equal(after.commits - before.commits, 1);
	fixture_get(f, STORE_TENANT_DEFAULT, &r.uuid, &g);
	assert_int_equal(g.rc, 0);
	assert_int_equal(g.row.state, RUN_STATE_COMPLETED);
	assert_int_equal(g.row.commands[0].status, COMMAND_COMPLETED);
	assert_null(g.row.spec);
	store_run_clear(&g.row);
	store_run_clear(&r);

	/* Alone, it waits for nobody. */
	fixture_run(&r, 2, 1, "a");
	store_run_begin(f->store, &r, NULL, STORE_SOON, result_cb, &result);
	fixture_wait(f, &result.calls, 3);
	assert_int_equal(result.rc, 0);
	store_run_clear(&r);
}

TEST(a_run_that_cannot_be_written_fails_both_its_beginning_and_its_end)
{
	struct result begin = {0}, end = {0};
	struct store_run r;

	fixture_run(&r, 1, 1, "a"); /* there is no sandbox 1 yet */
	store_run_begin(f->store, &r, NULL, STORE_SOON, result_cb, &begin);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	store_run_end(f->store, &r, NULL, result_cb, &end);
	fixture_wait(f, &end.calls, 1);
	assert_int_equal(begin.calls, 1);
	assert_int_equal(begin.rc, ERR_INVAL);
	assert_int_equal(end.rc, ERR_INVAL);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM run"), 0);
	store_run_clear(&r);
}

TEST(a_foreign_and_an_unknown_run_get_the_same_answer)
{
	struct uuid unknown;
	char text[UUID_TEXT_LEN + 1];
	char *want;
	struct store_run r;
	struct got_run g;

	fixture_exec(f,
	    "INSERT INTO tenant (id, name, created_ms)"
	    " VALUES (2, 'other', 0)");
	fixture_insert_first(f, &r);
	fixture_get(f, OTHER_TENANT, &r.uuid, &g);
	assert_int_equal(g.rc, ERR_NOTFOUND);
	uuid_format(&r.uuid, text);
	want = xasprintf("run %s is not known", text);
	assert_string_equal(g.msg, want);
	free(want);
	uuid_random(&unknown);
	fixture_get(f, STORE_TENANT_DEFAULT, &unknown, &g);
	assert_int_equal(g.rc, ERR_NOTFOUND);
	uuid_format(&unknown, text);
	want = xasprintf("run %s is not known", text);
	assert_string_equal(g.msg, want);
	free(want);
	store_run_clear(&r);
}

TEST(a_second_run_with_the_same_uuid_is_a_conflict)
{
	struct result result = {0};
	struct store_run r;

	fixture_insert_first(f, &r);
	r.id = 2;
	store_run_begin(f->store, &r, NULL, STORE_NOW, result_cb, &result);
	fixture_wait(f, &result.calls, 1);
	assert_int_equal(result.rc, ERR_CONFLICT);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM run"), 1);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM command"), 1);
	store_run_clear(&r);
}

TEST(what_cannot_be_inserted_is_refused_whole)
{
	struct result result = {0};
	struct store_run r;

	fixture_put_sandbox(f, 1, "a");
	fixture_run(&r, 1, 99, "a"); /* no such sandbox */
	store_run_begin(f->store, &r, NULL, STORE_NOW, result_cb, &result);
	fixture_wait(f, &result.calls, 1);
	assert_int_equal(result.rc, ERR_INVAL);
	r.sandbox = 1;
	r.state = RUN_STATE_COMPLETED;
	store_run_begin(f->store, &r, NULL, STORE_NOW, result_cb, &result);
	fixture_wait(f, &result.calls, 2);
	assert_int_equal(result.rc, ERR_INVAL);
	r.state = RUN_STATE_QUEUED;
	r.id = 0;
	store_run_begin(f->store, &r, NULL, STORE_NOW, result_cb, &result);
	fixture_wait(f, &result.calls, 3);
	assert_int_equal(result.rc, ERR_INVAL);
	r.id = 1;
	r.tenant = 77;
	store_run_begin(f->store, &r, NULL, STORE_NOW, result_cb, &result);
	fixture_wait(f, &result.calls, 4);
	assert_int_equal(result.rc, ERR_INVAL);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM run"), 0);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM spec"), 0);
	store_run_clear(&r);
}

TEST(values_of_variables_are_refused_outside_the_spec)
{
	static const char *const bad[] = {"{\"A\":\"hunter2\"}",
	    "{\"A\":\"***\",\"B\":{\"C\":\"***\"}}", "[\"***\"]",
	    "{\"A\":\"hunter2\"", "{\"A\":1}"};
	struct result result = {0};
	struct store_run r;

	fixture_put_sandbox(f, 1, "a");
	fixture_run(&r, 1, 1, "a");
	for (unsigned int i = 0; i < ARRAY_LEN(bad); i++) {
		fixture_set(&r.commands[0].env_json, bad[i]);
		store_run_begin(
		    f->store, &r, NULL, STORE_NOW, result_cb, &result);
		fixture_wait(f, &result.calls, i + 1);
		assert_true(result.rc < 0 && result.rc != ERR_DB);
		assert_null(strstr(result.msg, "hunter2"));
	}
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM run"), 0);
	fixture_reopen(f);
	assert_false(fixture_file_has(f, "mcp-sandboxd.db", "hunter2"));
	store_run_clear(&r);
}

TEST(a_run_ends_once)
{
	struct result result = {0};
	struct store_counts n;
	struct store_run r;

	fixture_insert_first(f, &r);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	fixture_run_artifact(&r, "x", 1);
	fixture_end(f, &r);
	store_run_end(f->store, &r, NULL, result_cb, &result);
	fixture_wait(f, &result.calls, 1);
	assert_int_equal(result.rc, ERR_WRONG_STATE);
	store_run_move(f->store, 1, 1, "c", result_cb, &result);
	fixture_wait(f, &result.calls, 2);
	assert_int_equal(result.rc, ERR_WRONG_STATE);
	assert_int_equal(fixture_query(f, "SELECT refs FROM blob"), 1);
	assert_int_equal(store_counts(f->store, &n, &f->err), 0);
	assert_int_equal(n.runs_completed, 1);
	store_run_clear(&r);
}

TEST(the_end_of_an_unknown_run_or_command_is_not_found)
{
	struct result result = {0};
	struct store_run r;

	fixture_insert_first(f, &r);
	fixture_run_ended(&r, RUN_STATE_FAILED);
	r.id = 2;
	store_run_end(f->store, &r, NULL, result_cb, &result);
	fixture_wait(f, &result.calls, 1);
	assert_int_equal(result.rc, ERR_NOTFOUND);
	r.id = 1;
	r.tenant = OTHER_TENANT;
	store_run_end(f->store, &r, NULL, result_cb, &result);
	fixture_wait(f, &result.calls, 2);
	assert_int_equal(result.rc, ERR_NOTFOUND);
	r.tenant = STORE_TENANT_DEFAULT;
	r.commands[0].index = 5;
	store_run_end(f->store, &r, NULL, result_cb, &result);
	fixture_wait(f, &result.calls, 3);
	assert_int_equal(result.rc, ERR_NOTFOUND);
	/* and nothing of the third was kept */
	assert_int_equal(
	    fixture_query(f, "SELECT count(*) FROM run WHERE state = 'queued'"),
	    1);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM spec"), 1);
	store_run_clear(&r);
}

TEST(a_digest_too_large_for_a_row_is_refused)
{
	struct result result = {0};
	struct store_run r;

	fixture_insert_first(f, &r);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	r.digest_len = STORE_DIGEST_MAX + 1;
	r.digest = xcalloc(1, r.digest_len);
	store_run_end(f->store, &r, NULL, result_cb, &result);
	fixture_wait(f, &result.calls, 1);
	assert_int_equal(result.rc, ERR_LIMIT);
	r.digest_len--;
	fixture_end(f, &r);
	store_run_clear(&r);
}

TEST(counts_survive_a_restart)
{
	static const enum run_state ends[] = {RUN_STATE_COMPLETED,
	    RUN_STATE_COMPLETED, RUN_STATE_FAILED, RUN_STATE_CANCELED};
	struct store_counts n;

	fixture_put_sandbox(f, 1, "a");
	for (uint64_t i = 0; i < ARRAY_LEN(ends); i++) {
		struct store_run r;

		fixture_run(&r, i + 1, 1, "a");
		fixture_insert(f, &r);
		fixture_run_ended(&r, ends[i]);
		if (i == 3)
			r.commands[0].status = COMMAND_TIMED_OUT;
		fixture_end(f, &r);
		store_run_clear(&r);
	}
	fixture_reopen(f);
	assert_int_equal(store_counts(f->store, &n, &f->err), 0);
	assert_int_equal(n.runs_completed, 2);
	assert_int_equal(n.runs_failed, 1);
	assert_int_equal(n.runs_canceled, 1);
	assert_int_equal(n.commands_completed, 2);
	assert_int_equal(n.commands_failed, 1);
	assert_int_equal(n.commands_timed_out, 1);
}

TEST_MAIN(fixture_setup, fixture_teardown)

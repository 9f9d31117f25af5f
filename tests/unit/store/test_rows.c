#include "tests/unit/store/fixture.h"

/* What schema/words.txt and schema/rows.txt make, against the real tables. */

TEST_WITH(fixture_setup, fixture_teardown,
    every_word_of_a_sandbox_is_taken_by_its_table)
{
	for (uint64_t i = 0; i < SANDBOX_WORD_COUNT; i++) {
		struct result result = {0};
		struct store_sandbox s;
		char name[24];

		(void)snprintf(name, sizeof(name), "s%d", (int)i);
		fixture_sandbox(&s, i + 1, name);
		s.state = (enum sandbox_word)i;
		fixture_put_row(f, &s, &result);
		assert_string_equal(result.msg, "");
	}
}

TEST_WITH(fixture_setup, fixture_teardown,
    every_word_of_a_run_and_its_commands_comes_back)
{
	fixture_put_sandbox(f, 1, "a");
	for (uint64_t i = 0; i < RUNLOG_REASON_COUNT; i++) {
		enum run_state word = i % 3 == 0 ? RUN_STATE_COMPLETED :
		    i % 3 == 1                   ? RUN_STATE_FAILED :
						   RUN_STATE_CANCELED;
		struct store_run r;
		struct got_run g;

		fixture_run(&r, i + 1, 1, "a");
		r.state = i % 2 == 0 ? RUN_STATE_QUEUED : RUN_STATE_RUNNING;
		fixture_insert(f, &r);
		fixture_get(f, STORE_TENANT_DEFAULT, &r.uuid, &g);
		assert_int_equal(g.row.state, r.state);
		assert_int_equal(g.row.end_reason, 0);
		store_run_clear(&g.row);
		fixture_run_ended(&r, word);
		r.end_reason = (enum runlog_reason)i;
		r.commands[0].status =
		    (enum command_status)(i % COMMAND_STATUS_COUNT);
		fixture_end(f, &r);
		fixture_get(f, STORE_TENANT_DEFAULT, &r.uuid, &g);
		assert_int_equal(g.row.state, word);
		assert_int_equal(g.row.end_reason, i);
		assert_int_equal(
		    g.row.commands[0].status, (int)(i % COMMAND_STATUS_COUNT));
		store_run_clear(&g.row);
		store_run_clear(&r);
	}
}

TEST_WITH(fixture_setup, fixture_teardown,
    a_word_that_is_none_fails_the_read_and_is_named)
{
	struct store_snapshot snap;
	struct store_run r;
	struct got_run g;

	fixture_insert_first(f, &r);
	fixture_exec(f, "UPDATE command SET status = 'asleep'");
	fixture_get(f, STORE_TENANT_DEFAULT, &r.uuid, &g);
	assert_int_equal(g.rc, ERR_DB);
	assert_string_equal(
	    g.msg, "database: \"asleep\" is no status of a command");
	assert_int_equal(
	    store_snapshot(f->store, NULL, &snap, &f->err), ERR_DB);
	store_run_clear(&r);
}

static void
set_asker(struct store_run *r)
{
	r->language = xstrdup("python");
	uuid_random(&r->rerun_of);
	r->principal = xstrdup("tok1");
	r->client = xstrdup("editor/1.2");
	r->address = xstrdup("2001:db8::1");
	r->session = xstrdup("s");
	r->request_id = xstrdup("req");
	r->trace = xstrdup("t");
	r->span = xstrdup("own");
	r->parent_span = xstrdup("above");
}

TEST_WITH(
    fixture_setup, fixture_teardown, who_asked_and_what_it_came_to_comes_back)
{
	struct store_run r;
	struct got_run g;

	fixture_put_sandbox(f, 1, "a");
	fixture_run(&r, 1, 1, "a");
	set_asker(&r);
	fixture_insert(f, &r);
	fixture_run_ended(&r, RUN_STATE_FAILED);
	r.sent_ms = 5002;
	r.exit_code = 3;
	r.stdout_bytes = 11;
	r.stderr_bytes = 12;
	r.cpu_us = 13;
	r.memory_peak_bytes = 14;
	r.commands[0].cpu_us = 13;
	r.commands[0].memory_peak_bytes = 14;
	r.commands[0].memory_kills = 15;
	fixture_run_artifact(&r, "x", 1);
	fixture_run_artifact(&r, "y", 2);
	fixture_end(f, &r);
	fixture_get(f, STORE_TENANT_DEFAULT, &r.uuid, &g);
	assert_string_equal(g.msg, "");
	assert_string_equal(g.row.language, "python");
	assert_true(uuid_is_equal(&g.row.rerun_of, &r.rerun_of));
	assert_string_equal(g.row.principal, "tok1");
	assert_string_equal(g.row.client, "editor/1.2");
	assert_string_equal(g.row.address, "2001:db8::1");
	assert_string_equal(g.row.session, "s");
	assert_string_equal(g.row.request_id, "req");
	assert_string_equal(g.row.trace, "t");
	assert_string_equal(g.row.span, "own");
	assert_string_equal(g.row.parent_span, "above");
	assert_int_equal(g.row.sent_ms, 5002);
	assert_int_equal(g.row.exit_code, 3);
	assert_int_equal(g.row.stdout_bytes, 11);
	assert_int_equal(g.row.stderr_bytes, 12);
	assert_int_equal(g.row.cpu_us, 13);
	assert_int_equal(g.row.memory_peak_bytes, 14);
	assert_int_equal(g.row.commands[0].cpu_us, 13);
	assert_int_equal(g.row.commands[0].memory_peak_bytes, 14);
	assert_int_equal(g.row.commands[0].memory_kills, 15);
	assert_int_equal(g.row.artifacts_total, 2);
	assert_int_equal(g.row.artifact_bytes, 200);
	store_run_clear(&g.row);
	store_run_clear(&r);
}

TEST_WITH(
    fixture_setup, fixture_teardown, a_run_that_does_none_again_has_a_null)
{
	struct store_run r;
	struct got_run g;

	fixture_insert_first(f, &r);
	assert_int_equal(
	    fixture_query(f, "SELECT rerun_of IS NULL FROM run"), 1);
	fixture_get(f, STORE_TENANT_DEFAULT, &r.uuid, &g);
	assert_true(uuid_is_zero(&g.row.rerun_of));
	store_run_clear(&g.row);
	store_run_clear(&r);
}

TEST(words_are_found_by_number_and_back)
{
	enum command_status status = COMMAND_QUEUED;
	enum runlog_reason reason = RUNLOG_EXIT;

	assert_string_equal(
	    command_status_word(COMMAND_TIMED_OUT), "timed_out");
	assert_string_equal(command_status_word(COMMAND_STATUS_COUNT), "?");
	assert_int_equal(command_status_parse("timed_out", &status), 0);
	assert_int_equal(status, COMMAND_TIMED_OUT);
	assert_int_equal(command_status_parse("?", &status), ERR_INVAL);
	assert_int_equal(command_status_parse("", &status), ERR_INVAL);
	assert_int_equal(runlog_reason_parse("", &reason), 0);
	assert_int_equal(reason, 0);
}

TEST_MAIN(NULL, NULL)

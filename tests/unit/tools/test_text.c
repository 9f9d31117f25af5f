#include <stdio.h>

#include "common/js.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/tools/tool_text.h"
#include "supervisor/tools/tool.h"
#include "supervisor/tools/view.h"
#include "tests/unit/quoted.h"
#include "tests/unit/test.h"

static json_t *
run_with_stdout(unsigned int ncommands, const char *p, size_t n)
{
	json_t *commands = json_array();

	for (unsigned int i = 0; i < ncommands; i++)
		json_array_append_new(commands,
		    json_pack("{s:s, s:s, s:i, s:s%, s:s}", "status",
			"completed", "end_reason", "exit", "exit_code", 0,
			"stdout", p, n, "stderr", ""));
	return json_pack("{s:s, s:s, s:{s:s, s:o}}", "tool", "run_sandbox",
	    "run_id", "ID", "final", "state", "completed", "commands",
	    commands);
}

/* The caller frees. */
static char *
text_in(const struct tool *tool, const json_t *o, enum tool_text_form form)
{
	return tool_text(tool, o,
	    &(struct tool_text_wish){.form = form, .server_url = "http://h"});
}

/* The transcript of a result, which is taken over; ' for " */
static void
expect(const struct tool *tool, json_t *o, const char *want)
{
	char *text = text_in(tool, o, TOOL_TEXT_TRANSCRIPT);

	assert_string_equal(text, want);
	json_decref(o);
	free(text);
}

static void
expect_of(const struct tool *tool, const char *result, const char *want)
{
	expect(tool, quoted_json(result), want);
}

TEST(what_was_done_with_its_text_stands_behind_what_it_printed)
{
	expect_of(&tool_run_sandbox,
	    "{'run_id':'ID','final':{'state':'completed','commands':["
	    "{'end_reason':'exit','exit_code':0,'stdout':'a\\n',"
	    "'stderr':'e\\n','note':'so it was'}]}}",
	    "run ID completed\nexit code 0\na\nstderr:\ne\n[so it was]\n");
	expect_of(&tool_execute_code,
	    "{'status':'success','exit_code':0,'output':'a\\n',"
	    "'note':'so it was'}",
	    "exit code 0\na\n[so it was]\n");
}

TEST(a_short_run_is_its_end_and_its_output)
{
	expect(&tool_run_sandbox, run_with_stdout(1, "hi\n", 3),
	    "run ID completed\nexit code 0\nhi\n");
	expect(&tool_run_sandbox, run_with_stdout(1, "no newline", 10),
	    "run ID completed\nexit code 0\nno newline\n");
	expect(&tool_run_sandbox, run_with_stdout(1, "", 0),
	    "run ID completed\nexit code 0\n");
}

TEST(several_commands_are_numbered_and_each_end_is_told)
{
	expect_of(&tool_get_run,
	    "{'run_id':'ID','state':'failed','error':'e','commands':["
	    "{'end_reason':'exit','exit_code':3,'stdout':'a',"
	    "'stderr':'b\\n'},{'end_reason':'timeout','timeout_ms':50},"
	    "{'end_reason':'signal','signal':9},"
	    "{'end_reason':'start_failed','error':'x: not found'},"
	    "{'status':'canceled'}]}",
	    "run ID failed: e\n"
	    "command 0: exit code 3\na\nstderr:\nb\n"
	    "command 1: killed after 50 ms (timeout)\n"
	    "command 2: ended by signal 9\n"
	    "command 3: ended by start_failed: x: not found\n"
	    "command 4: canceled\n");
}

TEST(a_reason_is_told_once_and_what_was_not_run_is_not_queued)
{
	expect_of(&tool_get_run,
	    "{'run_id':'ID','state':'failed','error':"
	    "'command 0 could not start: x: not found','commands':["
	    "{'end_reason':'start_failed','error':'x: not found'},"
	    "{'status':'queued'}]}",
	    "run ID failed: command 0 could not start: x: not found\n"
	    "command 0: ended by start_failed\n"
	    "command 1: not run\n");
	expect_of(&tool_get_run,
	    "{'run_id':'ID','state':'running','commands':["
	    "{'status':'running'},{'status':'queued'}]}",
	    "run ID running\n"
	    "command 0: running\n"
	    "command 1: queued\n");
}

TEST(what_the_memory_limit_killed_is_told_where_it_ends_well)
{
	expect_of(&tool_get_run,
	    "{'run_id':'ID','state':'completed','commands':["
	    "{'end_reason':'exit','exit_code':0,'stdout':'a\\n',"
	    "'memory_kills':1},{'end_reason':'memory','exit_code':137,"
	    "'memory_kills':1},{'end_reason':'memory','exit_code':137,"
	    "'memory_kills':3}]}",
	    "run ID completed\n"
	    "command 0: exit code 0\na\n"
	    "the sandbox's memory limit killed 1 process meanwhile\n"
	    "command 1: ended by memory\n"
	    "command 2: ended by memory\n"
	    "the sandbox's memory limit killed 3 processes meanwhile\n");
	expect(&tool_execute_code,
	    json_pack("{s:s, s:i, s:s, s:i}", "status", "success", "exit_code",
		0, "output", "a\n", "memory_kills", 1),
	    "exit code 0\na\n"
	    "the sandbox's memory limit killed 1 process meanwhile\n");
}

TEST(artifacts_are_named_with_where_they_are)
{
	expect_of(&tool_get_run,
	    "{'run_id':'ID','identifier':'box','state':'completed',"
	    "'commands':[],'artifacts':[{'path':'a.txt','size':3},"
	    "{'path':'d/b','size':0}]}",
	    "run ID completed\nartifacts:\n"
	    "http://h/artifacts/box/ID/a.txt (3 bytes)\n"
	    "http://h/artifacts/box/ID/d/b (0 bytes)\n");
	expect_of(&tool_execute_code,
	    "{'status':'success','exit_code':0,'output':'','run_id':'ID',"
	    "'identifier':'box','artifacts':[{'path':'a','size':3,"
	    "'lost':true}]}",
	    "exit code 0\nartifacts:\n"
	    "http://h/artifacts/box/ID/a (3 bytes, lost)\n");
}

static json_t *
run_with_artifacts(int n, const char *name)
{
	json_t *list = json_array();

	for (int i = 0; i < n; i++)
		json_array_append_new(list,
		    json_pack("{s:o, s:i}", "path",
			json_sprintf("%s%d", name, i), "size", i));
	return json_pack("{s:s, s:s, s:s, s:[], s:o}", "run_id", "ID",
	    "identifier", "box", "state", "completed", "commands", "artifacts",
	    list);
}

TEST(artifacts_that_are_not_named_are_counted_with_the_call_that_does)
{
	json_t *o = run_with_artifacts(25, "f");
	char *text = text_in(&tool_get_run, o, TOOL_TEXT_TRANSCRIPT);

	assert_non_null(strstr(text,
	    "/f19 (19 bytes)\n[... 5 more artifacts; "
	    "call get_run with run_id ID and "
	    "artifacts_from 20 ...]\n"));
	free(text);
	/* The list may itself be a part. */
	json_object_set_new(o, "artifacts_from", json_integer(100));
	json_object_set_new(o, "artifacts_dropped", json_integer(3));
	text = text_in(&tool_get_run, o, TOOL_TEXT_TRANSCRIPT);
	assert_non_null(strstr(text, "[... 8 more artifacts; "));
	assert_non_null(strstr(text, " artifacts_from 120 ...]\n"));
	free(text);
	json_decref(o);
}

TEST(long_names_of_artifacts_leave_room_for_output)
{
	char name[1001];
	json_t *o;
	char *text;

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	o = run_with_artifacts(20, name);
	text = text_in(&tool_get_run, o, TOOL_TEXT_TRANSCRIPT);
	assert_in_range(strlen(text), 3000, 4400);
	assert_non_null(strstr(text, "n2 (2 bytes)\n[... 17 more artifacts; "));
	free(text);
	json_decref(o);
}

TEST(pictures_that_follow_are_named)
{
	static const char *const names[] = {"a.png", "d/b\n.gif"};
	json_t *o = run_with_artifacts(1, "a");
	char *text = tool_text(&tool_get_run, o,
	    &(struct tool_text_wish){
		.server_url = "", .images = names, .nimages = 2});

	assert_string_equal(text,
	    "run ID completed\nartifacts:\n/artifacts/box/ID/a0 (0 bytes)\n"
	    "image 1: a.png\nimage 2: d/b?.gif\n");
	free(text);
	json_decref(o);
}

/* A file may have any name. */
TEST(names_and_messages_keep_to_their_line)
{
	expect_of(&tool_get_run,
	    "{'run_id':'ID','identifier':'box','state':'failed',"
	    "'error':'\\u001b[31mbad\\n','commands':["
	    "{'end_reason':'start_failed','error':'\\u001b[1mx\\n'}],"
	    "'artifacts':[{'path':'a\\nexit code 0\\u009b31m','size':3}]}",
	    "run ID failed:  [31mbad \n"
	    "ended by start_failed: ?[1mx?\n"
	    "artifacts:\n"
	    "http://h/artifacts/box/ID/a%0Aexit%20code%200%C2%9B31m "
	    "(3 bytes)\n");
}

TEST(what_was_cut_is_counted_exactly)
{
	expect_of(&tool_get_run,
	    "{'run_id':'ID','state':'completed','commands':["
	    "{'end_reason':'exit','exit_code':0,'stdout':'head\\n',"
	    "'stdout_tail':'tail','stdout_bytes':1009,"
	    "'stdout_truncated':true,'stdout_dropped':1000,'stderr':'e',"
	    "'stderr_bytes':8,'stderr_truncated':true}]}",
	    "run ID completed\nexit code 0\nhead\n"
	    "[... 1000 bytes left out ...]\n"
	    "tail\nstderr:\ne\n"
	    "[... 7 bytes left out ...]\n"
	    "[output left out: call get_run with run_id ID and cursor \"0\" "
	    "for all of it, in pages]\n");
}

/* What a text says of bytes that are left out. */
static unsigned long
told_left_out(const char *text)
{
	const char *at = strstr(text, "[... ");

	assert_non_null(at);
	return strtoul(at + 5, NULL, 10);
}

static size_t
count_of(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)) != NULL; text += strlen(what))
		n++;
	return n;
}

/* Each U+FFFD is one byte of it, or three if it was printed. */
TEST(of_what_is_no_text_the_bytes_are_counted)
{
	static char bytes[20000];
	json_t *o, *c;
	char *text;
	size_t shown;

	for (size_t i = 0; i < sizeof(bytes); i += 4)
		memcpy(bytes + i, "\xff\xef\xbf\xbd", 4);
	o = run_with_stdout(1, "", 0);
	c = json_array_get(
	    json_object_get(json_object_get(o, "final"), "commands"), 0);
	json_object_set_new(
	    c, "stdout", js_string_bytes(bytes, sizeof(bytes), NULL));
	json_object_set_new(
	    c, "stdout_base64", view_base64(bytes, sizeof(bytes)));
	text = text_in(&tool_run_sandbox, o, TOOL_TEXT_TRANSCRIPT);
	/* Of two that are shown one was a byte, the other three. */
	shown = 2 * count_of(text, "\xef\xbf\xbd");
	assert_in_range(told_left_out(text), sizeof(bytes) - shown - 3,
	    sizeof(bytes) - shown + 3);
	free(text);
	json_object_set_new(c, "stdout", json_string("x"));
	json_object_del(c, "stdout_base64");
	json_object_set_new(
	    c, "stdout_tail", js_string_bytes(bytes, sizeof(bytes), NULL));
	json_object_set_new(
	    c, "stdout_tail_base64", view_base64(bytes, sizeof(bytes)));
	json_object_set_new(c, "stdout_dropped", json_integer(0));
	text = text_in(&tool_run_sandbox, o, TOOL_TEXT_TRANSCRIPT);
	shown = 2 * count_of(text, "\xef\xbf\xbd");
	assert_in_range(told_left_out(text), sizeof(bytes) - shown - 3,
	    sizeof(bytes) - shown + 3);
	free(text);
	json_decref(o);
}

TEST(a_head_and_a_tail_that_meet_are_one)
{
	expect_of(&tool_get_run,
	    "{'run_id':'ID','state':'completed','commands':["
	    "{'end_reason':'exit','exit_code':0,'stdout':'one li',"
	    "'stdout_tail':'ne\\n','stdout_bytes':9,"
	    "'stdout_truncated':true,'stdout_dropped':0}]}",
	    "run ID completed\nexit code 0\none line\n");
}

TEST(as_json_it_is_one_line_and_the_content)
{
	json_t *o = run_with_stdout(1, "hi\n", 3);
	char *text = text_in(&tool_run_sandbox, o, TOOL_TEXT_JSON);
	char *json = strchr(text, '\n');
	json_t *again;

	assert_non_null(json);
	again = json_loads(json, 0, NULL);
	assert_true(json_equal(o, again));
	*json = '\0';
	assert_string_equal(text, "run_sandbox: run ID completed");
	json_decref(again);
	json_decref(o);
	free(text);
}

TEST(a_run_that_goes_on_says_what_to_call)
{
	json_t *o = json_pack("{s:s, s:n, s:s, s:s}", "run_id", "ID", "final",
	    "events_url", "/E", "status_url", "/S");
	char *text = text_in(&tool_run_sandbox, o, TOOL_TEXT_JSON);

	assert_int_equal(
	    strncmp(text,
		"run_sandbox: started run ID; events_url=/E; status_url=/S\n{",
		59),
	    0);
	free(text);
	expect(&tool_run_sandbox, o,
	    "run ID has not ended yet; call get_run with this run_id (and "
	    "wait_ms up to 45000) for its end\n");
}

TEST(a_run_that_goes_on_says_how_far_it_is)
{
	expect_of(&tool_run_sandbox,
	    "{'run_id':'ID','final':null,'so_far':{'state':'running',"
	    "'elapsed_ms':25400,'command':1,'commands':3,"
	    "'killed_in_ms':95000,'stdout_bytes':100,'stdout_tail':'end\\n',"
	    "'stderr_bytes':3,'stderr_tail':'err'}}",
	    "run ID has not ended yet; call get_run with this run_id (and "
	    "wait_ms up to 45000) for its end\n"
	    "it has run for 25 s; its command 1 of 0 to 2 is killed unless it "
	    "ends within 95 s\n"
	    "stdout so far, 100 bytes, the end of it:\nend\n"
	    "stderr so far, 3 bytes:\nerr\n");
	expect_of(&tool_get_run,
	    "{'run_id':'ID','state':'running','so_far':{'state':'running',"
	    "'elapsed_ms':1000,'command':0,'commands':1,'killed_in_ms':0},"
	    "'commands':[{'status':'running','stdout':'a\\n'}]}",
	    "run ID running: call get_run again, with wait_ms up to 45000, for "
	    "its end\n"
	    "it has run for 1 s; it is killed unless it ends within 0 s\n"
	    "running\na\n");
	expect_of(&tool_run_sandbox,
	    "{'run_id':'ID','final':null,'so_far':{'state':'running',"
	    "'elapsed_ms':1000,'command':0,'commands':1,'stdout_bytes':0,"
	    "'stderr_bytes':0}}",
	    "run ID has not ended yet; call get_run with this run_id (and "
	    "wait_ms up to 45000) for its end\n"
	    "it has run for 1 s\nnothing printed yet\n");
	expect_of(&tool_get_run,
	    "{'run_id':'ID','state':'queued','commands':[],'so_far':{"
	    "'state':'queued','waits_for':'lock','elapsed_ms':2000}}",
	    "run ID queued: call get_run again, with wait_ms up to 45000, for "
	    "its end\n"
	    "it has not begun for 2 s: it waits for lock\n");
}

TEST(long_lists_are_whole_with_shorter_words)
{
	json_t *runs = json_array(), *o;
	char word[101], *text;

	memset(word, 'w', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	for (int i = 0; i < 100; i++)
		json_array_append_new(runs,
		    json_pack("{s:s, s:s, s:s, s:i, s:i, s:s, s:s, s:s}",
			"run_id", "01234567-89ab-7def-8123-456789abcdef",
			"state", "completed", "end_reason", "exit", "exit_code",
			0, "duration_ms", 1000, "identifier", "box",
			"created_at", "2026-01-01T00:00:00.000Z", "command",
			word));
	o = json_pack("{s:o}", "runs", runs);
	text = text_in(&tool_list_runs, o, TOOL_TEXT_TRANSCRIPT);
	assert_true(strlen(text) <= TOOL_TEXT_MAX);
	assert_int_equal(
	    count_of(text, "made 2026-01-01T00:00:00.000Z: ww"), 100);
	free(text);
	/* Names of 36 bytes, and what no longer fits is counted. */
	memset(word, 'i', 90);
	for (size_t i = 0; i < 100; i++)
		json_object_set_new(
		    json_array_get(runs, i), "identifier", json_string(word));
	text = text_in(&tool_list_runs, o, TOOL_TEXT_TRANSCRIPT);
	assert_true(strlen(text) <= TOOL_TEXT_MAX);
	assert_int_equal(count_of(text, " with exit code 0 ") +
		strtoul(strstr(text, "[... ") + 5, NULL, 10),
	    100);
	assert_non_null(strstr(text,
	    " more of this page have no room; ask "
	    "with limit "));
	json_decref(o);
	free(text);
}

TEST(a_message_cannot_break_the_first_line)
{
	expect(&tool_execute_code,
	    json_pack("{s:s, s:s}", "status", "error", "message", "one\r\ntwo"),
	    "error: one  two\n");
}

TEST(long_output_is_cut_in_the_middle_and_says_how_much)
{
	size_t n = 1u << 20, shown = 0;
	char *out = xmalloc(n), *text;
	json_t *o;

	for (size_t i = 0; i < n; i++)
		out[i] = (char)('A' + i * 26 / n);
	o = run_with_stdout(1, out, n);
	text = text_in(&tool_run_sandbox, o, TOOL_TEXT_TRANSCRIPT);
	assert_in_range(strlen(text), TOOL_TEXT_MAX - 50, TOOL_TEXT_MAX);
	assert_non_null(strstr(text, "exit code 0\nAAAA"));
	assert_non_null(strstr(text, "A\n[... "));
	assert_non_null(strstr(text, "ZZZZ\n[output left out: "));
	for (const char *p = strstr(text, "AAAA"); *p != '\0'; p++)
		shown += *p == 'A' || *p == 'Z';
	assert_in_range(told_left_out(text), n - shown, n - shown);
	json_decref(o);
	free(out);
	free(text);
}

/* 4,000 lines of two bytes: some clients show the first 2,000 lines. */
TEST(many_short_lines_are_cut_in_the_middle_too)
{
	struct buf b = {0};
	json_t *o;
	char *text;

	for (unsigned int i = 0; i < 4000; i++)
		(void)buf_printf(&b, "%c\n", i < 2000 ? 'a' : 'z');
	o = run_with_stdout(1, (char *)buf_data(&b), buf_len(&b));
	buf_clear(&b);
	text = text_in(&tool_run_sandbox, o, TOOL_TEXT_TRANSCRIPT);
	assert_in_range(count_of(text, "\n"), TOOL_TEXT_LINES_MAX - 10,
	    TOOL_TEXT_LINES_MAX);
	assert_non_null(strstr(text, "exit code 0\na\na\n"));
	assert_non_null(strstr(text, "z\nz\n[output left out: "));
	assert_int_equal(told_left_out(text),
	    8000 - 2 * (count_of(text, "\na") + count_of(text, "\nz")));
	json_decref(o);
	free(text);
}

/* Each sends the cursor home, and a text begins a line there. */
TEST(lines_that_are_no_line_feeds_count)
{
	struct buf b = {0};
	json_t *o;
	char *text;

	for (unsigned int i = 0; i < 5000; i++)
		(void)buf_printf(&b, "\x1b[Hx");
	o = run_with_stdout(1, (char *)buf_data(&b), buf_len(&b));
	buf_clear(&b);
	text = text_in(&tool_run_sandbox, o, TOOL_TEXT_TRANSCRIPT);
	assert_in_range(count_of(text, "\n"), 100, TOOL_TEXT_LINES_MAX);
	assert_true(told_left_out(text) > 0);
	json_decref(o);
	free(text);
}

TEST(lines_of_many_streams_are_shared)
{
	struct buf b = {0};
	json_t *o;
	char *text;

	for (unsigned int i = 0; i < 1000; i++)
		(void)buf_printf(&b, "x\n");
	o = run_with_stdout(16, (char *)buf_data(&b), buf_len(&b));
	buf_clear(&b);
	text = text_in(&tool_run_sandbox, o, TOOL_TEXT_TRANSCRIPT);
	assert_in_range(count_of(text, "\n"), 1500, TOOL_TEXT_LINES_MAX);
	assert_int_equal(count_of(text, " bytes left out ...]\n"), 16);
	assert_int_equal(count_of(text, ": exit code 0\n"), 16);
	json_decref(o);
	free(text);
}

TEST(the_cuts_never_split_a_character)
{
	struct buf b = {0};
	json_t *o;
	char *text;

	for (unsigned int i = 0; i < 100000; i++)
		assert_int_equal(buf_append(&b, "\xe2\x82\xac", 3), 0);
	o = run_with_stdout(1, (char *)buf_data(&b), buf_len(&b));
	text = text_in(&tool_run_sandbox, o, TOOL_TEXT_TRANSCRIPT);
	assert_true(utf8_is_valid(text, strlen(text)));
	json_decref(o);
	free(text);
	buf_clear(&b);
}

TEST(many_commands_share_the_room)
{
	char *out = xcalloc(1, 30001);
	json_t *o;
	char *text;

	memset(out, 'x', 30000);
	out[5] = '\0'; /* would end the text */
	o = run_with_stdout(64, out, 30000);
	text = text_in(&tool_run_sandbox, o, TOOL_TEXT_TRANSCRIPT);
	assert_true(strlen(text) <= TOOL_TEXT_MAX);
	assert_non_null(strstr(text, "command 63: "));
	json_decref(o);
	free(out);
	free(text);
}

TEST(a_long_output_of_code_is_cut_too)
{
	char *out = xcalloc(1, 200001);
	json_t *o;
	char *text;

	memset(out, 'x', 200000);
	o = json_pack("{s:s, s:i, s:s}", "status", "success", "exit_code", 0,
	    "output", out);
	text = text_in(&tool_execute_code, o, TOOL_TEXT_TRANSCRIPT);
	assert_true(strlen(text) <= TOOL_TEXT_MAX);
	assert_int_equal(
	    told_left_out(text), 200000 - (count_of(text, "x") - 1));
	json_decref(o);
	free(out);
	free(text);
}

/* Of code that prints no text the bytes are counted as well. */
TEST(an_output_of_code_that_is_no_text_is_counted_in_bytes)
{
	static char bytes[20000];
	json_t *o;
	char *text;

	memset(bytes, '\xff', sizeof(bytes));
	o = json_pack("{s:s, s:i, s:o, s:o}", "status", "success", "exit_code",
	    0, "output", js_string_bytes(bytes, sizeof(bytes), NULL),
	    "output_base64", view_base64(bytes, sizeof(bytes)));
	text = text_in(&tool_execute_code, o, TOOL_TEXT_TRANSCRIPT);
	assert_int_equal(told_left_out(text),
	    sizeof(bytes) - count_of(text, "\xef\xbf\xbd"));
	json_decref(o);
	free(text);
}

/* Both streams of all of them, with what each left running. */
static json_t *
run_that_is_long_everywhere(size_t nleft)
{
	json_t *o = run_with_stdout(64, "", 0), *c;
	char *out = xcalloc(1, 30001);
	size_t i;

	memset(out, 'x', 30000);
	json_array_foreach (
	    json_object_get(json_object_get(o, "final"), "commands"), i, c) {
		json_t *list = json_array();

		for (size_t k = 0; k < nleft; k++)
			json_array_append_new(list,
			    json_pack("{s:s, s:s%}", "process", "p1",
				"command_line", out, (size_t)200));
		json_object_set_new(c, "stdout", json_string(out));
		json_object_set_new(c, "stderr", json_string(out));
		json_object_set_new(c, "left_running",
		    json_pack(
			"{s:i, s:o}", "count", (int)nleft, "processes", list));
	}
	free(out);
	return o;
}

TEST(no_command_is_left_out_for_what_others_printed)
{
	json_t *o = run_that_is_long_everywhere(1);
	char *text = text_in(&tool_run_sandbox, o, TOOL_TEXT_TRANSCRIPT);

	assert_true(strlen(text) <= TOOL_TEXT_MAX);
	assert_int_equal(count_of(text, "exit code 0\n"), 64);
	assert_int_equal(count_of(text, "\nstderr:\n"), 64);
	assert_int_equal(count_of(text, " bytes left out ...]\n"), 128);
	assert_int_equal(count_of(text, "1 process left running: p1 `x"), 64);
	assert_int_equal(count_of(text, "[output left out: "), 1);
	assert_int_equal(count_of(text, "[left running: "), 1);
	json_decref(o);
	free(text);
}

TEST(what_many_commands_left_running_is_all_there)
{
	json_t *o = run_that_is_long_everywhere(6);
	char *text = text_in(&tool_run_sandbox, o, TOOL_TEXT_TRANSCRIPT);

	assert_true(strlen(text) <= TOOL_TEXT_MAX);
	assert_int_equal(count_of(text, " of this text left out"), 0);
	assert_int_equal(count_of(text, "6 processes left running: p1 `x"), 64);
	assert_int_equal(count_of(text, "p1 `x"), 384);
	json_decref(o);
	free(text);
}

TEST(what_has_no_room_at_all_is_counted)
{
	json_t *o = run_that_is_long_everywhere(6), *c;
	char note[201], *text;
	size_t i;

	memset(note, 'n', sizeof(note) - 1);
	note[sizeof(note) - 1] = '\0';
	json_array_foreach (
	    json_object_get(json_object_get(o, "final"), "commands"), i, c)
		json_object_set_new(c, "note", json_string(note));
	text = text_in(&tool_run_sandbox, o, TOOL_TEXT_TRANSCRIPT);
	assert_true(strlen(text) <= TOOL_TEXT_MAX);
	assert_int_equal(count_of(text, " bytes of this text left out"), 1);
	assert_int_equal(strcmp(text + strlen(text) - 6, " ...]\n"), 0);
	json_decref(o);
	free(text);
}

TEST(what_others_do_not_need_is_for_who_prints_much)
{
	json_t *o = run_with_stdout(64, "short\n", 6), *c;
	char *out = xcalloc(1, 10001), *text;

	memset(out, 'x', 10000);
	c = json_array_get(
	    json_object_get(json_object_get(o, "final"), "commands"), 40);
	json_object_set_new(c, "stdout", json_string(out));
	text = text_in(&tool_run_sandbox, o, TOOL_TEXT_TRANSCRIPT);
	assert_non_null(strstr(text, out));
	assert_int_equal(count_of(text, "short\n"), 63);
	json_decref(o);
	free(out);
	free(text);
}

static json_t *
left_with_outputs(const char *p, size_t n, unsigned int times)
{
	json_t *outputs = json_array(), *o;

	for (unsigned int i = 0; i < times; i++) {
		o = json_pack("{s:i, s:s, s:i, s:i, s:o}", "command", (int)i,
		    "state", "running", "bytes", (int)n + 7, "dropped", 7,
		    "text", js_string_bytes(p, n, NULL));
		if (!utf8_is_valid(p, n))
			json_object_set_new(
			    o, "text_base64", view_base64(p, n));
		json_array_append_new(outputs, o);
	}
	return json_pack("{s:s, s:s, s:i, s:[], s:o}", "run_id", "ID", "state",
	    "completed", "left_running", (int)times, "processes", "output",
	    outputs);
}

/* The beginning is what had to be dropped before, so it is what goes here. */
TEST(of_what_is_left_running_the_last_output_is_shown)
{
	static char bytes[30000];
	json_t *o;
	char *text;

	memset(bytes, '\xff', 20000);
	memset(bytes + 20000, 'z', 10000);
	o = left_with_outputs(bytes, sizeof(bytes), 2);
	text = text_in(&tool_control_run, o, TOOL_TEXT_TRANSCRIPT);
	assert_true(strlen(text) <= TOOL_TEXT_MAX);
	assert_int_equal(count_of(text, "zzzzz\n"), 2);
	assert_int_equal(count_of(text, " bytes dropped ...]\nzzz"), 2);
	assert_int_equal(
	    told_left_out(text), sizeof(bytes) + 7 - count_of(text, "z") / 2);
	json_decref(o);
	free(text);
	o = left_with_outputs("ab\n", 3, 1);
	text = text_in(&tool_control_run, o, TOOL_TEXT_TRANSCRIPT);
	assert_non_null(strstr(text, "[... 7 bytes dropped ...]\nab\n"));
	json_decref(o);
	free(text);
}

/* 100 states of a bar, 300 KB, and what is printed around it. */
static json_t *
run_with_a_bar(void)
{
	struct buf b = {0};
	json_t *o;

	(void)buf_printf(&b, "begin\n");
	for (unsigned int i = 0; i <= 100; i++) {
		(void)buf_printf(&b, "\r\x1b[32m%3u%%\x1b[0m ", i);
		for (unsigned int k = 0; k < 1000; k++)
			(void)buf_printf(&b, k < 10 * i ? "###" : "   ");
		if (i < 100)
			(void)buf_printf(&b, "\x1b[K");
	}
	(void)buf_printf(&b, "\nend\n");
	o = run_with_stdout(1, (char *)buf_data(&b), buf_len(&b));
	buf_clear(&b);
	return o;
}

TEST(a_bar_that_a_terminal_shows_on_a_line_is_a_line)
{
	json_t *o = run_with_a_bar();
	char *text = text_in(&tool_run_sandbox, o, TOOL_TEXT_TRANSCRIPT);

	assert_int_equal(count_of(text, "%"), 1);
	assert_int_equal(count_of(text, "bytes left out"), 0);
	assert_non_null(strstr(text, "begin\n100% ###"));
	assert_non_null(strstr(text, "###\nend\n"));
	json_decref(o);
	free(text);
}

TEST(as_json_the_bytes_stay_as_they_were_printed)
{
	json_t *o = run_with_stdout(1, "1%\r\x1b[31m2%\n", 11);
	char *text = text_in(&tool_run_sandbox, o, TOOL_TEXT_JSON);

	assert_non_null(strstr(text, "\"1%\\r\\u001B[31m2%\\n\""));
	json_decref(o);
	free(text);
}

/* What is left out are bytes of output, whatever is shown around them. */
TEST(bytes_that_are_left_out_are_those_that_were_printed)
{
	json_t *o, *c;
	char *text;

	o = run_with_stdout(1, "\x1b[32mone\rtwo\x1b[3", 15);
	c = json_array_get(
	    json_object_get(json_object_get(o, "final"), "commands"), 0);
	json_object_set_new(c, "stdout_tail", json_string("1;4mend\b\bX\n"));
	json_object_set_new(c, "stdout_dropped", json_integer(1000));
	text = text_in(&tool_run_sandbox, o, TOOL_TEXT_TRANSCRIPT);
	/* The halves of sequences at the cuts, 3 and 4 bytes, are beside. */
	assert_non_null(strstr(text, "\ntwo\n[... "));
	assert_int_equal(told_left_out(text), 1000 + 3 + 4);
	assert_non_null(strstr(text, "...]\neXd\n"));
	json_decref(o);
	free(text);
}

TEST(what_is_left_running_is_shown_as_on_a_terminal)
{
	json_t *o = left_with_outputs("1%\r2%\x1b[0m", 9, 1);
	char *text = text_in(&tool_control_run, o, TOOL_TEXT_TRANSCRIPT);

	assert_non_null(strstr(text, "bytes dropped ...]\n2%\n"));
	json_decref(o);
	free(text);
}

TEST_MAIN(NULL, NULL)

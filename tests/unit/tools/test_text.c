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

/* The transcript of a result, which is taken over; ' for " */
static void
expect(const struct tool *tool, json_t *o, const char *want)
{
	char *text = tool_text(tool, o, TOOL_TEXT_TRANSCRIPT);

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
	    "run ID completed\nartifacts below /artifacts/box/ID: "
	    "a.txt (3 bytes), d/b (0 bytes)\n");
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
	    "artifacts below /artifacts/box/ID: a?exit code 0?31m (3 bytes)\n");
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
	    "[... 1000 bytes left out; get_run with cursor \"0\" pages through "
	    "all ...]\n"
	    "tail\nstderr:\ne\n"
	    "[... 7 bytes left out; get_run with cursor \"0\" pages through "
	    "all ...]\n");
}

/* Each U+FFFD is one byte of it, or three if it was printed. */
TEST(of_what_is_no_text_the_bytes_are_counted)
{
	static char bytes[20000];
	json_t *o, *c;
	char *text;

	for (size_t i = 0; i < sizeof(bytes); i += 4)
		memcpy(bytes + i, "\xff\xef\xbf\xbd", 4);
	o = run_with_stdout(1, "", 0);
	c = json_array_get(
	    json_object_get(json_object_get(o, "final"), "commands"), 0);
	json_object_set_new(
	    c, "stdout", js_string_bytes(bytes, sizeof(bytes), NULL));
	json_object_set_new(
	    c, "stdout_base64", view_base64(bytes, sizeof(bytes)));
	text = tool_text(&tool_run_sandbox, o, TOOL_TEXT_TRANSCRIPT);
	/* 8190 bytes of text at either side are 5460 of those. */
	assert_non_null(strstr(text, "[... 9080 bytes left out; "));
	free(text);
	json_object_set_new(c, "stdout", json_string("x"));
	json_object_del(c, "stdout_base64");
	json_object_set_new(
	    c, "stdout_tail", js_string_bytes(bytes, sizeof(bytes), NULL));
	json_object_set_new(
	    c, "stdout_tail_base64", view_base64(bytes, sizeof(bytes)));
	json_object_set_new(c, "stdout_dropped", json_integer(0));
	text = tool_text(&tool_run_sandbox, o, TOOL_TEXT_TRANSCRIPT);
	assert_non_null(strstr(text, "[... 14540 bytes left out; "));
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
	char *text = tool_text(&tool_run_sandbox, o, TOOL_TEXT_JSON);
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
	char *text = tool_text(&tool_run_sandbox, o, TOOL_TEXT_JSON);

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

TEST(a_message_cannot_break_the_first_line)
{
	expect(&tool_execute_code,
	    json_pack("{s:s, s:s}", "status", "error", "message", "one\r\ntwo"),
	    "error: one  two\n");
}

TEST(long_output_is_cut_in_the_middle_and_says_how_much)
{
	size_t n = 1u << 20, part = TOOL_TEXT_MAX / 8;
	char *out = xmalloc(n), want[80], *text;
	json_t *o;

	for (size_t i = 0; i < n; i++)
		out[i] = (char)('a' + i * 26 / n);
	o = run_with_stdout(1, out, n);
	text = tool_text(&tool_run_sandbox, o, TOOL_TEXT_TRANSCRIPT);
	assert_true(strlen(text) <= TOOL_TEXT_MAX);
	assert_true(strlen(text) > 2 * part);
	assert_non_null(strstr(text, "exit code 0\naaaa"));
	(void)snprintf(
	    want, sizeof(want), "a\n[... %zu bytes left out; ", n - 2 * part);
	assert_non_null(strstr(text, want));
	assert_non_null(strstr(text, "zzzz\n"));
	json_decref(o);
	free(out);
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
	text = tool_text(&tool_run_sandbox, o, TOOL_TEXT_TRANSCRIPT);
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
	text = tool_text(&tool_run_sandbox, o, TOOL_TEXT_TRANSCRIPT);
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
	text = tool_text(&tool_execute_code, o, TOOL_TEXT_TRANSCRIPT);
	assert_true(strlen(text) <= TOOL_TEXT_MAX);
	assert_non_null(strstr(text, "[... 167232 bytes left out; "));
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
	text = tool_text(&tool_execute_code, o, TOOL_TEXT_TRANSCRIPT);
	/* 16384 bytes of text at either side are 5461 of those. */
	assert_non_null(strstr(text, "[... 9078 bytes left out; "));
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

static size_t
count_of(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)) != NULL; text += strlen(what))
		n++;
	return n;
}

TEST(no_command_is_left_out_for_what_others_printed)
{
	json_t *o = run_that_is_long_everywhere(1);
	char *text = tool_text(&tool_run_sandbox, o, TOOL_TEXT_TRANSCRIPT);

	assert_true(strlen(text) <= TOOL_TEXT_MAX);
	assert_int_equal(count_of(text, "exit code 0\n"), 64);
	assert_int_equal(count_of(text, "\nstderr:\n"), 64);
	assert_int_equal(count_of(text, " bytes left out; get_run"), 128);
	assert_int_equal(count_of(text, "1 process left running"), 64);
	json_decref(o);
	free(text);
}

TEST(what_has_no_room_at_all_is_counted)
{
	json_t *o = run_that_is_long_everywhere(6);
	char *text = tool_text(&tool_run_sandbox, o, TOOL_TEXT_TRANSCRIPT);

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
	text = tool_text(&tool_run_sandbox, o, TOOL_TEXT_TRANSCRIPT);
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
	text = tool_text(&tool_control_run, o, TOOL_TEXT_TRANSCRIPT);
	assert_true(strlen(text) <= TOOL_TEXT_MAX);
	/* 16384 bytes of text: all z, and 2128 U+FFFD */
	assert_int_equal(count_of(text, "[... 17879 bytes dropped ...]\n"), 2);
	assert_int_equal(count_of(text, "zzzzz\n"), 2);
	json_decref(o);
	free(text);
	o = left_with_outputs("ab\n", 3, 1);
	text = tool_text(&tool_control_run, o, TOOL_TEXT_TRANSCRIPT);
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
	char *text = tool_text(&tool_run_sandbox, o, TOOL_TEXT_TRANSCRIPT);

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
	char *text = tool_text(&tool_run_sandbox, o, TOOL_TEXT_JSON);

	assert_non_null(strstr(text, "\"1%\\r\\u001B[31m2%\\n\""));
	json_decref(o);
	free(text);
}

/* What is left out are bytes of output, whatever is shown around them. */
TEST(bytes_that_are_left_out_are_those_that_were_printed)
{
	char want[80];
	json_t *o, *c;
	char *text;

	o = run_with_stdout(1, "\x1b[32mone\rtwo\x1b[3", 15);
	c = json_array_get(
	    json_object_get(json_object_get(o, "final"), "commands"), 0);
	json_object_set_new(c, "stdout_tail", json_string("1;4mend\b\bX\n"));
	json_object_set_new(c, "stdout_dropped", json_integer(1000));
	text = tool_text(&tool_run_sandbox, o, TOOL_TEXT_TRANSCRIPT);
	/* The halves of sequences at the cuts, 3 and 4 bytes, are beside. */
	(void)snprintf(want, sizeof(want), "\ntwo\n[... %d bytes left out; ",
	    1000 + 3 + 4);
	assert_non_null(strstr(text, want));
	assert_non_null(strstr(text, "...]\neXd\n"));
	json_decref(o);
	free(text);
}

TEST(what_is_left_running_is_shown_as_on_a_terminal)
{
	json_t *o = left_with_outputs("1%\r2%\x1b[0m", 9, 1);
	char *text = tool_text(&tool_control_run, o, TOOL_TEXT_TRANSCRIPT);

	assert_non_null(strstr(text, "bytes dropped ...]\n2%\n"));
	json_decref(o);
	free(text);
}

TEST_MAIN(NULL, NULL)

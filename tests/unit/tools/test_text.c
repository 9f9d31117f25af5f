#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/tools/tool_text.h"
#include "supervisor/tools/tool.h"

static json_t *
run_with_stdout(unsigned int ncommands, const char *p, size_t n)
{
	json_t *commands = json_array();

	for (unsigned int i = 0; i < ncommands; i++)
		json_array_append_new(commands,
		    json_pack("{s:s, s:i, s:s%, s:s}", "status", "completed",
			"exit_code", 0, "stdout", p, n, "stderr", ""));
	return json_pack("{s:s, s:s, s:{s:s, s:o}}", "tool", "run_sandbox",
	    "run_id", "ID", "final", "state", "completed", "commands",
	    commands);
}

static void
a_short_result_is_one_line_and_the_json(void **state)
{
	json_t *o = run_with_stdout(1, "hi\n", 3);
	char *text = tool_text(&tool_run_sandbox, o);
	char *json = strchr(text, '\n');
	json_t *again;

	(void)state;
	assert_non_null(json);
	again = json_loads(json, 0, NULL);
	assert_true(json_equal(o, again));
	*json = '\0';
	assert_string_equal(text, "run_sandbox: run ID completed");
	json_decref(again);
	json_decref(o);
	free(text);
}

static void
a_run_that_goes_on_says_so(void **state)
{
	json_t *o = json_pack("{s:s, s:n, s:s}", "run_id", "ID", "final",
	    "status_url", "/mcp/runs/ID");
	char *text = tool_text(&tool_run_sandbox, o);

	(void)state;
	assert_int_equal(
	    strncmp(text, "run_sandbox: run ID goes on; status_url=", 40), 0);
	json_decref(o);
	free(text);
}

static void
a_message_cannot_break_the_first_line(void **state)
{
	json_t *o =
	    json_pack("{s:s, s:s}", "status", "error", "message", "one\r\ntwo");
	char *text = tool_text(&tool_execute_code, o);

	(void)state;
	assert_int_equal(
	    strncmp(text, "execute_code: error: one  two\n{", 31), 0);
	json_decref(o);
	free(text);
}

static void
long_output_is_cut_in_the_middle_and_says_how_much(void **state)
{
	size_t n = 1u << 20;
	char *out = xmalloc(n), want[80], *text;
	json_t *o;

	(void)state;
	for (size_t i = 0; i < n; i++)
		out[i] = (char)('a' + i * 26 / n);
	o = run_with_stdout(1, out, n);
	text = tool_text(&tool_run_sandbox, o);
	assert_true(strlen(text) <= TOOL_TEXT_MAX);
	assert_true(strlen(text) > 10000);
	(void)snprintf(want, sizeof(want), "stdout (%zu bytes):\naaaa", n);
	assert_non_null(strstr(text, want));
	(void)snprintf(want, sizeof(want), "\n[... %zu bytes left out ...]\n",
	    n - 2 * (TOOL_TEXT_MAX / 8));
	assert_non_null(strstr(text, want));
	assert_non_null(strstr(text, "zzzz\n"));
	assert_non_null(strstr(text, "command 0: completed, exit code 0\n"));
	json_decref(o);
	free(out);
	free(text);
}

static void
the_cuts_never_split_a_character(void **state)
{
	struct buf b = {0};
	json_t *o;
	char *text;

	(void)state;
	for (unsigned int i = 0; i < 100000; i++)
		assert_int_equal(buf_append(&b, "\xe2\x82\xac", 3), 0);
	o = run_with_stdout(1, (char *)buf_data(&b), buf_len(&b));
	text = tool_text(&tool_run_sandbox, o);
	assert_true(utf8_is_valid(text, strlen(text)));
	json_decref(o);
	free(text);
	buf_clear(&b);
}

static void
many_commands_share_the_room(void **state)
{
	char *out = xcalloc(1, 30001);
	json_t *o;
	char *text;

	(void)state;
	memset(out, 'x', 30000);
	out[5] = '\0'; /* would end the text */
	o = run_with_stdout(64, out, 30000);
	text = tool_text(&tool_run_sandbox, o);
	assert_true(strlen(text) <= TOOL_TEXT_MAX);
	assert_non_null(strstr(text, "command 63: "));
	json_decref(o);
	free(out);
	free(text);
}

static void
a_long_output_of_code_is_cut_too(void **state)
{
	char *out = xcalloc(1, 200001);
	json_t *o;
	char *text;

	(void)state;
	memset(out, 'x', 200000);
	o = json_pack("{s:s, s:s}", "status", "success", "output", out);
	text = tool_text(&tool_execute_code, o);
	assert_true(strlen(text) <= TOOL_TEXT_MAX);
	assert_non_null(strstr(text, "output (200000 bytes):\n"));
	json_decref(o);
	free(out);
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_short_result_is_one_line_and_the_json),
	    cmocka_unit_test(a_run_that_goes_on_says_so),
	    cmocka_unit_test(a_message_cannot_break_the_first_line),
	    cmocka_unit_test(
		long_output_is_cut_in_the_middle_and_says_how_much),
	    cmocka_unit_test(the_cuts_never_split_a_character),
	    cmocka_unit_test(many_commands_share_the_room),
	    cmocka_unit_test(a_long_output_of_code_is_cut_too),
	};

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "common/base.h"
#include "common/conf.h"
#include "common/fd.h"
#include "common/xmalloc.h"

/* schema/gen_conf.sh over one line, as the makefile calls it. */
static int
generate(const char *form, const char *line, char out[4096])
{
	const char *src = getenv("MCP_SRCDIR");
	char path[] = "/tmp/test_gen_conf.XXXXXX";
	AUTO(auto_free) char *command = NULL;
	int fd = mkstemp(path), rc;
	struct err e;
	size_t n;
	FILE *f;

	assert_true(fd >= 0);
	command = xasprintf("sh '%s/schema/gen_conf.sh' %s %s 2>&1",
	    src != NULL ? src : ".", form, path);
	assert_int_equal(fd_write_all(fd, line, strlen(line), &e), 0);
	(void)close(fd);
	f = popen(command, "r");
	assert_non_null(f);
	n = fread(out, 1, 4095, f);
	out[n] = '\0';
	rc = pclose(f);
	(void)unlink(path);
	return rc;
}

static void
test_a_malformed_line_fails_and_is_named(void **state)
{
	static const struct {
		const char *line, *why;
	} bad[] = {
	    {"A|int|1|0|2|m|no\n", ":1: 7 columns, want 8"},
	    {"A|int|1|0|2|m|no|t|x\n", ":1: 9 columns, want 8"},
	    {"# x\n\na|int|1|0|2|m|no|t\n", ":3: key \"a\""},
	    {"A|int|3|0|2|m|no|t\n", ":1: A: default 3 is not in 0..2"},
	    {"A|int||0|2|m|no|t\n", "must be numbers"},
	    {"A|int|1|0||m|no|t\n", "must be numbers"},
	    {"A|int|1|0x0|2|m|no|t\n", "must be numbers"},
	    {"A|bool|yes|||m|no|t\n", "must be true or false"},
	    {"A|bool|true|0|1|m|no|t\n", "only an int has min and max"},
	    {"A|enum:a,b|c|||m|no|t\n", "default c is none of a,b"},
	    {"A|enum:|a|||m|no|t\n", "want enum:a,b,c"},
	    {"A|text|a|||m|no|t\n", "unknown type text"},
	    {"A|str|a|||x|no|t\n", "want some of mfw"},
	    {"A|str|a||||no|t\n", "want some of mfw"},
	    {"A|str|a|||m|maybe|t\n", "want yes or no"},
	    {"A|str|a|||m|no|\n", "no text"},
	    {"A|str|a |||m|no|t\n", "starts or ends with a blank"},
	    {"A|str|\xc3\xa9|||m|no|t\n", "ASCII"},
	    {"A|str||||m|no|t\nA|str||||m|no|t\n", ":2: key A was on line 1"},
	    {"# nothing\n", "the table is empty"},
	};
	static const char *const forms[] = {"keys", "table", "markdown", "man"};
	char out[4096];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		for (size_t k = 0; k < ARRAY_LEN(forms); k++) {
			assert_int_not_equal(
			    generate(forms[k], bad[i].line, out), 0);
			if (strstr(out, bad[i].why) == NULL)
				fail_msg("%s: %s", bad[i].line, out);
		}
	}
}

static void
test_every_form_carries_text_with_quotes_and_backslashes(void **state)
{
	static const char line[] =
	    "A_B|list|\\b\"x\",-y|||mw|yes|what it's - \\n for\n";
	char out[4096];

	(void)state;
	assert_int_equal(generate("keys", line, out), 0);
	assert_non_null(strstr(out, "\tCONF_A_B,\n\tCONF_KEY_COUNT\n"));
	assert_int_equal(generate("table", line, out), 0);
	assert_non_null(strstr(out,
	    "{\"A_B\", CONF_TYPE_LIST, \"\\\\b\\\"x\\\",-y\", \"\","
	    " INT64_C(0), INT64_C(0), CONF_MASTER | CONF_WORKER, true,"
	    " \"what it's - \\\\n for\"},\n"));
	assert_int_equal(generate("markdown", line, out), 0);
	assert_non_null(strstr(out,
	    "| `A_B` | `\\b\"x\",-y` | items with commas between | yes |"));
	assert_int_equal(generate("man", line, out), 0);
	assert_non_null(strstr(out, ".B A_B\nwhat it's \\- \\en for.\n"));
}

static void
test_an_unknown_form_fails(void **state)
{
	char out[4096];

	(void)state;
	assert_int_not_equal(generate("html", "A|str||||m|no|t\n", out), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_malformed_line_fails_and_is_named),
	    cmocka_unit_test(
		test_every_form_carries_text_with_quotes_and_backslashes),
	    cmocka_unit_test(test_an_unknown_form_fails),
	};

	return cmocka_run_group_tests_name("gen_conf", tests, NULL, NULL);
}

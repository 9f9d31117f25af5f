#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/utf8.h"
#include "supervisor/store/first_words.h"

static void
expect(const char *shell, const char *argv, const char *want)
{
	char *got = first_words_of(shell, argv);

	assert_string_equal(got, want);
	free(got);
}

static void
a_short_command_is_there_whole_in_one_line(void **state)
{
	(void)state;
	expect("ls -la", "", "ls -la");
	expect("\n  set -e\n\tmake\t check\r\n", "", "set -e make check");
	expect("echo '\xc3\xa4' \x1b[31m", "", "echo '\xc3\xa4' [31m");
	expect("", "", "");
	expect(" \n", "", "");
}

static void
words_of_argv_are_words(void **state)
{
	(void)state;
	expect("", "[\"python3\",\"-c\",\"print(6 * 7)\"]",
	    "python3 -c print(6 * 7)");
	expect("", "[\"a\\\"b\",\"c\\\\d\",\"e\\nf\"]", "a\"b c\\d e f");
	expect("", "[\"a\",\"\",\"b", "a b");
	expect("", "[\"a\\", "a\\");
	expect("code", "[\"python3\"]", "code");
}

/* Also those of two and three bytes, and in an escape of JSON. */
static void
control_characters_are_blanks(void **state)
{
	(void)state;
	expect("a\xc2\x9b"
	       "31mb\xe2\x80\xae"
	       "c",
	    "", "a 31mb c");
	expect("", "[\"a\xe2\x80\xae\",\"\xc3\xa9\"]", "a \xc3\xa9");
	expect("", "[\"echo\",\"\\u001b[31mred\"]", "echo [31mred");
	expect("", "[\"a\\u00", "a");
	expect("", "[\"a\\u", "a");
}

static void
a_long_command_is_cut_between_characters(void **state)
{
	char long_one[FIRST_WORDS_READ + 1] = "";
	char *got;
	size_t n;

	(void)state;
	for (size_t i = 0; i + 3 < sizeof(long_one); i += 3)
		memcpy(long_one + i, "\xe2\x82\xac", 3);
	got = first_words_of(long_one, "");
	n = strlen(got);
	assert_in_range(n, FIRST_WORDS_MAX - 3, FIRST_WORDS_MAX + 3);
	assert_true(utf8_is_valid(got, n));
	assert_string_equal(got + n - 3, "...");
	free(got);
	memset(long_one, 'x', FIRST_WORDS_MAX);
	long_one[FIRST_WORDS_MAX] = '\0';
	expect(long_one, "", long_one);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_short_command_is_there_whole_in_one_line),
	    cmocka_unit_test(words_of_argv_are_words),
	    cmocka_unit_test(control_characters_are_blanks),
	    cmocka_unit_test(a_long_command_is_cut_between_characters),
	};

	return cmocka_run_group_tests_name("first_words", tests, NULL, NULL);
}

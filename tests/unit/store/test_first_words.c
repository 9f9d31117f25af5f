#include "common/utf8.h"
#include "supervisor/store/first_words.h"
#include "tests/unit/test.h"

static void
expect(const char *shell, const char *argv, const char *want)
{
	char *got = first_words_of(shell, argv);

	assert_string_equal(got, want);
	free(got);
}

TEST(a_short_command_is_there_whole_in_one_line)
{
	expect("ls -la", "", "ls -la");
	expect("\n  set -e\n\tmake\t check\r\n", "", "set -e make check");
	expect("echo '\xc3\xa4' \x1b[31m", "", "echo '\xc3\xa4' [31m");
	expect("", "", "");
	expect(" \n", "", "");
}

TEST(words_of_argv_are_words)
{
	expect("", "[\"python3\",\"-c\",\"print(6 * 7)\"]",
	    "python3 -c print(6 * 7)");
	expect("", "[\"a\\\"b\",\"c\\\\d\",\"e\\nf\"]", "a\"b c\\d e f");
	expect("", "[\"a\",\"\",\"b", "a b");
	expect("", "[\"a\\", "a\\");
	expect("code", "[\"python3\"]", "code");
}

/* Also those of two and three bytes, and in an escape of JSON. */
TEST(control_characters_are_blanks)
{
	expect("a\xc2\x9b"
	       "31mb\xe2\x80\xae"
	       "c",
	    "", "a 31mb c");
	expect("", "[\"a\xe2\x80\xae\",\"\xc3\xa9\"]", "a \xc3\xa9");
	expect("", "[\"echo\",\"\\u001b[31mred\"]", "echo [31mred");
	expect("", "[\"a\\u00", "a");
	expect("", "[\"a\\u", "a");
}

TEST(a_long_command_is_cut_between_characters)
{
	char long_one[FIRST_WORDS_READ + 1] = "";
	char *got;
	size_t n;

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

TEST_MAIN(NULL, NULL)

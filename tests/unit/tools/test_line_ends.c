#include "common/base.h"
#include "common/xmalloc.h"
#include "supervisor/tools/line_ends.h"
#include "tests/unit/test.h"

/* Taken from a block of its own, so that a sanitizer sees its end. */
static void
expect(const char *said, const char *want)
{
	size_t n = strlen(said), left;
	char *text = xmemdup(said, n);

	assert_int_equal(line_ends_are_crlf(text, n), strcmp(said, want) != 0);
	left = line_ends_take(text, n);
	assert_int_equal(left, strlen(want));
	assert_memory_equal(text, want, left);
	assert_false(line_ends_are_crlf(text, left) && left == n);
	free(text);
}

TEST(a_crlf_is_an_lf)
{
	expect("echo a\r\necho b\r\n", "echo a\necho b\n");
	expect("\r\n", "\n");
	expect("a \\\r\n b", "a \\\n b");
}

TEST(the_end_of_a_text_ends_a_line)
{
	expect("echo a > name.txt\r", "echo a > name.txt");
	expect("\r", "");
}

TEST(any_other_cr_stays)
{
	expect("printf 'a\rb'", "printf 'a\rb'");
	expect("a\r\r\nb", "a\r\nb");
	expect("\ra", "\ra");
}

TEST(a_text_without_any_is_left_alone)
{
	expect("", "");
	expect("echo a\necho b\n", "echo a\necho b\n");
}

TEST_MAIN(NULL, NULL)

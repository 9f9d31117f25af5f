#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/base.h"
#include "common/xmalloc.h"
#include "supervisor/tools/line_ends.h"

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

static void
test_a_crlf_is_an_lf(void **state)
{
	(void)state;
	expect("echo a\r\necho b\r\n", "echo a\necho b\n");
	expect("\r\n", "\n");
	expect("a \\\r\n b", "a \\\n b");
}

static void
test_the_end_of_a_text_ends_a_line(void **state)
{
	(void)state;
	expect("echo a > name.txt\r", "echo a > name.txt");
	expect("\r", "");
}

static void
test_any_other_cr_stays(void **state)
{
	(void)state;
	expect("printf 'a\rb'", "printf 'a\rb'");
	expect("a\r\r\nb", "a\r\nb");
	expect("\ra", "\ra");
}

static void
test_a_text_without_any_is_left_alone(void **state)
{
	(void)state;
	expect("", "");
	expect("echo a\necho b\n", "echo a\necho b\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_crlf_is_an_lf),
	    cmocka_unit_test(test_the_end_of_a_text_ends_a_line),
	    cmocka_unit_test(test_any_other_cr_stays),
	    cmocka_unit_test(test_a_text_without_any_is_left_alone),
	};

	return cmocka_run_group_tests_name("line_ends", tests, NULL, NULL);
}

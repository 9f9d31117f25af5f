#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "worker/text.h"

static void
test_control_characters_become_one_space(void **state)
{
	char to[32];

	(void)state;
	text_clean(to, sizeof(to), "\na\x1b\x07\r\nb\x7f", 8);
	assert_string_equal(to, "a b");
}

static void
test_utf8_stays_and_other_bytes_do_not(void **state)
{
	char to[32];

	(void)state;
	text_clean(to, sizeof(to), "gr\xc3\xbc\xc3\x9f", 6);
	assert_string_equal(to, "gr\xc3\xbc\xc3\x9f");
	text_clean(to, sizeof(to),
	    "gr\xff\xfe"
	    "e",
	    5);
	assert_string_equal(to, "gr e");
}

static void
test_a_cut_never_splits_a_character(void **state)
{
	char to[5];

	(void)state;
	text_clean(to, sizeof(to), "abc\xc3\xbc", 5);
	assert_string_equal(to, "abc");
	text_clean(to, 1, "abc", 3);
	assert_string_equal(to, "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_control_characters_become_one_space),
	    cmocka_unit_test(test_utf8_stays_and_other_bytes_do_not),
	    cmocka_unit_test(test_a_cut_never_splits_a_character),
	};

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/text.h"

static void
test_control_characters_become_one_space(void **state)
{
	char to[32];

	(void)state;
	text_clean(to, sizeof(to), "\na\x1b\x07\r\nb\x7f", 8);
	assert_string_equal(to, "a b");
}

/* A terminal obeys those of Latin 1 as well, and a page those of Unicode. */
static void
test_control_characters_of_more_bytes_do_as_well(void **state)
{
	static const char text[] = "a\xc2\x9b"
				   "2Jb\xe2\x80\xa8"
				   "c\xe2\x80\xae\xe2\x81\xa6"
				   "d\xc2\xa0\xe2\x80\x99";
	char to[32];

	(void)state;
	text_clean(to, sizeof(to), text, strlen(text));
	assert_string_equal(to, "a 2Jb c d\xc2\xa0\xe2\x80\x99");
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
	    cmocka_unit_test(test_control_characters_of_more_bytes_do_as_well),
	    cmocka_unit_test(test_utf8_stays_and_other_bytes_do_not),
	    cmocka_unit_test(test_a_cut_never_splits_a_character),
	};

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}

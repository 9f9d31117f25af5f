#include "common/text.h"
#include "tests/unit/test.h"

TEST(control_characters_become_one_space)
{
	char to[32];

	text_clean(to, sizeof(to), "\na\x1b\x07\r\nb\x7f", 8);
	assert_string_equal(to, "a b");
}

/* A terminal obeys those of Latin 1 as well, and a page those of Unicode. */
TEST(control_characters_of_more_bytes_do_as_well)
{
	static const char text[] = "a\xc2\x9b"
				   "2Jb\xe2\x80\xa8"
				   "c\xe2\x80\xae\xe2\x81\xa6"
				   "d\xc2\xa0\xe2\x80\x99";
	char to[32];

	text_clean(to, sizeof(to), text, strlen(text));
	assert_string_equal(to, "a 2Jb c d\xc2\xa0\xe2\x80\x99");
}

TEST(utf8_stays_and_other_bytes_do_not)
{
	char to[32];

	text_clean(to, sizeof(to), "gr\xc3\xbc\xc3\x9f", 6);
	assert_string_equal(to, "gr\xc3\xbc\xc3\x9f");
	text_clean(to, sizeof(to),
	    "gr\xff\xfe"
	    "e",
	    5);
	assert_string_equal(to, "gr e");
}

TEST(a_cut_never_splits_a_character)
{
	char to[5];

	text_clean(to, sizeof(to), "abc\xc3\xbc", 5);
	assert_string_equal(to, "abc");
	text_clean(to, 1, "abc", 3);
	assert_string_equal(to, "");
}

TEST_MAIN(NULL, NULL)

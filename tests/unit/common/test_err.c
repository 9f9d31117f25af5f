#include <errno.h>

#include "common/err.h"
#include "tests/unit/test.h"

TEST(a_text_is_kept_with_its_code)
{
	struct err e;

	assert_int_equal(err_set(&e, ERR_SYS, "open %s", "/x"), ERR_SYS);
	assert_int_equal(e.code, ERR_SYS);
	assert_string_equal(e.msg, "open /x");
}

TEST(what_errno_means_stands_behind_the_text)
{
	struct err e;

	errno = ENOENT;
	assert_int_equal(err_errno(&e, "open %s", "/x"), ERR_SYS);
	assert_int_equal(e.code, ERR_SYS);
	assert_string_equal(e.msg, "open /x: No such file or directory");
}

TEST(a_missing_place_for_the_text_is_fine)
{
	assert_int_equal(err_set(NULL, ERR_LIMIT, "%d", 1), ERR_LIMIT);
}

TEST(a_long_text_is_cut)
{
	char text[2 * ERR_TEXT_MAX];
	struct err e;

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	(void)err_set(&e, ERR_INVAL, "%s", text);
	assert_int_equal(strlen(e.msg), ERR_TEXT_MAX - 1);
}

TEST(its_own_text_may_be_part_of_the_new_one)
{
	struct err e;

	(void)err_set(&e, ERR_INVAL, "inner");
	(void)err_set(&e, ERR_PROTO, "outer (%s)", e.msg);
	assert_string_equal(e.msg, "outer (inner)");
}

TEST(context_goes_before_the_text)
{
	struct err e;

	(void)err_set(&e, ERR_NOTFOUND, "open /x: No such file");
	assert_int_equal(err_wrap(&e, "config %d", 7), ERR_NOTFOUND);
	assert_string_equal(e.msg, "config 7: open /x: No such file");
}

TEST(context_and_text_together_are_cut)
{
	char text[2 * ERR_TEXT_MAX];
	struct err e;

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	(void)err_set(&e, ERR_INVAL, "%s", text);
	(void)err_wrap(&e, "here");
	assert_int_equal(strlen(e.msg), ERR_TEXT_MAX - 1);
	assert_memory_equal(e.msg, "here: xx", 8);
	(void)err_wrap(&e, "%s", text);
	assert_int_equal(strlen(e.msg), ERR_TEXT_MAX - 1);
}

TEST(each_code_has_its_own_word)
{
	for (int a = ERR_OUTPUT_LOST; a <= 0; a++) {
		assert_string_not_equal(err_name(a), "unknown");
		for (int b = a + 1; b <= 0; b++)
			assert_string_not_equal(err_name(a), err_name(b));
	}
	assert_string_equal(err_name(ERR_LOST), "lost");
	assert_string_equal(err_name(1), "unknown");
	assert_string_equal(err_name(ERR_OUTPUT_LOST - 1), "unknown");
}

TEST_MAIN(NULL, NULL)

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/err.h"

static void
test_a_text_is_kept_with_its_code(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(err_set(&e, ERR_SYS, "open %s", "/x"), ERR_SYS);
	assert_int_equal(e.code, ERR_SYS);
	assert_string_equal(e.msg, "open /x");
}

static void
test_a_missing_place_for_the_text_is_fine(void **state)
{
	(void)state;
	assert_int_equal(err_set(NULL, ERR_LIMIT, "%d", 1), ERR_LIMIT);
}

static void
test_a_long_text_is_cut(void **state)
{
	char text[2 * ERR_TEXT_MAX];
	struct err e;

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	(void)err_set(&e, ERR_INVAL, "%s", text);
	assert_int_equal(strlen(e.msg), ERR_TEXT_MAX - 1);
}

static void
test_its_own_text_may_be_part_of_the_new_one(void **state)
{
	struct err e;

	(void)state;
	(void)err_set(&e, ERR_INVAL, "inner");
	(void)err_set(&e, ERR_PROTO, "outer (%s)", e.msg);
	assert_string_equal(e.msg, "outer (inner)");
}

static void
test_context_goes_before_the_text(void **state)
{
	struct err e;

	(void)state;
	(void)err_set(&e, ERR_NOTFOUND, "open /x: No such file");
	assert_int_equal(err_wrap(&e, "config %d", 7), ERR_NOTFOUND);
	assert_string_equal(e.msg, "config 7: open /x: No such file");
}

static void
test_context_and_text_together_are_cut(void **state)
{
	char text[2 * ERR_TEXT_MAX];
	struct err e;

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	(void)err_set(&e, ERR_INVAL, "%s", text);
	(void)err_wrap(&e, "here");
	assert_int_equal(strlen(e.msg), ERR_TEXT_MAX - 1);
	assert_memory_equal(e.msg, "here: xx", 8);
	(void)err_wrap(&e, "%s", text);
	assert_int_equal(strlen(e.msg), ERR_TEXT_MAX - 1);
}

static void
test_each_code_has_its_own_word(void **state)
{
	(void)state;
	for (int a = ERR_OUTPUT_LOST; a <= 0; a++) {
		assert_string_not_equal(err_name(a), "unknown");
		for (int b = a + 1; b <= 0; b++)
			assert_string_not_equal(err_name(a), err_name(b));
	}
	assert_string_equal(err_name(ERR_LOST), "lost");
	assert_string_equal(err_name(1), "unknown");
	assert_string_equal(err_name(ERR_OUTPUT_LOST - 1), "unknown");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_text_is_kept_with_its_code),
	    cmocka_unit_test(test_a_missing_place_for_the_text_is_fine),
	    cmocka_unit_test(test_a_long_text_is_cut),
	    cmocka_unit_test(test_its_own_text_may_be_part_of_the_new_one),
	    cmocka_unit_test(test_context_goes_before_the_text),
	    cmocka_unit_test(test_context_and_text_together_are_cut),
	    cmocka_unit_test(test_each_code_has_its_own_word),
	};

	return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}

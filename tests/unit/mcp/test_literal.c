#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/xmalloc.h"
#include "supervisor/mcp/literal.h"

static void
expect(const char *text, enum literal_place place, const char *want)
{
	struct literals l;
	struct err e;
	char *copy = xmemdup(text, strlen(text)); /* without the NUL */

	assert_int_equal(
	    literal_scan(copy, strlen(text), LITERAL_DEPTH_MAX, &l, &e), 0);
	if (want == NULL)
		assert_null(l.text[place]);
	else
		assert_string_equal(l.text[place], want);
	literal_clear(&l);
	free(copy);
}

static void
test_the_three_places_are_found(void **state)
{
	(void)state;
	expect("{\"id\":17}", LITERAL_ID, "17");
	expect("{ \"a\" : [1,{}] , \"id\" :\n -9007199254740993 }", LITERAL_ID,
	    "-9007199254740993");
	expect("{\"params\":{\"requestId\":12}}", LITERAL_REQUEST_ID, "12");
	expect("{\"params\":{\"_meta\":{\"progressToken\":5}}}",
	    LITERAL_PROGRESS_TOKEN, "5");
}

static void
test_the_same_names_elsewhere_are_not(void **state)
{
	(void)state;
	expect("{\"params\":{\"id\":17}}", LITERAL_ID, NULL);
	expect("[{\"id\":17}]", LITERAL_ID, NULL);
	expect("{\"x\":{\"requestId\":12}}", LITERAL_REQUEST_ID, NULL);
	expect("{\"params\":[{\"requestId\":12}]}", LITERAL_REQUEST_ID, NULL);
	expect("{\"x\":\"{\\\"id\\\":17}\"}", LITERAL_ID, NULL);
	expect("{\"id\":{\"id\":17}}", LITERAL_ID, NULL);
	expect("{\"id\":[17]}", LITERAL_ID, NULL);
}

static void
test_numbers_that_are_no_integers_are_not_kept(void **state)
{
	(void)state;
	expect("{\"id\":1.5}", LITERAL_ID, NULL);
	expect("{\"id\":1e3}", LITERAL_ID, NULL);
	expect("{\"id\":01}", LITERAL_ID, NULL);
	expect("{\"id\":-}", LITERAL_ID, NULL);
	expect("{\"id\":\"17\"}", LITERAL_ID, NULL);
}

static void
test_a_number_too_large_for_a_parser_is_replaced_in_the_copy(void **state)
{
	static const char text[] = "{\"id\":123456789012345678901234567890}";
	struct literals l;
	struct err e;

	(void)state;
	assert_int_equal(
	    literal_scan(text, strlen(text), LITERAL_DEPTH_MAX, &l, &e), 0);
	assert_string_equal(
	    l.text[LITERAL_ID], "123456789012345678901234567890");
	assert_non_null(l.copy);
	assert_memory_equal(
	    l.copy, "{\"id\":0                             }", strlen(text));
	literal_clear(&l);
}

static void
test_a_number_without_end_is_left_to_the_parser(void **state)
{
	char text[200];

	(void)state;
	memset(text, '9', sizeof(text));
	memcpy(text, "{\"id\":", 6);
	text[sizeof(text) - 2] = '}';
	text[sizeof(text) - 1] = '\0';
	expect(text, LITERAL_ID, NULL);
}

static void
test_nesting_is_bounded(void **state)
{
	char text[400];
	struct literals l;
	struct err e;

	(void)state;
	memset(text, '[', sizeof(text));
	assert_int_equal(
	    literal_scan(text, LITERAL_DEPTH_MAX, 1000, &l, &e), 0);
	literal_clear(&l);
	assert_int_equal(
	    literal_scan(text, LITERAL_DEPTH_MAX + 1, 1000, &l, &e), ERR_LIMIT);
	literal_clear(&l);
}

static void
test_texts_that_are_cut_off_end_the_scan(void **state)
{
	static const char whole[] =
	    "{\"id\":12,\"params\":{\"_meta\":{\"a\\\\\":\"\\\"\"}}}]}";
	struct literals l;
	struct err e;

	(void)state;
	for (size_t n = 0; n < sizeof(whole); n++) {
		char *cut = xmemdup(whole, n);

		assert_int_equal(
		    literal_scan(cut, n, LITERAL_DEPTH_MAX, &l, &e), 0);
		literal_clear(&l);
		free(cut);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_the_three_places_are_found),
	    cmocka_unit_test(test_the_same_names_elsewhere_are_not),
	    cmocka_unit_test(test_numbers_that_are_no_integers_are_not_kept),
	    cmocka_unit_test(
		test_a_number_too_large_for_a_parser_is_replaced_in_the_copy),
	    cmocka_unit_test(test_a_number_without_end_is_left_to_the_parser),
	    cmocka_unit_test(test_nesting_is_bounded),
	    cmocka_unit_test(test_texts_that_are_cut_off_end_the_scan),
	};

	return cmocka_run_group_tests_name("literal", tests, NULL, NULL);
}

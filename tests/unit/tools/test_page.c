/* test_page.c - a cursor is a place that was given out, and pages end */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "common/js.h"
#include "supervisor/tools/page.h"

static const uint8_t key[SIPHASH_KEY_BYTES] = {1, 2, 3};
static const uint8_t other_key[SIPHASH_KEY_BYTES] = {1, 2, 4};
static const struct uuid run = {{7}}, other_run = {{8}};
static const struct page_of of = {&run, key};

static int
parse(const struct page_of *whose, const char *text, uint64_t *offset)
{
	struct err e;
	int rc = page_parse_cursor(whose, text, offset, &e);

	if (rc != 0)
		assert_non_null(strstr(e.msg, "cursor: want"));
	return rc;
}

static void
a_cursor_leads_back_to_its_place(void **state)
{
	static const uint64_t places[] = {0, 1, 32768, 999999999999999999};
	char text[PAGE_CURSOR_TEXT_MAX];
	uint64_t at;

	(void)state;
	assert_int_equal(parse(&of, "0", &at), 0);
	assert_int_equal(at, 0);
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		page_format_cursor(&of, places[i], text);
		assert_int_equal(parse(&of, text, &at), 0);
		assert_true(at == places[i]);
	}
}

static void
a_place_that_was_never_given_out_is_refused(void **state)
{
	static const char *const forged[] = {"", "7", "00", "0-", " 0", "-1",
	    "7-0123456789abcdef", "9999999999999999999", "x"};
	const struct page_of others[] = {{&other_run, key}, {&run, other_key}};
	char text[PAGE_CURSOR_TEXT_MAX], near[PAGE_CURSOR_TEXT_MAX + 2];
	uint64_t at;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(forged); i++)
		assert_int_equal(parse(&of, forged[i], &at), ERR_INVAL);
	page_format_cursor(&of, 100, text);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_int_equal(parse(&others[i], text, &at), ERR_INVAL);
	(void)snprintf(near, sizeof(near), "0%s", text);
	assert_int_equal(parse(&of, near, &at), ERR_INVAL);
	(void)snprintf(near, sizeof(near), "%sa", text);
	assert_int_equal(parse(&of, near, &at), ERR_INVAL);
	text[2] = '1';
	assert_int_equal(parse(&of, text, &at), ERR_INVAL);
}

static bool
says_more(const struct log_records *records, uint64_t upto)
{
	static char none[] = "";
	const struct store_run row = {.identifier = none, .ncommands = 1};
	json_t *o = page_view(&row, records, &of, upto);
	bool more = json_object_get(o, "next_cursor") != NULL;

	json_decref(o);
	return more;
}

/* A log may be shorter than its run's row says, after a loss. */
static void
pages_end_where_nothing_comes_any_more(void **state)
{
	static const uint8_t bytes[1];
	const struct log_records nothing = {.p = bytes, .next = 100};

	(void)state;
	assert_false(says_more(&nothing, 100));
	assert_false(says_more(&nothing, 200));
	assert_true(says_more(&nothing, PAGE_GROWS));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_cursor_leads_back_to_its_place),
	    cmocka_unit_test(a_place_that_was_never_given_out_is_refused),
	    cmocka_unit_test(pages_end_where_nothing_comes_any_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

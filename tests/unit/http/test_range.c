#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "supervisor/http/range.h"

static void
one_range_is_cut_to_the_file(void **state)
{
	static const struct {
		const char *text;
		uint64_t first, length;
	} table[] = {
	    {"bytes=0-0", 0, 1},
	    {"bytes=0-", 0, 100},
	    {"bytes=99-", 99, 1},
	    {"bytes=10-19", 10, 10},
	    {"bytes=90-1000", 90, 10},
	    {"bytes=-1", 99, 1},
	    {"bytes=-100", 0, 100},
	    {"bytes=-999999", 0, 100},
	    {"Bytes=5-5", 5, 1},
	};
	struct range r;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		assert_int_equal(
		    range_parse(table[i].text, 100, &r), RANGE_PART);
		assert_int_equal(r.first, table[i].first);
		assert_int_equal(r.length, table[i].length);
	}
}

static void
what_lies_outside_is_bad(void **state)
{
	struct range r;

	(void)state;
	assert_int_equal(range_parse("bytes=100-", 100, &r), RANGE_BAD);
	assert_int_equal(range_parse("bytes=100-200", 100, &r), RANGE_BAD);
	assert_int_equal(range_parse("bytes=-0", 100, &r), RANGE_BAD);
	assert_int_equal(range_parse("bytes=0-", 0, &r), RANGE_BAD);
	assert_int_equal(range_parse("bytes=-5", 0, &r), RANGE_BAD);
}

static void
what_is_no_single_range_is_passed_over(void **state)
{
	static const char *const table[] = {"", "bytes", "bytes=", "bytes=-",
	    "bytes=a-b", "bytes=1", "bytes=5-2", "bytes=0-1,3-4", "lines=0-1",
	    "bytes=0-1x", "bytes=+1-2", "bytes= 0-1",
	    "bytes=99999999999999999999-", "bytes=0-99999999999999999999"};
	struct range r;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		assert_int_equal(range_parse(table[i], 100, &r), RANGE_NONE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(one_range_is_cut_to_the_file),
	    cmocka_unit_test(what_lies_outside_is_bad),
	    cmocka_unit_test(what_is_no_single_range_is_passed_over),
	};

	return cmocka_run_group_tests_name("range", tests, NULL, NULL);
}

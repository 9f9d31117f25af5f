#include "supervisor/http/range.h"
#include "tests/unit/test.h"

TEST(one_range_is_cut_to_the_file)
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

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		assert_int_equal(
		    range_parse(table[i].text, 100, &r), RANGE_PART);
		assert_int_equal(r.first, table[i].first);
		assert_int_equal(r.length, table[i].length);
	}
}

TEST(what_lies_outside_is_bad)
{
	struct range r;

	assert_int_equal(range_parse("bytes=100-", 100, &r), RANGE_BAD);
	assert_int_equal(range_parse("bytes=100-200", 100, &r), RANGE_BAD);
	assert_int_equal(range_parse("bytes=-0", 100, &r), RANGE_BAD);
	assert_int_equal(range_parse("bytes=0-", 0, &r), RANGE_BAD);
	assert_int_equal(range_parse("bytes=-5", 0, &r), RANGE_BAD);
}

TEST(what_is_no_single_range_is_passed_over)
{
	static const char *const table[] = {"", "bytes", "bytes=", "bytes=-",
	    "bytes=a-b", "bytes=1", "bytes=5-2", "bytes=0-1,3-4", "lines=0-1",
	    "bytes=0-1x", "bytes=+1-2", "bytes= 0-1",
	    "bytes=99999999999999999999-", "bytes=0-99999999999999999999"};
	struct range r;

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		assert_int_equal(range_parse(table[i], 100, &r), RANGE_NONE);
}

TEST_MAIN(NULL, NULL)

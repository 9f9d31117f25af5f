#include "supervisor/front/etag.h"
#include "tests/unit/test.h"

#define TAG "\"0123\""

struct listed {
	const char *list;
	enum etag_found strong, weak;
};

TEST(lists_are_read_as_rfc_9110_has_them)
{
	static const struct listed table[] = {
	    {"*", ETAG_YES, ETAG_YES},
	    {" * ", ETAG_YES, ETAG_YES},
	    {TAG, ETAG_YES, ETAG_YES},
	    {"\t" TAG " ", ETAG_YES, ETAG_YES},
	    {"\"a\", " TAG, ETAG_YES, ETAG_YES},
	    {TAG ",\"a\"", ETAG_YES, ETAG_YES},
	    {",, " TAG " ,", ETAG_YES, ETAG_YES},
	    {"\"a,b\", \"\", " TAG, ETAG_YES, ETAG_YES},
	    {"W/" TAG, ETAG_NO, ETAG_YES},
	    {"W/" TAG ", " TAG, ETAG_YES, ETAG_YES},
	    {"\"a\", \"b\"", ETAG_NO, ETAG_NO},
	    {"\"\"", ETAG_NO, ETAG_NO},
	    {"\"012\"", ETAG_NO, ETAG_NO},
	    {"\"01234\"", ETAG_NO, ETAG_NO},
	    {"\"x" TAG "x\"", ETAG_MALFORMED, ETAG_MALFORMED},
	    {"\"\xc3\xa4\"", ETAG_NO, ETAG_NO},
	    {"", ETAG_MALFORMED, ETAG_MALFORMED},
	    {" , ", ETAG_MALFORMED, ETAG_MALFORMED},
	    {"0123", ETAG_MALFORMED, ETAG_MALFORMED},
	    {"\"0123", ETAG_MALFORMED, ETAG_MALFORMED},
	    {"\"01 23\"", ETAG_MALFORMED, ETAG_MALFORMED},
	    {"\"01\x7f\"", ETAG_MALFORMED, ETAG_MALFORMED},
	    {"w/" TAG, ETAG_MALFORMED, ETAG_MALFORMED},
	    {"W/ " TAG, ETAG_MALFORMED, ETAG_MALFORMED},
	    {TAG " " TAG, ETAG_MALFORMED, ETAG_MALFORMED},
	    {TAG TAG, ETAG_MALFORMED, ETAG_MALFORMED},
	    {"*, " TAG, ETAG_MALFORMED, ETAG_MALFORMED},
	    {TAG ", *", ETAG_MALFORMED, ETAG_MALFORMED},
	    {"**", ETAG_MALFORMED, ETAG_MALFORMED},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const struct listed *l = &table[i];

		if (etag_find(l->list, TAG, ETAG_STRONG) != l->strong ||
		    etag_find(l->list, TAG, ETAG_WEAK) != l->weak)
			fail_msg("not read well: %s", l->list);
	}
}

TEST(what_is_not_there_has_no_tag)
{
	static const char *const lists[] = {"*", TAG, "\"a\", \"b\""};

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		assert_int_equal(
		    etag_find(lists[i], NULL, ETAG_STRONG), ETAG_NO);
	assert_int_equal(etag_find("nothing", NULL, ETAG_WEAK), ETAG_MALFORMED);
}

TEST(a_tag_is_made_of_all_bytes)
{
	char a[ETAG_BYTES], b[ETAG_BYTES];

	etag_of_bytes("x\0y", 3, a);
	etag_of_bytes("x\0z", 3, b);
	assert_string_not_equal(a, b);
	etag_of_bytes("x\0y", 3, b);
	assert_string_equal(a, b);
	assert_int_equal(strlen(a), ETAG_BYTES - 1);
	assert_int_equal(etag_find(a, b, ETAG_STRONG), ETAG_YES);
}

TEST_MAIN(NULL, NULL)

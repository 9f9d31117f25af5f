#include "common/percent.h"
#include "common/xmalloc.h"
#include "tests/unit/test.h"

static void
assert_decodes(const char *text, enum percent_plus plus, const char *want)
{
	AUTO(auto_free) char *s = xstrdup(text);

	assert_int_equal(percent_decode(s, plus), want == NULL ? -1 : 0);
	if (want != NULL)
		assert_string_equal(s, want);
}

TEST(an_escape_is_decoded_once)
{
	assert_decodes("", PERCENT_PLUS_IS_PLUS, "");
	assert_decodes("a%20b%2fC", PERCENT_PLUS_IS_PLUS, "a b/C");
	assert_decodes("%2541", PERCENT_PLUS_IS_PLUS, "%41");
	assert_decodes("%C3%a4", PERCENT_PLUS_IS_PLUS, "\xc3\xa4");
}

TEST(a_plus_is_a_space_where_forms_are_read)
{
	assert_decodes("a+b%2B", PERCENT_PLUS_IS_SPACE, "a b+");
	assert_decodes("a+b", PERCENT_PLUS_IS_PLUS, "a+b");
}

TEST(what_is_no_text_is_refused)
{
	static const char *const bad[] = {
	    "%", "%4", "%4g", "%g4", "a%00b", "%ff", "%C3", "%ED%A0%80"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_decodes(bad[i], PERCENT_PLUS_IS_PLUS, NULL);
}

TEST(a_path_is_encoded_so_that_it_decodes_to_itself)
{
	static const char path[] = "dir/a b+c%d?e#\xc3\xa4~.txt";
	AUTO(auto_free) char *text = NULL;
	struct buf b;

	buf_init(&b, 0);
	percent_add_path(&b, path);
	text = xstrndup((const char *)buf_data(&b), buf_len(&b));
	buf_clear(&b);
	assert_string_equal(text, "dir/a%20b%2Bc%25d%3Fe%23%C3%A4~.txt");
	assert_int_equal(percent_decode(text, PERCENT_PLUS_IS_PLUS), 0);
	assert_string_equal(text, path);
}

TEST_MAIN(NULL, NULL)

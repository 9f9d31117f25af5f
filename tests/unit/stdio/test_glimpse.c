#include "supervisor/stdio/glimpse.h"

#include "common/xmalloc.h"
#include "tests/unit/test.h"

static struct glimpse
look(const char *text)
{
	struct glimpse whole, pieces;

	glimpse_init(&whole);
	glimpse_feed(&whole, text, strlen(text));
	glimpse_init(&pieces);
	for (const char *p = text; *p != '\0'; p++)
		glimpse_feed(&pieces, p, 1);
	assert_string_equal(pieces.id, whole.id);
	assert_int_equal(pieces.has_method, whole.has_method);
	return whole;
}

TEST(a_request_has_a_method_and_an_id)
{
	static const char *const texts[] = {
	    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"x\"}",
	    "{\"method\":\"x\",\"params\":{\"id\":1},\"id\":7}",
	    (" { \"id\" : 7 , \"params\" : [ {\"a\":\"}\"} ], "
	     "\"method\":\"\\\"\"}"),
	    "{\"id\":1,\"method\":\"x\",\"id\":7}"};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct glimpse g = look(texts[i]);

		assert_true(glimpse_is_request(&g));
		assert_false(glimpse_is_response(&g));
		assert_string_equal(g.id, "7");
	}
}

TEST(an_id_is_kept_as_it_stands)
{
	static const char *const ids[] = {
	    "-1", "0", "\"\"", "\"a b\\\",}\"", "9007199254740993"};

	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		AUTO(auto_free)
		char *text = xasprintf("{\"id\": %s ,\"result\":{}}", ids[i]);
		struct glimpse g = look(text);

		assert_string_equal(g.id, ids[i]);
		assert_true(glimpse_is_response(&g));
	}
}

TEST(what_has_no_id_is_neither)
{
	static const char *const texts[] = {"{\"method\":\"x\"}",
	    "{\"id\":null,\"method\":\"x\"}", "{\"id\":{\"a\":1}}",
	    "{\"id\":[7],\"method\":\"x\"}", "[{\"id\":7,\"method\":\"x\"}]",
	    "{\"x\":{\"id\":7}}", "\"id\"", "7", "", "{", "{\"id",
	    "{\"id\":", "}{\"id\":7}", "{\"idx\":7,\"xid\":7}",
	    "{\"a\":\"id\"}"};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct glimpse g = look(texts[i]);

		assert_false(glimpse_is_request(&g));
		assert_false(glimpse_is_response(&g));
	}
}

TEST(an_id_without_end_is_none)
{
	struct glimpse g;

	glimpse_init(&g);
	glimpse_feed(&g, "{\"method\":\"x\",\"id\":\"", 20);
	for (int i = 0; i < 10 * GLIMPSE_ID_MAX; i++)
		glimpse_feed(&g, "aaaaaaaaaa", 10);
	glimpse_feed(&g, "\"}", 2);
	assert_false(glimpse_is_request(&g));
	assert_string_equal(g.id, "");
}

TEST_MAIN(NULL, NULL)

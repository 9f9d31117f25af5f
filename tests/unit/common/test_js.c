#include "common/js.h"
#include "common/xmalloc.h"
#include "tests/unit/test.h"

static void
check_parse(const char *text, int want, const char *why)
{
	json_t *j = NULL;
	struct err e = {0};

	assert_int_equal(js_parse(text, strlen(text), 1000, 4, &j, &e), want);
	if (want != 0) {
		assert_null(j);
		if (strstr(e.msg, why) == NULL)
			fail_msg("%s: %s, want %s", text, e.msg, why);
	}
	json_decref(j);
}

TEST(good_text_is_parsed_whatever_its_type)
{
	check_parse("{}", 0, "");
	check_parse(" [1, 2.5, \"x\", null] ", 0, "");
	check_parse("17", 0, "");
	check_parse("\"[[[[[[[[[\"", 0, "");
	check_parse("[\"\\\"[[[[[[[[\", \"{{\\\\\"]", 0, "");
	check_parse("[[[[1]]]]", 0, "");
	check_parse("{\"a\":[{\"b\":[]}]}", 0, "");
}

TEST(a_byte_order_mark_before_the_text_is_skipped)
{
	check_parse("\xef\xbb\xbf{\"a\":1}", 0, "");
	check_parse("\xef\xbb\xbf", ERR_PARSE, "line 1");
	check_parse("\xef\xbb{}", ERR_PARSE, "line 1");
	check_parse("\xef\xbb\xbf\xef\xbb\xbf{}", ERR_PARSE, "line 1");
	check_parse("{}\xef\xbb\xbf", ERR_PARSE, "end of file");
}

TEST(bad_text_is_refused_with_its_place)
{
	check_parse("", ERR_PARSE, "line 1");
	check_parse("{", ERR_PARSE, "line 1 column 1");
	check_parse("{\"a\":1,\n\"b\":}", ERR_PARSE, "line 2 column 5");
	check_parse("[1] x", ERR_PARSE, "end of file");
	check_parse("{\"a\":1,\"a\":2}", ERR_PARSE, "duplicate");
	check_parse("\"\xff\"", ERR_PARSE, "0xff");
	check_parse("\"\\ud800\"", ERR_PARSE, "line 1");
	check_parse("\"a\\u0000b\"", ERR_PARSE, "\\u0000");
	check_parse("\"\x01\"", ERR_PARSE, "control character");
	check_parse("\"", ERR_PARSE, "line 1");
	check_parse("\"\\", ERR_PARSE, "line 1");
	check_parse("]]]]", ERR_PARSE, "line 1");
}

TEST(a_raw_nul_byte_is_refused)
{
	json_t *j = NULL;
	struct err e;

	assert_int_equal(js_parse("[1]\0", 4, 10, 4, &j, &e), ERR_PARSE);
	assert_int_equal(js_parse("\"a\0b\"", 5, 10, 4, &j, &e), ERR_PARSE);
	assert_null(j);
}

TEST(size_and_depth_have_limits)
{
	AUTO(auto_free) char *deep = xmalloc(100001);
	json_t *j = NULL;
	struct err e;

	assert_int_equal(js_parse("[1]", 3, 2, 4, &j, &e), ERR_LIMIT);
	assert_string_equal(e.msg, "JSON of 3 bytes, limit 2");
	check_parse("[[[[[1]]]]]", ERR_LIMIT, "deeper than 4 levels");
	check_parse("{\"a\":[[[{", ERR_LIMIT, "deeper than 4 levels");
	memset(deep, '[', 100000);
	deep[100000] = '\0';
	assert_int_equal(js_parse(deep, 100000, 200000, 64, &j, &e), ERR_LIMIT);
	/* Above its own limit jansson refuses by itself. */
	assert_int_equal(
	    js_parse(deep, 100000, 200000, 100000, &j, &e), ERR_PARSE);
	assert_null(j);
}

static void
check_string(const char *p, size_t n, const char *want, size_t len, bool lost)
{
	bool lossy = !lost;
	json_t *j = js_string_bytes(p, n, &lossy);

	assert_non_null(j);
	assert_int_equal(lossy, lost);
	assert_int_equal(json_string_length(j), len);
	assert_memory_equal(json_string_value(j), want, len + 1);
	json_decref(j);
	j = js_string_bytes(p, n, NULL);
	assert_int_equal(json_string_length(j), len);
	json_decref(j);
}

TEST(any_bytes_become_a_string)
{
	check_string("", 0, "", 0, false);
	check_string(NULL, 0, "", 0, false);
	check_string("a\0b", 3, "a\0b", 3, false);
	check_string("\xc3\xa9", 2, "\xc3\xa9", 2, false);
	check_string("a\xff", 2, "a\xef\xbf\xbd", 4, true);
}

TEST(a_dump_is_compact_and_in_order)
{
	json_t *j =
	    json_pack("{s:i, s:[s, n], s:b}", "z", 1, "a", "x\n", "m", 1);
	AUTO(auto_free) char *text = js_dump(j);
	json_t *nul = js_string_bytes("\0", 1, NULL);
	AUTO(auto_free) char *escaped = js_dump(nul);

	assert_string_equal(text, "{\"z\":1,\"a\":[\"x\\n\",null],\"m\":true}");
	assert_string_equal(escaped, "\"\\u0000\"");
	json_decref(j);
	json_decref(nul);
}

/* As sent: without the quotes, with base64 where the text is not exact. */
static size_t
cost_as_sent(const void *p, size_t n)
{
	bool lossy;
	json_t *text = js_string_bytes(p, n, &lossy);
	char *dump = js_dump(text);
	size_t cost = strlen(dump) - 2;

	if (lossy)
		cost += (n + 2) / 3 * 4;
	free(dump);
	json_decref(text);
	return cost;
}

TEST(what_bytes_cost_is_known_before_they_are_json)
{
	static const char *const texts[] = {"", "abc", "\"\\\n\t\x01\x7f/",
	    "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "a\377b\303",
	    "\xed\xa0\x80\x1f"};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		size_t n = strlen(texts[i]);
		size_t cost = js_bytes_cost(texts[i], n);

		assert_int_equal(cost, cost_as_sent(texts[i], n));
		for (size_t max = 0; max <= cost; max++) {
			size_t fit = js_bytes_fit(texts[i], n, max);

			assert_true(fit <= n);
			assert_true(cost_as_sent(texts[i], fit) <= max ||
			    fit != js_bytes_fit(texts[i], fit, max));
		}
		assert_int_equal(js_bytes_fit(texts[i], n, cost), n);
	}
}

TEST(a_plain_string_is_all_that_a_c_string_shows)
{
	json_t *plain = json_string("a"), *cut = json_stringn("a\0b", 3);
	json_t *number = json_integer(1);

	assert_string_equal(js_plain(plain), "a");
	assert_null(js_plain(cut));
	assert_null(js_plain(number));
	assert_null(js_plain(NULL));
	json_decref(plain);
	json_decref(cut);
	json_decref(number);
}

TEST_MAIN(NULL, NULL)

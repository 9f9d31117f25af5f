#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "common/buf.h"
#include "common/js_load.h"
#include "common/xmalloc.h"

#define STRICT (JSON_REJECT_DUPLICATES | JSON_DECODE_ANY)

/* The same value or the same complaint as jansson has. */
static void
check_same(const char *text, size_t len, size_t flags)
{
	json_error_t want_error, error;
	json_t *want = json_loadb(text, len, flags, &want_error);
	json_t *got = js_load(text, len, flags, &error);

	assert_int_equal(got != NULL, want != NULL);
	if (want == NULL) {
		assert_string_equal(error.text, want_error.text);
		assert_int_equal(error.position, want_error.position);
	} else if (!json_equal(got, want)) {
		fail_msg("another value: %.100s", text);
	}
	json_decref(got);
	json_decref(want);
}

/* One long string with middle in it, in each place that a string can have. */
static void
check_everywhere(const char *middle)
{
	static const char *const forms[] = {"\"%s%s%s\"", "[1,\"%s%s%s\",2]",
	    "{\"a\":{\"b\":[\"%s%s%s\"]},\"c\":3}", "{\"%s%s%s\" : 1}",
	    "[\"%s%s%s\"", "{\"a\":\"%s%s%s\",\"a\":1}"};
	char pad[JS_LONG_BYTES + 1];

	memset(pad, 'x', sizeof(pad) - 1);
	pad[sizeof(pad) - 1] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		char text[4 * JS_LONG_BYTES];
		int n;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		n = snprintf(text, sizeof(text), forms[i], pad, middle, pad);
#pragma GCC diagnostic pop
		assert_true(n > 0 && (size_t)n < sizeof(text));
		check_same(text, (size_t)n, STRICT);
		check_same(text, (size_t)n, STRICT | JSON_ALLOW_NUL);
	}
}

static void
test_long_strings_are_what_jansson_reads(void **state)
{
	static const char *const middles[] = {"", "\\n\\t\\r\\b\\f\\/\\\\\\\"",
	    "\\u0041\\u00e9\\u20ac\\ud83d\\ude00", "é€😀", "\\u0000", "\\\\\\\\",
	    "\\\\\\\"", "[{,:}]"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(middles); i++)
		check_everywhere(middles[i]);
}

static void
test_what_is_wrong_in_a_long_string_is_told_as_jansson_does(void **state)
{
	static const char *const middles[] = {"\n", "\x01", "\xff",
	    "\xed\xa0\x80", "\xc0\x80", "\\x", "\\u12", "\\u12g4", "\\ud800",
	    "\\ud800x", "\\ud800\\u0041", "\\udc00", "\"", "\\u"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(middles); i++)
		check_everywhere(middles[i]);
}

static void
test_a_raw_nul_byte_is_no_text(void **state)
{
	char text[JS_LONG_BYTES * 2];

	(void)state;
	memset(text, 'x', sizeof(text));
	text[0] = text[sizeof(text) - 1] = '"';
	check_same(text, sizeof(text), STRICT);
	text[300] = '\0';
	check_same(text, sizeof(text), STRICT | JSON_ALLOW_NUL);
	text[sizeof(text) - 2] = '"';
	text[sizeof(text) - 1] = '\0';
	check_same(text, sizeof(text), STRICT);
}

static void
test_the_same_long_key_twice_is_seen(void **state)
{
	char key[JS_LONG_BYTES + 1], text[4 * JS_LONG_BYTES];
	json_error_t e;
	int n;

	(void)state;
	memset(key, 'k', sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	n = snprintf(
	    text, sizeof(text), "{\"%s\":\"%s\",\"%s\":2}", key, key, key);
	assert_null(js_load(text, (size_t)n, STRICT, &e));
	assert_int_equal(json_error_code(&e), json_error_duplicate_key);
}

static void
test_many_long_strings_keep_their_places(void **state)
{
	struct buf b;
	json_error_t e;
	json_t *j;

	(void)state;
	buf_init(&b, 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(
		    buf_printf(&b, "%s\"%0*d\",\"%d\"", i == 0 ? "[" : ",",
			JS_LONG_BYTES + i, i, i),
		    0);
	assert_int_equal(buf_printf(&b, "]"), 0);
	check_same((const char *)buf_data(&b), buf_len(&b), STRICT);
	j = js_load((const char *)buf_data(&b), buf_len(&b), STRICT, &e);
	assert_int_equal(json_array_size(j), 200);
	assert_int_equal(
	    json_string_length(json_array_get(j, 198)), JS_LONG_BYTES + 99);
	json_decref(j);
	buf_clear(&b);
}

/* Texts of pieces that are hard together, from a fixed seed. */
static void
test_random_texts_are_what_jansson_reads(void **state)
{
	static const char *const pieces[] = {"\"", "\\", "\\\"", "{", "}", "[",
	    "]", ",", ":", "\"a\"", "\\u00", "e9", "\n", " ", "1", "true", "é",
	    "\xff", "\"k\":"};
	static char run[JS_LONG_BYTES];
	uint32_t seed = 7;
	struct buf b;

	(void)state;
	memset(run, 'r', sizeof(run));
	buf_init(&b, 0);
	for (int i = 0; i < 20000; i++) {
		buf_consume(&b, buf_len(&b));
		for (int k = 0; k < 12; k++) {
			const char *piece;

			seed = seed * 1664525 + 1013904223;
			piece = pieces[(seed >> 16) % ARRAY_LEN(pieces)];
			assert_int_equal(
			    buf_append(&b, piece, strlen(piece)), 0);
			if ((seed >> 28) < 4)
				assert_int_equal(
				    buf_append(&b, run, sizeof(run)), 0);
		}
		check_same((const char *)buf_data(&b), buf_len(&b), STRICT);
	}
	buf_clear(&b);
}

static void
test_the_end_of_a_string_is_its_own_quote(void **state)
{
	(void)state;
	assert_int_equal(js_string_end("\"ab\"", 4, 1), 3);
	assert_int_equal(js_string_end("\"\\\"\"", 4, 1), 3);
	assert_int_equal(js_string_end("\"\\\\\"\"", 5, 1), 3);
	assert_int_equal(js_string_end("\"\\\"\\\"", 5, 1), 5);
	assert_int_equal(js_string_end("\"", 1, 1), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_long_strings_are_what_jansson_reads),
	    cmocka_unit_test(
		test_what_is_wrong_in_a_long_string_is_told_as_jansson_does),
	    cmocka_unit_test(test_a_raw_nul_byte_is_no_text),
	    cmocka_unit_test(test_the_same_long_key_twice_is_seen),
	    cmocka_unit_test(test_many_long_strings_keep_their_places),
	    cmocka_unit_test(test_random_texts_are_what_jansson_reads),
	    cmocka_unit_test(test_the_end_of_a_string_is_its_own_quote),
	};

	return cmocka_run_group_tests_name("js_load", tests, NULL, NULL);
}

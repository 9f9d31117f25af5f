#include "supervisor/mcp/mirror.h"

#include <strings.h>

#include "common/xmalloc.h"
#include "tests/unit/test.h"

static bool
shows(const char *line, const char *value)
{
	json_t *v = json_loads(value, JSON_DECODE_ANY, NULL);
	bool yes;

	assert_non_null(v);
	yes = mirror_shows(line, v);
	json_decref(v);
	return yes;
}

TEST(text_is_compared_byte_by_byte)
{
	assert_true(shows("a b", "\"a b\""));
	assert_true(shows("", "\"\""));
	assert_true(shows("caf\xc3\xa9", "\"caf\xc3\xa9\""));
	assert_false(shows("A", "\"a\""));
	assert_false(shows("a ", "\"a\""));
	assert_false(shows("1", "\"1.0\""));
}

TEST(encoded_text_is_decoded_before)
{
	assert_true(shows("=?base64?IGEg?=", "\" a \""));
	assert_true(shows("=?base64?Y2Fmw6k=?=", "\"caf\xc3\xa9\""));
	assert_true(shows("=?base64?"
			  "?=",
	    "\"\""));
	assert_true(shows("=?base64?NDI=?=", "42"));
	assert_false(shows("=?base64?IGEg?=", "\"a\""));
	/* Half a marker, or other letters, is plain text. */
	assert_true(shows("=?base64?IGEg", "\"=?base64?IGEg\""));
	assert_true(shows("IGEg?=", "\"IGEg?=\""));
	assert_true(shows("=?Base64?IGEg?=", "\"=?Base64?IGEg?=\""));
}

TEST(what_is_no_base64_shows_nothing)
{
	static const char *const bad[] = {
	    "=?base64?IGE?=", "=?base64?IG=g?=", "=?base64?====?=",
	    "=?base64?IG g?=", "=?base64?I-_g?=", "=?base64?IGEg\n?="};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		char *literal = xasprintf("\"%.9s\"", bad[i]);

		assert_false(shows(bad[i], "\" a \""));
		assert_false(shows(bad[i], "\"\""));
		assert_false(shows(bad[i], literal));
		free(literal);
	}
}

TEST(numbers_are_compared_as_numbers)
{
	assert_true(shows("42", "42"));
	assert_true(shows("42.0", "42"));
	assert_true(shows("4.2e1", "42"));
	assert_true(shows("42", "42.0"));
	assert_true(shows("-7", "-7"));
	assert_true(shows("9007199254740991", "9007199254740991"));
	assert_false(shows("9007199254740993", "9007199254740992"));
	assert_false(shows("042", "42"));
	assert_false(shows("0x2a", "42"));
	assert_false(shows("42 junk", "42"));
	assert_false(shows("", "0"));
	assert_false(shows("\"42\"", "42"));
}

TEST(booleans_are_words)
{
	assert_true(shows("true", "true"));
	assert_true(shows("false", "false"));
	assert_false(shows("True", "true"));
	assert_false(shows("1", "true"));
	assert_false(shows("false", "null"));
}

/* ---- what a tool asks for */

static int
collect(const char *text, struct mirror_set **out, struct err *e)
{
	json_t *schema = json_loads(text, 0, NULL);
	int rc;

	assert_non_null(schema);
	rc = mirror_set_new(schema, out, e);
	json_decref(schema);
	return rc;
}

#define MARKED(type, name)                                                     \
	"{\"type\":\"" type "\",\"x-mcp-header\":\"" name "\"}"

TEST(a_schema_without_the_keyword_asks_for_nothing)
{
	struct mirror_set *set;
	struct err e;

	assert_int_equal(
	    collect("{\"type\":\"object\",\"properties\":{\"x-mcp-header\":"
		    "{\"type\":\"string\"}}}",
		&set, &e),
	    0);
	assert_null(set);
	assert_int_equal(mirror_set_check(NULL, NULL,
			     &(struct mirror_source){NULL, NULL}, &e),
	    0);
}

TEST(a_keyword_that_clients_would_drop_the_tool_for_is_refused)
{
	static const char *const bad[] = {
	    "{\"properties\":{\"a\":" MARKED("string", "") "}}",
	    "{\"properties\":{\"a\":" MARKED("string", "a b") "}}",
	    "{\"properties\":{\"a\":" MARKED("string", "a:") "}}",
	    "{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":1}}}",
	    "{\"properties\":{\"a\":" MARKED("number", "A") "}}",
	    "{\"properties\":{\"a\":" MARKED("object", "A") "}}",
	    "{\"properties\":{\"a\":{\"x-mcp-header\":\"A\"}}}",
	    "{\"properties\":{\"a\":" MARKED("string", "A") ",\"b\":" MARKED(
		"string", "a") "}}",
	    "{\"properties\":{\"a\":{\"items\":" MARKED("string", "A") "}}}",
	    "{\"anyOf\":[" MARKED("string", "A") "]}",
	    "{\"properties\":{\"a\":{\"anyOf\":[{\"properties\":{\"b\":" MARKED(
		"string", "A") "}}]}}}"};
	struct mirror_set *set;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(collect(bad[i], &set, &e), ERR_INVAL);
		assert_null(set);
		assert_non_null(strstr(e.msg, "x-mcp-header"));
	}
}

/* What a request has. */
static const char *lines[8][2];

static const char *
find_cb(void *handle, const char *name, unsigned int *n)
{
	const char *first = NULL;

	(void)handle;
	*n = 0;
	for (size_t i = 0; lines[i][0] != NULL; i++)
		if (strcasecmp(lines[i][0], name) == 0 && (*n)++ == 0)
			first = lines[i][1];
	return first;
}

/* name, value NULL: no line. */
static void
expect(const char *arguments, const char *name, const char *value, int code)
{
	static const struct mirror_source source = {find_cb, NULL};
	struct mirror_set *set;
	json_t *a = json_loads(arguments, 0, NULL);
	struct err e;

	assert_int_equal(collect("{\"properties\":{\"n\":" MARKED("integer",
				     "N") ",\"o\":{"
					  "\"properties\":{\"s\":" MARKED(
					      "string", "Deep") "}}}}",
			     &set, &e),
	    0);
	lines[0][0] = name;
	lines[0][1] = value;
	assert_int_equal(mirror_set_check(set, a, &source, &e), code);
	if (code != 0)
		assert_non_null(strstr(e.msg, "Mcp-Param-"));
	mirror_set_free(set);
	json_decref(a);
}

TEST(each_argument_needs_its_line_and_each_line_its_argument)
{
	expect("{}", NULL, NULL, 0);
	expect("{\"n\":null,\"o\":7}", NULL, NULL, 0);
	expect("{\"n\":1}", "Mcp-Param-N", "1", 0);
	expect("{\"n\":1}", "mcp-param-n", "1.0", 0);
	expect("{\"n\":1}", NULL, NULL, ERR_INVAL);
	expect("{\"n\":1}", "Mcp-Param-N", "2", ERR_INVAL);
	expect("{}", "Mcp-Param-N", "1", ERR_INVAL);
	expect("{\"n\":null}", "Mcp-Param-N", "null", ERR_INVAL);
	expect("{\"o\":{\"s\":\"x\"}}", "Mcp-Param-Deep", "x", 0);
	expect("{\"o\":{\"s\":\"x\"}}", NULL, NULL, ERR_INVAL);
	/* No line could say these; the schema refuses them. */
	expect("{\"n\":[1]}", NULL, NULL, 0);
	expect("{\"n\":{}}", "Mcp-Param-N", "1", 0);
}

TEST(a_request_without_lines_shows_nothing)
{
	struct mirror_set *set;
	json_t *a = json_loads("{\"n\":1}", 0, NULL);
	struct err e;

	assert_int_equal(
	    collect("{\"properties\":{\"n\":" MARKED("integer", "N") "}}", &set,
		&e),
	    0);
	assert_int_equal(
	    mirror_set_check(set, a, &(struct mirror_source){NULL, NULL}, &e),
	    ERR_INVAL);
	mirror_set_free(set);
	json_decref(a);
}

TEST_MAIN(NULL, NULL)

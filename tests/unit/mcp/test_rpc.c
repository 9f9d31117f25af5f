#include <stdio.h>

#include "common/xmalloc.h"
#include "supervisor/mcp/mcp.h"
#include "supervisor/mcp/rpc.h"
#include "tests/unit/test.h"

/* Parse a copy that ends where the text ends; id NULL: none is readable. */
static void
expect_bytes(const void *p, size_t n, int code, const char *id)
{
	struct rpc_message m;
	struct err e = {0};
	void *copy = xmemdup(p, n);

	assert_int_equal(rpc_parse(copy, n, &m, &e), code);
	if (code != 0) {
		assert_int_equal(e.code, code);
		assert_true(e.msg[0] != '\0');
	}
	if (id == NULL)
		assert_null(m.id);
	else
		assert_string_equal(m.id, id);
	rpc_clear(&m);
	free(copy);
}

static void
expect(const char *text, int code, const char *id)
{
	expect_bytes(text, strlen(text), code, id);
}

#define PING(id) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"ping\"}"

TEST(ids_come_back_as_they_were_written)
{
	expect(PING("1"), 0, "1");
	expect(PING("-7"), 0, "-7");
	expect(PING("9007199254740993"), 0, "9007199254740993");
	expect(PING("9223372036854775807"), 0, "9223372036854775807");
	expect(PING("-9223372036854775808"), 0, "-9223372036854775808");
	expect(PING("\"a\\\"b\""), 0, "\"a\\\"b\"");
	expect(PING("\"\""), 0, "\"\"");
	expect(PING("\"1\""), 0, "\"1\"");
}

TEST(a_byte_order_mark_before_the_message_is_skipped)
{
	expect("\xef\xbb\xbf" PING("1"), 0, "1");
	expect("\xef\xbb\xbf", MCP_PARSE_ERROR, NULL);
	expect("\xef\xbb" PING("1"), MCP_PARSE_ERROR, NULL);
}

TEST(integers_beyond_64_bits_are_refused)
{
	static const char huge[] = PING("123456789012345678901");
	struct rpc_message m;
	struct err e;

	expect(PING("9223372036854775808"), MCP_INVALID_REQUEST, NULL);
	expect(PING("-9223372036854775809"), MCP_INVALID_REQUEST, NULL);
	assert_int_equal(
	    rpc_parse(huge, strlen(huge), &m, &e), MCP_INVALID_REQUEST);
	assert_non_null(strstr(e.msg, "64 bits"));
	rpc_clear(&m);
}

TEST(a_body_of_too_many_values_is_refused)
{
	static char text[2 * RPC_VALUES_MAX + 3];
	struct rpc_message m;
	struct err e;

	memset(text, ',', sizeof(text) - 1);
	text[0] = '[';
	for (size_t i = 1; i < sizeof(text) - 1; i += 2)
		text[i] = '0';
	text[sizeof(text) - 2] = ']';
	assert_int_equal(
	    rpc_parse(text, sizeof(text) - 1, &m, &e), MCP_INVALID_REQUEST);
	assert_non_null(strstr(e.msg, "values"));
	rpc_clear(&m);
	/* In a string they are none. */
	text[0] = text[sizeof(text) - 2] = '"';
	assert_int_equal(
	    rpc_parse(text, sizeof(text) - 1, &m, &e), MCP_INVALID_REQUEST);
	assert_non_null(strstr(e.msg, "object"));
	rpc_clear(&m);
}

TEST(ids_that_are_no_string_or_integer_are_refused)
{
	expect(PING("null"), MCP_INVALID_REQUEST, NULL);
	expect(PING("1.5"), MCP_INVALID_REQUEST, NULL);
	expect(PING("1.0"), MCP_INVALID_REQUEST, NULL);
	expect(PING("true"), MCP_INVALID_REQUEST, NULL);
	expect(PING("[1]"), MCP_INVALID_REQUEST, NULL);
	expect(PING("{}"), MCP_INVALID_REQUEST, NULL);
}

TEST(ids_are_bounded)
{
	char id[RPC_STRING_MAX + 8], text[RPC_STRING_MAX + 100];

	for (int n = RPC_STRING_MAX; n <= RPC_STRING_MAX + 1; n++) {
		memset(id, 'x', sizeof(id));
		id[0] = '"';
		id[n + 1] = '"';
		id[n + 2] = '\0';
		(void)snprintf(text, sizeof(text), PING("%s"), id);
		if (n == RPC_STRING_MAX)
			expect(text, 0, id);
		else
			expect(text, MCP_INVALID_REQUEST, NULL);
	}
}

TEST(what_is_not_json_is_a_parse_error)
{
	expect("{\"jsonrpc\":", MCP_PARSE_ERROR, NULL);
	expect("", MCP_PARSE_ERROR, NULL);
	expect_bytes("\x7b\x22\xff\xfe\x22\x7d", 6, MCP_PARSE_ERROR, NULL);
	expect("{} x", MCP_PARSE_ERROR, NULL);
	expect("nonsense", MCP_PARSE_ERROR, NULL);
	expect("{\"id\":1,\"id\":2}", MCP_PARSE_ERROR, NULL);
	expect_bytes("\0", 1, MCP_PARSE_ERROR, NULL);
}

TEST(json_that_is_no_message_is_an_invalid_request)
{
	expect("\"text\"", MCP_INVALID_REQUEST, NULL);
	expect("17", MCP_INVALID_REQUEST, NULL);
	expect("null", MCP_INVALID_REQUEST, NULL);
	expect("{}", MCP_INVALID_REQUEST, NULL);
	expect("[]", MCP_INVALID_REQUEST, NULL);
	expect("[" PING("1") ",7]", MCP_INVALID_REQUEST, NULL);
	expect("{\"jsonrpc\":\"2.0\",\"id\":1}", MCP_INVALID_REQUEST, "1");
	expect("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
	    MCP_INVALID_REQUEST, "1");
	expect(
	    "{\"id\":\"a\",\"method\":\"ping\"}", MCP_INVALID_REQUEST, "\"a\"");
	expect("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}",
	    MCP_INVALID_REQUEST, "1");
	expect("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\\u0000ng\"}",
	    MCP_INVALID_REQUEST, "1");
}

TEST(a_batch_is_read_message_by_message)
{
	static const char text[] =
	    "[" PING("1") ",{\"jsonrpc\":\"2.0\",\"id\":1.5,"
			  "\"method\":\"ping\"}]";
	struct rpc_message all, one;
	struct err e;

	assert_int_equal(rpc_parse(text, strlen(text), &all, &e), 0);
	assert_int_equal(all.kind, RPC_BATCH);
	assert_null(all.method);
	assert_int_equal(rpc_read(json_array_get(all.root, 0), &one, &e), 0);
	assert_int_equal(one.kind, RPC_REQUEST);
	assert_string_equal(one.id, "1");
	rpc_clear(&one);
	assert_int_equal(rpc_read(json_array_get(all.root, 1), &one, &e),
	    MCP_INVALID_REQUEST);
	rpc_clear(&one);
	rpc_clear(&all);
}

static int
parse_batch(int n, struct err *e)
{
	char *text = xmalloc((size_t)n * 3 + 2);
	struct rpc_message all;
	char *p = text;
	int rc;

	for (int i = 0; i < n; i++)
		p = stpcpy(p, i == 0 ? "[{}" : ",{}");
	memcpy(p, "]", 2);
	rc = rpc_parse(text, strlen(text), &all, e);
	rpc_clear(&all);
	free(text);
	return rc;
}

TEST(a_batch_is_bounded)
{
	struct err e;

	assert_int_equal(parse_batch(RPC_BATCH_MAX, &e), 0);
	assert_int_equal(
	    parse_batch(RPC_BATCH_MAX + 1, &e), MCP_INVALID_REQUEST);
	assert_int_equal(parse_batch(10000, &e), MCP_INVALID_REQUEST);
	assert_string_equal(
	    e.msg, "a batch of 10000 messages: send at most 100 at once");
}

TEST(deep_nesting_is_refused_before_the_parser_sees_it)
{
	size_t n = 100000;
	char *text = xmalloc(n);

	memset(text, '[', n);
	expect_bytes(text, n, MCP_INVALID_REQUEST, NULL);
	free(text);
}

TEST(the_kind_is_told_by_method_and_id)
{
	static const struct {
		const char *text;
		enum rpc_kind kind;
	} want[] = {{PING("1"), RPC_REQUEST},
	    {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}",
		RPC_NOTIFICATION},
	    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", RPC_RESPONSE},
	    {"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"error\":{\"code\":1}}",
		RPC_RESPONSE},
	    {"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1}}",
		RPC_RESPONSE}};
	struct rpc_message m;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		assert_int_equal(
		    rpc_parse(want[i].text, strlen(want[i].text), &m, &e), 0);
		assert_int_equal(m.kind, want[i].kind);
		rpc_clear(&m);
	}
}

TEST(half_a_response_is_refused_without_its_id)
{
	expect(
	    "{\"jsonrpc\":\"2.0\",\"result\":{}}", MCP_INVALID_REQUEST, NULL);
	expect("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}",
	    MCP_INVALID_REQUEST, NULL);
	expect("{\"id\":1,\"result\":{}}", MCP_INVALID_REQUEST, NULL);
}

#define WITH_TOKEN(token)                                                      \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{"          \
	"\"_meta\":{\"progressToken\":" token "}}}"

static void
expect_token(const char *token, const char *want)
{
	struct rpc_message m;
	struct err e;
	char text[200];

	(void)snprintf(text, sizeof(text), WITH_TOKEN("%s"), token);
	assert_int_equal(rpc_parse(text, strlen(text), &m, &e), 0);
	if (want == NULL)
		assert_null(m.progress_token);
	else
		assert_string_equal(m.progress_token, want);
	rpc_clear(&m);
}

TEST(tokens_are_strings_or_integers_as_ids_are)
{
	expect_token("7", "7");
	expect_token("-1", "-1");
	expect_token("\"t\"", "\"t\"");
	expect_token("null", NULL); /* some clients write all members */
	expect(WITH_TOKEN("1.5"), MCP_INVALID_REQUEST, "1");
	expect(WITH_TOKEN("true"), MCP_INVALID_REQUEST, "1");
	expect(WITH_TOKEN("[]"), MCP_INVALID_REQUEST, "1");
}

TEST(a_request_id_that_names_nothing_is_left_out)
{
	static const struct {
		const char *id, *want;
	} table[] = {{"12", "12"}, {"\"a\"", "\"a\""}, {"1.5", NULL},
	    {"null", NULL}, {"{}", NULL}};
	struct rpc_message m;
	struct err e;
	char text[200];

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		(void)snprintf(text, sizeof(text),
		    "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{"
		    "\"requestId\":%s}}",
		    table[i].id);
		assert_int_equal(rpc_parse(text, strlen(text), &m, &e), 0);
		if (table[i].want == NULL)
			assert_null(m.request_id);
		else
			assert_string_equal(m.request_id, table[i].want);
		rpc_clear(&m);
	}
}

TEST(envelopes_are_written_with_the_id_as_it_is)
{
	json_t *data = json_pack("{s:s}", "name", "x");
	char *text = rpc_result("9007199254740993", "{\"a\":1}");

	assert_string_equal(text,
	    "{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,"
	    "\"result\":{\"a\":1}}");
	free(text);
	text = rpc_error("\"q\"", -32602, "a \"b\"\n", data);
	assert_string_equal(text,
	    "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"error\":{\"code\":-32602,"
	    "\"message\":\"a \\\"b\\\"\\n\",\"data\":{\"name\":\"x\"}}}");
	free(text);
	text = rpc_error(NULL, -32700, "cut \xc3", NULL);
	assert_string_equal(text,
	    "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,"
	    "\"message\":\"cut \xef\xbf\xbd\"}}");
	free(text);
	text = rpc_notification("notifications/progress", "{}");
	assert_string_equal(text,
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
	    "\"params\":{}}");
	free(text);
	json_decref(data);
}

TEST_MAIN(NULL, NULL)

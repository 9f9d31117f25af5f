#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "common/xmalloc.h"
#include "supervisor/mcp/mcp.h"
#include "supervisor/mcp/rpc.h"

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

static void
test_ids_come_back_as_they_were_written(void **state)
{
	(void)state;
	expect(PING("1"), 0, "1");
	expect(PING("-7"), 0, "-7");
	expect(PING("9007199254740993"), 0, "9007199254740993");
	expect(PING("9223372036854775808"), 0, "9223372036854775808");
	expect(PING("123456789012345678901234567890123456789"), 0,
	    "123456789012345678901234567890123456789");
	expect(PING("\"a\\\"b\""), 0, "\"a\\\"b\"");
	expect(PING("\"\""), 0, "\"\"");
	expect(PING("\"1\""), 0, "\"1\"");
	expect("{\"jsonrpc\":\"2.0\",\"\\u0069d\":9007199254740993,"
	       "\"method\":\"ping\"}",
	    0, "9007199254740993");
}

static void
test_ids_that_are_no_string_or_integer_are_refused(void **state)
{
	(void)state;
	expect(PING("null"), MCP_INVALID_REQUEST, NULL);
	expect(PING("1.5"), MCP_INVALID_REQUEST, NULL);
	expect(PING("1.0"), MCP_INVALID_REQUEST, NULL);
	expect(PING("true"), MCP_INVALID_REQUEST, NULL);
	expect(PING("[1]"), MCP_INVALID_REQUEST, NULL);
	expect(PING("{}"), MCP_INVALID_REQUEST, NULL);
}

/* A ping whose id is n times c, between quotes or not. */
static void
expect_long(char c, size_t n, const char *quote, int code)
{
	char id[RPC_STRING_MAX + 8], full[RPC_STRING_MAX + 16];
	char text[RPC_STRING_MAX + 100];

	memset(id, c, n);
	id[n] = '\0';
	(void)snprintf(full, sizeof(full), "%s%s%s", quote, id, quote);
	(void)snprintf(text, sizeof(text), PING("%s"), full);
	expect(text, code, code == 0 ? full : NULL);
}

static void
test_ids_are_bounded(void **state)
{
	(void)state;
	expect_long('x', RPC_STRING_MAX, "\"", 0);
	expect_long('x', RPC_STRING_MAX + 1, "\"", MCP_INVALID_REQUEST);
	expect_long('9', RPC_NUMBER_MAX, "", 0);
	expect_long('9', RPC_NUMBER_MAX + 1, "", MCP_PARSE_ERROR);
}

static void
test_what_is_not_json_is_a_parse_error(void **state)
{
	(void)state;
	expect("{\"jsonrpc\":", MCP_PARSE_ERROR, NULL);
	expect("", MCP_PARSE_ERROR, NULL);
	expect_bytes("\x7b\x22\xff\xfe\x22\x7d", 6, MCP_PARSE_ERROR, NULL);
	expect("{} x", MCP_PARSE_ERROR, NULL);
	expect("nonsense", MCP_PARSE_ERROR, NULL);
	expect("{\"id\":1,\"id\":2}", MCP_PARSE_ERROR, NULL);
	expect_bytes("\0", 1, MCP_PARSE_ERROR, NULL);
}

static void
test_json_that_is_no_message_is_an_invalid_request(void **state)
{
	(void)state;
	expect("\"text\"", MCP_INVALID_REQUEST, NULL);
	expect("17", MCP_INVALID_REQUEST, NULL);
	expect("null", MCP_INVALID_REQUEST, NULL);
	expect("{}", MCP_INVALID_REQUEST, NULL);
	expect("[]", MCP_INVALID_REQUEST, NULL);
	expect("[" PING("1") "]", MCP_INVALID_REQUEST, NULL);
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

static void
test_deep_nesting_is_refused_before_the_parser_sees_it(void **state)
{
	size_t n = 100000;
	char *text = xmalloc(n);

	(void)state;
	memset(text, '[', n);
	expect_bytes(text, n, MCP_INVALID_REQUEST, NULL);
	free(text);
}

static void
test_the_kind_is_told_by_method_and_id(void **state)
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

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		assert_int_equal(
		    rpc_parse(want[i].text, strlen(want[i].text), &m, &e), 0);
		assert_int_equal(m.kind, want[i].kind);
		rpc_clear(&m);
	}
}

static void
test_half_a_response_is_refused_without_its_id(void **state)
{
	(void)state;
	expect(
	    "{\"jsonrpc\":\"2.0\",\"result\":{}}", MCP_INVALID_REQUEST, NULL);
	expect("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}",
	    MCP_INVALID_REQUEST, NULL);
	expect("{\"id\":1,\"result\":{}}", MCP_INVALID_REQUEST, NULL);
}

static void
test_tokens_and_request_ids_keep_their_text(void **state)
{
	static const char text[] =
	    "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{"
	    "\"requestId\":99999999999999999999,"
	    "\"_meta\":{\"progressToken\":\"t\"}}}";
	static const char bad[] =
	    "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{"
	    "\"requestId\":1.5,\"_meta\":{\"progressToken\":null}}}";
	struct rpc_message m;
	struct err e;

	(void)state;
	assert_int_equal(rpc_parse(text, strlen(text), &m, &e), 0);
	assert_string_equal(m.request_id, "99999999999999999999");
	assert_string_equal(m.progress_token, "\"t\"");
	rpc_clear(&m);
	assert_int_equal(rpc_parse(bad, strlen(bad), &m, &e), 0);
	assert_null(m.request_id);
	assert_null(m.progress_token);
	rpc_clear(&m);
}

static void
test_envelopes_are_written_with_the_id_as_it_is(void **state)
{
	json_t *data = json_pack("{s:s}", "name", "x");
	char *text = rpc_result("9007199254740993", "{\"a\":1}");

	(void)state;
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ids_come_back_as_they_were_written),
	    cmocka_unit_test(
		test_ids_that_are_no_string_or_integer_are_refused),
	    cmocka_unit_test(test_ids_are_bounded),
	    cmocka_unit_test(test_what_is_not_json_is_a_parse_error),
	    cmocka_unit_test(
		test_json_that_is_no_message_is_an_invalid_request),
	    cmocka_unit_test(
		test_deep_nesting_is_refused_before_the_parser_sees_it),
	    cmocka_unit_test(test_the_kind_is_told_by_method_and_id),
	    cmocka_unit_test(test_half_a_response_is_refused_without_its_id),
	    cmocka_unit_test(test_tokens_and_request_ids_keep_their_text),
	    cmocka_unit_test(test_envelopes_are_written_with_the_id_as_it_is),
	};

	return cmocka_run_group_tests_name("rpc", tests, NULL, NULL);
}

/* The ladder: what each kind of HTTP request is answered. */
#include "tests/unit/mcp/ladder.h"

TEST(broken_bodies_are_refused_and_the_session_goes_on)
{
	static const struct {
		const char *text;
		int code;
	} bad[] = {{"{\"jsonrpc\":", MCP_PARSE_ERROR}, {"", MCP_PARSE_ERROR},
	    {"\x7b\x22\xff\xfe\x22\x7d", MCP_PARSE_ERROR},
	    {"\"text\"", MCP_INVALID_REQUEST},
	    {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
		MCP_INVALID_REQUEST},
	    {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
		MCP_INVALID_REQUEST},
	    {"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}",
		MCP_INVALID_REQUEST},
	    {"{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"ping\"}",
		MCP_INVALID_REQUEST}};
	char *s = fake_session(*state);
	struct fake_client c = fake_client(s);

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		fake_ask(*state, &c, bad[i].text, 400, bad[i].code);
	fake_ask(*state, &c, PING, 200, 0);
	free(s);
}

TEST(a_huge_id_is_echoed_as_it_is)
{
	char *s = fake_session(*state);
	struct fake_client c = fake_client(s);
	struct fake_answer a;

	fake_post(*state, &c,
	    "{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,"
	    "\"method\":\"ping\"}",
	    &a);
	assert_string_equal(a.body,
	    "{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,\"result\":{}}");
	fake_clear(&a);
	free(s);
}

TEST(deep_nesting_is_refused)
{
	char *s = fake_session(*state), *deep = xmalloc(100000);
	struct fake_client c = fake_client(s);
	struct fake_answer a;

	memset(deep, '[', 100000);
	fake_http(*state, "POST", &c, deep, 100000, &a);
	fake_expect(&a, 400, MCP_INVALID_REQUEST);
	fake_clear(&a);
	free(deep);
	free(s);
}

TEST(a_body_over_the_limit_is_413_and_one_at_it_is_read)
{
	char *s = fake_session(*state), *body = xmalloc(FAKE_BODY_MAX + 1);
	struct fake_client c = fake_client(s);
	struct fake_answer a;

	memset(body, ' ', FAKE_BODY_MAX + 1);
	memcpy(body, PING, strlen(PING));
	fake_http(*state, "POST", &c, body, FAKE_BODY_MAX + 1, &a);
	fake_expect(&a, 413, MCP_SERVER_ERROR);
	fake_clear(&a);
	fake_http(*state, "POST", &c, body, FAKE_BODY_MAX, &a);
	fake_expect(&a, 200, 0);
	fake_clear(&a);
	free(body);
	free(s);
}

TEST(media_types_are_checked_leniently)
{
	struct fake_client c = fake_client(NULL);
	static const char init[] = FAKE_INITIALIZE("2025-11-25");

	c.content_type = "text/plain";
	fake_ask(*state, &c, init, 415, MCP_SERVER_ERROR);
	c.content_type = NULL;
	fake_ask(*state, &c, init, 415, MCP_SERVER_ERROR);
	c.content_type = "Application/JSON; charset=utf-8";
	fake_ask(*state, &c, init, 200, 0);
	c.accept = "text/html";
	fake_ask(*state, &c, init, 406, MCP_SERVER_ERROR);
	c.accept = "*/*";
	fake_ask(*state, &c, init, 200, 0);
	c.accept = "application/json";
	fake_ask(*state, &c, init, 200, 0);
	c.accept = NULL;
	fake_ask(*state, &c, init, 200, 0);
}

TEST(a_client_that_takes_only_streams_gets_one)
{
	struct fake_client c = fake_client(NULL);
	struct fake_answer a;

	c.accept = "text/event-stream";
	fake_post(*state, &c, FAKE_INITIALIZE("2025-11-25"), &a);
	assert_int_equal(a.replies, 0);
	assert_int_equal(a.starts, 1);
	assert_int_equal(a.ends, 1);
	assert_non_null(a.session);
	assert_int_equal(a.nevents, 1);
	fake_expect_has(a.event[0], "\"protocolVersion\":\"2025-11-25\"");
	fake_clear(&a);
}

TEST(an_http_error_is_json_also_for_a_stream_client)
{
	struct fake_client c = fake_client(NULL);

	c.accept = "text/event-stream";
	fake_ask(*state, &c, PING, 400, MCP_SERVER_ERROR);
}

TEST(get_finds_no_stream_without_a_session_that_takes_one)
{
	char *s = fake_session(*state);
	struct fake_client c = fake_client(NULL);
	struct fake_answer a;

	c.content_type = NULL;
	fake_http(*state, "GET", &c, NULL, 0, &a);
	fake_expect(&a, 405, MCP_SERVER_ERROR);
	fake_clear(&a);
	c.session = s;
	c.accept = "application/json";
	fake_http(*state, "GET", &c, NULL, 0, &a);
	fake_expect(&a, 405, MCP_SERVER_ERROR);
	fake_clear(&a);
	c.version = "1999-01-01";
	fake_http(*state, "GET", &c, NULL, 0, &a);
	fake_expect(&a, 400, MCP_SERVER_ERROR);
	fake_clear(&a);
	c.version = "2026-07-28";
	fake_http(*state, "GET", &c, NULL, 0, &a);
	fake_expect(&a, 405, MCP_SERVER_ERROR);
	fake_clear(&a);
	fake_http(*state, "PATCH", &c, NULL, 0, &a);
	fake_expect(&a, 405, MCP_SERVER_ERROR);
	fake_clear(&a);
	free(s);
}

TEST(delete_ends_a_session_for_good)
{
	static const char *const methods[] = {"DELETE", "POST", "GET"};
	char *s = fake_session(*state), *other = fake_session(*state);
	struct fake_client c = fake_client(s);
	struct fake_answer a;

	fake_http(*state, "DELETE", &c, NULL, 0, &a);
	assert_int_equal(a.status, 204);
	assert_null(a.body);
	fake_clear(&a);
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		fake_http(*state, methods[i], &c, PING, strlen(PING), &a);
		fake_expect(&a, 404, MCP_SESSION_NOT_FOUND);
		fake_clear(&a);
	}
	c.session = other;
	fake_ask(*state, &c, PING, 200, 0);
	c.session = NULL;
	fake_http(*state, "DELETE", &c, NULL, 0, &a);
	fake_expect(&a, 400, MCP_SERVER_ERROR);
	fake_clear(&a);
	free(other);
	free(s);
}

TEST(notifications_and_responses_are_accepted_without_a_body)
{
	static const char *const texts[] = {NOTIFY,
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/unheard-of\"}",
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}",
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
	    "\"params\":{\"requestId\":99}}",
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
	    "\"params\":[1]}",
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
	    "{\"jsonrpc\":\"2.0\",\"id\":\"r\",\"error\":{\"code\":-1}}",
	    "{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{"
	    "\"name\":\"echo\"}}"};
	char *s = fake_session(*state);
	struct fake_client c = fake_client(s);
	struct fake_answer a;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		fake_post(*state, &c, texts[i], &a);
		assert_int_equal(a.replies, 1);
		assert_int_equal(a.status, 202);
		assert_null(a.body);
		fake_clear(&a);
	}
	assert_int_equal(fake_called, 0);
	free(s);
}

TEST(unknown_methods_are_an_error_at_200)
{
	static const char *const names[] = {"resources/list", "Ping",
	    "notifications/initialized", "server/discover", ""};
	char *s = fake_session(*state);
	struct fake_client c = fake_client(s);
	char text[120];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		(void)snprintf(text, sizeof(text),
		    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\"}",
		    names[i]);
		fake_ask(*state, &c, text, 200, MCP_METHOD_NOT_FOUND);
	}
	free(s);
}

TEST(tools_are_listed_on_one_page)
{
	char *s = fake_session(*state);
	struct fake_client c = fake_client(s);
	struct fake_answer a;
	json_t *tools;

	fake_post(*state, &c, LIST, &a);
	fake_expect(&a, 200, 0);
	tools = json_object_get(json_object_get(fake_seen, "result"), "tools");
	assert_int_equal(json_array_size(tools), 2);
	assert_string_equal(json_string_value(json_object_get(
				json_array_get(tools, 0), "name")),
	    "echo");
	fake_clear(&a);
	fake_ask(*state, &c,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\","
	    "\"params\":{\"cursor\":\"\"}}",
	    200, 0);
	fake_ask(*state, &c,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\","
	    "\"params\":{\"cursor\":\"2\"}}",
	    200, MCP_INVALID_PARAMS);
	fake_ask(*state, &c,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\","
	    "\"params\":{\"cursor\":2}}",
	    200, MCP_INVALID_PARAMS);
	free(s);
}

TEST(params_that_are_no_object_are_refused)
{
	static const char *const bad[] = {"[]", "7", "null", "\"x\""};
	char *s = fake_session(*state);
	struct fake_client c = fake_client(s);
	char text[200];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		(void)snprintf(text, sizeof(text),
		    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
		    "\"params\":%s}",
		    bad[i]);
		fake_ask(*state, &c, text, 200, MCP_INVALID_PARAMS);
		(void)snprintf(text, sizeof(text), CALL("echo", "%s"), bad[i]);
		fake_ask(*state, &c, text, 200, MCP_INVALID_PARAMS);
	}
	fake_ask(*state, &c,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
	    "\"params\":{\"name\":7}}",
	    200, MCP_INVALID_PARAMS);
	assert_int_equal(fake_called, 0);
	free(s);
}

TEST(an_unknown_tool_is_named_in_the_error)
{
	char *s = fake_session(*state);
	struct fake_client c = fake_client(s);
	struct fake_answer a;

	fake_post(*state, &c, CALL("nope", "{}"), &a);
	fake_expect(&a, 200, MCP_INVALID_PARAMS);
	fake_expect_has(a.body, "\"data\":{\"name\":\"nope\"}");
	fake_clear(&a);
	/* A C string would end before the NUL and be a tool. */
	fake_ask(
	    *state, &c, CALL("echo\\u0000x", "{}"), 200, MCP_INVALID_PARAMS);
	assert_int_equal(fake_called, 0);
	free(s);
}

TEST(arguments_that_do_not_fit_are_a_result_for_the_model)
{
	static const char *const init[] = {
	    FAKE_INITIALIZE("2025-06-18"), FAKE_INITIALIZE("2025-11-25")};
	struct fake_answer a;

	for (size_t i = 0; i < ARRAY_LEN(init); i++) {
		char *s = fake_session_of(*state, &fake_alice, init[i]);
		struct fake_client c = fake_client(s);

		fake_post(*state, &c, CALL("echo", "{\"n\":\"1\"}"), &a);
		assert_string_equal(a.body,
		    "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"content\":"
		    "[{\"type\":\"text\",\"text\":\"invalid_arguments: "
		    "argument "
		    "n: want an integer, got a string\"}],\"isError\":true}}");
		fake_clear(&a);
		fake_post(*state, &c, CALL("echo", "{\"x\":1}"), &a);
		fake_expect_has(a.body, "unknown argument x; known: n, s");
		fake_clear(&a);
		free(s);
	}
	assert_int_equal(fake_called, 0);
}

TEST(missing_arguments_are_an_empty_object)
{
	char *s = fake_session(*state);
	struct fake_client c = fake_client(s);

	fake_ask(*state, &c,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
	    "\"params\":{\"name\":\"echo\"}}",
	    200, 0);
	assert_int_equal(fake_called, 1);
	assert_true(json_is_object(fake_arguments));
	assert_int_equal(json_object_size(fake_arguments), 0);
	free(s);
}

TEST_MAIN(setup, teardown)

/* MCP 2026-07-28: each check of a request's envelope, and what results get. */
#include "supervisor/mcp/offer.h"
#include "tests/unit/mcp/ladder.h"

#define CLAIM "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\""
#define CAN "\"io.modelcontextprotocol/clientCapabilities\":{}"
#define LISTING(meta)                                                          \
	"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\",\"params\":{" \
	"\"_meta\":{" meta "}}}"

/* Refused with 400 and this code, under its id. */
static void
expect_refused(struct mcp *m, const struct fake_client *c, const char *body,
    int status, int code)
{
	struct fake_answer a;

	fake_post(m, c, body, &a);
	fake_expect(&a, status, code);
	assert_int_equal(
	    json_integer_value(json_object_get(fake_seen, "id")), 7);
	fake_clear(&a);
}

TEST(a_request_needs_no_session)
{
	struct fake_client c = fake_modern("tools/list", NULL);
	struct fake_answer a;
	const json_t *result;

	fake_post(*state, &c, MODERN("tools/list", ""), &a);
	fake_expect(&a, 200, 0);
	assert_null(a.session);
	result = json_object_get(fake_seen, "result");
	assert_int_equal(json_array_size(json_object_get(result, "tools")), 2);
	fake_clear(&a);
}

/* They belong to another revision. */
TEST(a_session_and_an_event_id_are_ignored)
{
	char *s = fake_session(*state);
	const char *const sessions[] = {s, "made-up"};
	struct fake_client c = fake_modern("tools/list", NULL);

	for (size_t i = 0; i < ARRAY_LEN(sessions); i++) {
		c.session = sessions[i];
		fake_ask(*state, &c, MODERN("tools/list", ""), 200, 0);
	}
	free(s);
}

TEST(a_claim_that_is_no_string_is_refused)
{
	struct fake_client c = fake_modern("tools/list", NULL);

	expect_refused(*state, &c,
	    LISTING("\"io.modelcontextprotocol/protocolVersion\":7," CAN), 400,
	    MCP_INVALID_PARAMS);
	expect_refused(*state, &c,
	    LISTING("\"io.modelcontextprotocol/protocolVersion\":null," CAN),
	    400, MCP_INVALID_PARAMS);
}

TEST(a_modern_header_needs_a_claim)
{
	struct fake_client c = fake_modern("tools/list", NULL);

	expect_refused(*state, &c, LISTING(CAN), 400, MCP_INVALID_PARAMS);
	expect_refused(*state, &c,
	    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\"}", 400,
	    MCP_INVALID_PARAMS);
}

TEST(an_envelope_that_is_wrong_is_refused)
{
	static const char *const bad[] = {LISTING(CLAIM),
	    LISTING(
		CLAIM ",\"io.modelcontextprotocol/clientCapabilities\":null"),
	    LISTING(CLAIM ",\"io.modelcontextprotocol/clientCapabilities\":[]"),
	    LISTING(
		CLAIM "," CAN ",\"io.modelcontextprotocol/clientInfo\":\"x\""),
	    LISTING(
		CLAIM "," CAN ",\"io.modelcontextprotocol/logLevel\":\"loud\""),
	    LISTING(CLAIM "," CAN ",\"io.modelcontextprotocol/logLevel\":3")};
	struct fake_client c = fake_modern("tools/list", NULL);

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		expect_refused(*state, &c, bad[i], 400, MCP_INVALID_PARAMS);
	fake_ask(*state, &c,
	    LISTING(CLAIM "," CAN ",\"io.modelcontextprotocol/clientInfo\":{},"
			  "\"io.modelcontextprotocol/logLevel\":\"info\""),
	    200, 0);
}

/* Also when nothing else of the envelope is there. */
TEST(a_revision_that_is_not_served_is_told_which_are)
{
	static const char *const dates[] = {
	    "2027-01-01", "2025-11-25", "2024-11-05", "", "x"};
	struct fake_client c = fake_client(NULL);
	struct fake_answer a;
	char text[300];

	for (size_t i = 0; i < ARRAY_LEN(dates); i++) {
		(void)snprintf(text, sizeof(text),
		    LISTING(
			"\"io.modelcontextprotocol/protocolVersion\":\"%s\""),
		    dates[i]);
		fake_post(*state, &c, text, &a);
		fake_expect(&a, 400, MCP_VERSION_UNSUPPORTED);
		(void)snprintf(text, sizeof(text),
		    "\"data\":{\"supported\":[\"2026-07-28\"],\"requested\":"
		    "\"%s\"}",
		    dates[i]);
		fake_expect_has(a.body, text);
		fake_expect_has(a.body, "\"id\":7");
		fake_clear(&a);
	}
}

TEST(a_header_that_disagrees_with_the_body_is_refused)
{
	struct fake_client c = fake_modern("tools/list", NULL);

	c.version = "2025-11-25";
	expect_refused(
	    *state, &c, MODERN("tools/list", ""), 400, MCP_HEADER_MISMATCH);
	/* Before it is asked whether what the body claims is served. */
	expect_refused(*state, &c,
	    LISTING("\"io.modelcontextprotocol/protocolVersion\":"
		    "\"2027-01-01\""),
	    400, MCP_HEADER_MISMATCH);
	c = fake_modern("Tools/list", NULL);
	expect_refused(
	    *state, &c, MODERN("tools/list", ""), 400, MCP_HEADER_MISMATCH);
	/* Whether or not there is such a method. */
	expect_refused(
	    *state, &c, MODERN("ping", ""), 400, MCP_HEADER_MISMATCH);
}

TEST(a_header_that_is_missing_is_refused)
{
	struct fake_client c = fake_modern("tools/list", NULL);

	c.version = NULL;
	expect_refused(
	    *state, &c, MODERN("tools/list", ""), 400, MCP_HEADER_MISMATCH);
	c = fake_modern(NULL, NULL);
	expect_refused(
	    *state, &c, MODERN("tools/list", ""), 400, MCP_HEADER_MISMATCH);
}

TEST(methods_of_other_revisions_are_not_found)
{
	static const struct {
		const char *method, *text;
	} gone[] = {{"initialize", MODERN("initialize", "")},
	    {"ping", MODERN("ping", "")},
	    {"logging/setLevel", MODERN("logging/setLevel", "")},
	    {"resources/subscribe", MODERN("resources/subscribe", "")},
	    {"resources/unsubscribe", MODERN("resources/unsubscribe", "")},
	    {"tasks/list", MODERN("tasks/list", "")},
	    {"tasks/result", MODERN("tasks/result", "")},
	    {"notifications/cancelled", MODERN("notifications/cancelled", "")},
	    {"no/such", MODERN("no/such", "")}};

	for (size_t i = 0; i < ARRAY_LEN(gone); i++) {
		struct fake_client c = fake_modern(gone[i].method, NULL);

		expect_refused(
		    *state, &c, gone[i].text, 404, MCP_METHOD_NOT_FOUND);
	}
}

TEST(discover_says_what_is_served_and_for_how_long)
{
	struct fake_client c = fake_modern("server/discover", NULL);
	struct fake_answer a;

	fake_post(*state, &c, MODERN("server/discover", ""), &a);
	fake_expect(&a, 200, 0);
	assert_string_equal(a.body,
	    "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"supportedVersions\":"
	    "[\"2026-07-28\"],\"capabilities\":{\"tools\":{},\"logging\":{}},"
	    "\"instructions\":"
	    "\"Be kind\",\"resultType\":\"complete\",\"ttlMs\":60000,"
	    "\"cacheScope\":\"public\",\"_meta\":{"
	    "\"io.modelcontextprotocol/serverInfo\":{\"name\":\"test\","
	    "\"title\":\"A test\",\"version\":\"1\"}}}}");
	fake_clear(&a);
	c = fake_client(NULL);
	c.session = fake_session(*state);
	fake_ask(*state, &c,
	    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"server/discover\"}",
	    200, MCP_METHOD_NOT_FOUND);
	free((char *)(uintptr_t)c.session);
}

#define SERVER_INFO                                                            \
	"\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{\"name\":"         \
	"\"test\",\"title\":\"A test\",\"version\":\"1\"}}"

TEST(results_have_their_kind_and_their_server)
{
	struct fake_client c = fake_modern("tools/call", "echo");
	struct fake_answer a;

	fake_post(*state, &c, MODERN_CALL("echo", "{\"n\":1}"), &a);
	assert_string_equal(a.body,
	    "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"content\":[{\"type\":"
	    "\"text\",\"text\":\"echoed\"}],\"structuredContent\":{\"n\":1},"
	    "\"isError\":false,\"resultType\":\"complete\"," SERVER_INFO "}}");
	fake_clear(&a);
	/* What does not fit is one, too. */
	fake_post(*state, &c, MODERN_CALL("echo", "{\"n\":\"x\"}"), &a);
	fake_expect(&a, 200, 0);
	fake_expect_has(a.body, "\"isError\":true,\"resultType\":\"complete\"");
	fake_clear(&a);
	c = fake_modern("tools/list", NULL);
	fake_post(*state, &c, MODERN("tools/list", ""), &a);
	fake_expect_has(a.body,
	    "\"result\":{\"resultType\":\"complete\",\"ttlMs\":60000,"
	    "\"cacheScope\":\"public\"," SERVER_INFO ",\"tools\":[");
	fake_clear(&a);
}

TEST(mcp_name_repeats_the_name)
{
	static const char *const good[] = {"echo", "=?base64?ZWNobw==?="};
	static const char *const bad[] = {NULL, "slow", "Echo", "",
	    "=?base64?ZWNob?=", "=?base64?ZWNo!w==?=", "=?BASE64?ZWNobw==?=",
	    "=?base64?ZWNobw==", "ZWNobw==", "=?base64?c2xvdw==?="};
	struct fake_client c = fake_modern("tools/call", NULL);

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		c.name = good[i];
		fake_ask(*state, &c, MODERN_CALL("echo", "{}"), 200, 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		c.name = bad[i];
		expect_refused(*state, &c, MODERN_CALL("echo", "{}"), 400,
		    MCP_HEADER_MISMATCH);
	}
	assert_int_equal(fake_called, ARRAY_LEN(good));
}

/* Before the header is looked at. */
TEST(params_of_a_wrong_shape_are_the_methods_to_refuse)
{
	struct fake_client c = fake_modern("tools/call", NULL);

	expect_refused(
	    *state, &c, MODERN("tools/call", ""), 200, MCP_INVALID_PARAMS);
	expect_refused(*state, &c, MODERN("tools/call", "\"name\":7,"), 200,
	    MCP_INVALID_PARAMS);
	expect_refused(
	    *state, &c, MODERN_CALL("echo", "[]"), 200, MCP_INVALID_PARAMS);
	c.name = "nope";
	expect_refused(
	    *state, &c, MODERN_CALL("nope", "{}"), 200, MCP_INVALID_PARAMS);
}

TEST(a_tools_own_headers_repeat_its_arguments)
{
	static const struct fake_line right[] = {
	    {"mcp-param-region", "eu"}, {NULL, NULL}};
	static const struct fake_line wrong[] = {
	    {"Mcp-Param-Region", "us"}, {NULL, NULL}};
	static const struct fake_line twice[] = {{"Mcp-Param-Region", "eu"},
	    {"Mcp-Param-Region", "eu"}, {NULL, NULL}};
	struct fake_client c = fake_modern("tools/call", "r");
	char *s;

	fake_add(*state,
	    "{\"name\":\"r\",\"description\":\"d\",\"inputSchema\":{\"type\":"
	    "\"object\",\"properties\":{\"region\":{\"type\":\"string\","
	    "\"x-mcp-header\":\"Region\"}}}}",
	    fake_echo_cb);
	c.lines = right;
	fake_ask(*state, &c, MODERN_CALL("r", "{\"region\":\"eu\"}"), 200, 0);
	expect_refused(
	    *state, &c, MODERN_CALL("r", "{}"), 400, MCP_HEADER_MISMATCH);
	c.lines = wrong;
	expect_refused(*state, &c, MODERN_CALL("r", "{\"region\":\"eu\"}"), 400,
	    MCP_HEADER_MISMATCH);
	c.lines = twice;
	expect_refused(*state, &c, MODERN_CALL("r", "{\"region\":\"eu\"}"), 400,
	    MCP_HEADER_MISMATCH);
	c.lines = NULL;
	expect_refused(*state, &c, MODERN_CALL("r", "{\"region\":\"eu\"}"), 400,
	    MCP_HEADER_MISMATCH);
	fake_ask(*state, &c, MODERN_CALL("r", "{}"), 200, 0);
	/* A session's client knows nothing of them. */
	s = fake_session(*state);
	c = fake_client(s);
	fake_ask(*state, &c, CALL("r", "{\"region\":\"eu\"}"), 200, 0);
	free(s);
}

TEST(notifications_are_accepted_and_do_nothing)
{
	static const char cancelled[] =
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
	    "\"params\":{\"requestId\":7," ENVELOPE "}}";
	struct fake_client call = fake_modern("tools/call", "slow");
	struct fake_client c = fake_modern("notifications/cancelled", NULL);
	struct fake_answer a, b;

	fake_post(*state, &call, MODERN_CALL("slow", "{}"), &a);
	fake_post(*state, &c, cancelled, &b);
	assert_int_equal(b.status, 202);
	assert_null(b.body);
	fake_clear(&b);
	c.method = NULL;
	fake_post(*state, &c, NOTIFY, &b);
	assert_int_equal(b.status, 202);
	fake_clear(&b);
	assert_false(mcp_call_base(fake_held[0])->canceled);
	fake_done(fake_held[0], "x", NULL);
	fake_expect(&a, 200, 0);
	fake_clear(&a);
	c.version = "2025-11-25";
	fake_ask(*state, &c, cancelled, 400, MCP_HEADER_MISMATCH);
}

TEST(a_response_is_refused)
{
	struct fake_client c = fake_modern("tools/list", NULL);
	struct fake_answer a;

	fake_post(
	    *state, &c, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}", &a);
	fake_expect(&a, 400, MCP_INVALID_REQUEST);
	assert_null(json_object_get(fake_seen, "id"));
	fake_clear(&a);
}

TEST(two_requests_of_one_id_run_at_the_same_time)
{
	struct fake_client c = fake_modern("tools/call", "slow");
	struct fake_answer a, b;

	fake_post(*state, &c, MODERN_CALL("slow", "{}"), &a);
	fake_post(*state, &c, MODERN_CALL("slow", "{}"), &b);
	assert_int_equal(fake_nheld, 2);
	fake_done(fake_held[1], "second", NULL);
	assert_null(a.body);
	fake_expect(&b, 200, 0);
	fake_done(fake_held[0], "first", NULL);
	fake_expect(&a, 200, 0);
	fake_clear(&a);
	fake_clear(&b);
}

static void
count_cancel_cb(struct call *c, void *arg)
{
	int *n = arg;

	(void)c;
	++*n;
}

/* Answered as JSON and as a stream. */
TEST(a_client_that_leaves_cancels)
{
	struct fake_client c = fake_modern("tools/call", "slow");
	struct fake_answer a;
	int canceled = 0;

	for (int i = 0; i < 2; i++) {
		fake_post(*state, &c, MODERN_CALL("slow", "{}"), &a);
		call_hold(
		    mcp_call_base(fake_held[i]), count_cancel_cb, &canceled);
		if (i == 1) {
			mcp_tick(*state, clock_mono_ms() + 5000);
			assert_int_equal(a.starts, 1);
		}
		mcp_client_gone(a.exchange);
		assert_int_equal(canceled, i + 1);
		fake_done(fake_held[i], "late", NULL);
		assert_int_equal(a.replies + a.ends + a.nevents, 0);
		fake_clear(&a);
	}
}

TEST(only_where_it_cancels_a_waiting_client_is_watched)
{
	struct fake_client c = fake_modern("tools/call", "slow");
	char *s = fake_session(*state);
	struct fake_answer a;

	fake_post(*state, &c, MODERN_CALL("slow", "{}"), &a);
	assert_int_equal(a.watches, 1);
	fake_done(fake_held[0], "x", NULL);
	fake_clear(&a);
	c.name = "echo";
	fake_post(*state, &c, MODERN_CALL("echo", "{}"), &a);
	assert_int_equal(a.watches, 0);
	fake_clear(&a);
	c = fake_client(s);
	fake_post(*state, &c, CALL("slow", "{}"), &a);
	assert_int_equal(a.watches, 0);
	fake_done(fake_held[1], "x", NULL);
	fake_clear(&a);
	free(s);
}

/* Its work goes on: the next server takes it up. */
TEST(a_server_that_ends_cancels_nothing)
{
	struct mcp *m = fake_server();
	struct fake_client c = fake_modern("tools/call", "slow");
	struct fake_answer a;

	fake_add_tools(m);
	fake_post(m, &c, MODERN_CALL("slow", "{}"), &a);
	mcp_free(m);
	assert_false(mcp_call_base(fake_held[0])->canceled);
	fake_done(fake_held[0], "late", NULL);
	fake_clear(&a);
}

TEST(the_client_is_named_in_records)
{
	struct fake_client c = fake_modern("tools/call", "slow");
	struct fake_answer a;

	fake_post(*state, &c,
	    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\","
	    "\"params\":{\"name\":\"slow\",\"_meta\":{" CLAIM "," CAN
	    ",\"io.modelcontextprotocol/clientInfo\":{\"name\":\"n\","
	    "\"version\":\"2\"}}}}",
	    &a);
	assert_string_equal(mcp_call_base(fake_held[0])->client, "n/2");
	assert_string_equal(mcp_call_base(fake_held[0])->session, "");
	fake_done(fake_held[0], "x", NULL);
	fake_clear(&a);
}

static void
needs_cb(struct mcp_call *c, json_t *arguments, void *arg)
{
	(void)arg;
	if (json_object_get(arguments, "tell") != NULL)
		fake_progress(c, 1, "m");
	mcp_call_error(c, MCP_CAPABILITY_MISSING, "you cannot",
	    json_pack("{s:{s:{}}}", "requiredCapabilities", "sampling"));
}

TEST(a_missing_capability_is_400_unless_there_is_a_stream)
{
	struct fake_client c = fake_modern("tools/call", "needs");
	struct fake_answer a;
	char *s;

	fake_add(*state,
	    "{\"name\":\"needs\",\"description\":\"d\",\"inputSchema\":"
	    "{\"type\":\"object\"}}",
	    needs_cb);
	fake_post(*state, &c, MODERN_CALL("needs", "{}"), &a);
	fake_expect(&a, 400, MCP_CAPABILITY_MISSING);
	fake_expect_has(
	    a.body, "\"data\":{\"requiredCapabilities\":{\"sampling\":{}}}");
	fake_clear(&a);
	fake_post(*state, &c,
	    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\","
	    "\"params\":{\"name\":\"needs\",\"arguments\":{\"tell\":1},"
	    "\"_meta\":{\"progressToken\":1," CLAIM "," CAN "}}}",
	    &a);
	assert_int_equal(a.replies, 0);
	assert_int_equal(a.nevents, 2);
	fake_expect_has(a.event[1], "-32021");
	fake_clear(&a);
	s = fake_session(*state);
	c = fake_client(s);
	fake_ask(*state, &c, CALL("needs", "{}"), 200, MCP_CAPABILITY_MISSING);
	free(s);
}

TEST(get_and_delete_are_not_allowed)
{
	static const char *const methods[] = {"GET", "DELETE"};
	char *s = fake_session(*state);
	struct fake_client c = fake_modern(NULL, NULL);
	struct fake_answer a;

	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		c.session = s;
		fake_http(*state, methods[i], &c, NULL, 0, &a);
		fake_expect(&a, 405, MCP_SERVER_ERROR);
		fake_clear(&a);
	}
	c = fake_client(s);
	fake_ask(*state, &c, PING, 200, 0);
	free(s);
}

TEST_MAIN(setup, teardown)

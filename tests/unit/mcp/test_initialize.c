/* Who is let in: initialize, sessions, protocol versions. */
#include "supervisor/mcp/can.h"
#include "supervisor/mcp/mcp_int.h"
#include "tests/unit/mcp/ladder.h"

TEST(initialize_answers_with_a_session)
{
	struct fake_client c = fake_client(NULL);
	struct fake_answer a;

	fake_post(*state, &c, FAKE_INITIALIZE("2025-06-18"), &a);
	assert_int_equal(a.status, 200);
	assert_non_null(a.session);
	assert_string_equal(a.body,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":"
	    "\"2025-06-18\",\"capabilities\":{\"tools\":{},\"logging\":{}},"
	    "\"serverInfo\":"
	    "{\"name\":\"test\",\"title\":\"A test\",\"version\":\"1\"},"
	    "\"instructions\":\"Be kind\"}}");
	fake_clear(&a);
}

TEST(unknown_revisions_are_answered_with_the_newest)
{
	static const char *const texts[] = {FAKE_INITIALIZE("1999-01-01"),
	    FAKE_INITIALIZE("2026-07-28"), FAKE_INITIALIZE("")};
	struct fake_client c = fake_client(NULL);
	struct fake_answer a;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		fake_post(*state, &c, texts[i], &a);
		assert_int_equal(a.status, 200);
		assert_non_null(a.session);
		fake_expect_has(a.body, "\"protocolVersion\":\"2025-11-25\"");
		fake_clear(&a);
	}
}

TEST(initialize_without_a_revision_is_bad_params_and_no_session)
{
	static const char *const params[] = {"", ",\"params\":{}",
	    ",\"params\":{\"protocolVersion\":7}", ",\"params\":[]",
	    ",\"params\":null"};
	struct fake_client c = fake_client(NULL);
	struct fake_answer a;
	char text[200];

	for (size_t i = 0; i < ARRAY_LEN(params); i++) {
		(void)snprintf(text, sizeof(text),
		    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\""
		    "%s}",
		    params[i]);
		fake_post(*state, &c, text, &a);
		fake_expect(&a, 200, MCP_INVALID_PARAMS);
		assert_null(a.session);
		fake_clear(&a);
	}
}

TEST(client_capabilities_may_be_anything)
{
	char *s = fake_session_of(*state, &fake_alice,
	    "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"initialize\","
	    "\"params\":{\"protocolVersion\":\"2025-11-25\","
	    "\"capabilities\":[7],\"clientInfo\":null}}");

	free(s);
}

TEST(a_session_says_what_its_client_can)
{
	static const char init[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\","
	    "\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":"
	    "{\"roots\":{},\"sampling\":{}}}}";
	struct mcp *m = *state;
	char *text = fake_session_of(m, &fake_alice, init);
	struct session s;

	assert_int_equal(session_open(m->sessions, text, &fake_alice,
			     clock_wall_ms() / 1000, &s),
	    0);
	assert_int_equal(s.client_can,
	    can_bit(MCP_CAN_LIST_ROOTS) | can_bit(MCP_CAN_SAMPLE));
	free(text);
}

TEST(initialize_ignores_a_legacy_version_header)
{
	struct fake_client c = fake_client(NULL);

	c.version = "1999-01-01";
	fake_ask(*state, &c, FAKE_INITIALIZE("2025-11-25"), 200, 0);
}

TEST(initialize_under_a_modern_header_is_refused_without_session)
{
	struct fake_client c = fake_client(NULL);
	struct fake_answer a;

	c.version = "2026-07-28";
	fake_post(*state, &c, FAKE_INITIALIZE("2025-11-25"), &a);
	fake_expect(&a, 400, -32020);
	assert_int_equal(
	    json_integer_value(json_object_get(fake_seen, "id")), 1);
	assert_null(a.session);
	fake_clear(&a);
}

TEST(each_revision_with_initialize_is_negotiated)
{
	static const struct {
		const char *init, *date;
		bool has_title;
	} all[] = {{FAKE_INITIALIZE("2024-11-05"), "2024-11-05", false},
	    {FAKE_INITIALIZE("2025-03-26"), "2025-03-26", false},
	    {FAKE_INITIALIZE("2025-06-18"), "2025-06-18", true},
	    {FAKE_INITIALIZE("2025-11-25"), "2025-11-25", true}};
	struct fake_client c = fake_client(NULL);
	struct fake_answer a;
	const json_t *result;

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		fake_post(*state, &c, all[i].init, &a);
		fake_expect(&a, 200, 0);
		result = json_object_get(fake_seen, "result");
		assert_string_equal(json_string_value(json_object_get(
					result, "protocolVersion")),
		    all[i].date);
		assert_true(
		    (json_object_get(json_object_get(result, "serverInfo"),
			 "title") != NULL) == all[i].has_title);
		assert_null(json_object_get(result, "resultType"));
		assert_null(json_object_get(result, "_meta"));
		fake_clear(&a);
	}
}

TEST(a_second_initialize_on_a_session_is_refused)
{
	char *s = fake_session(*state);
	struct fake_client c = fake_client(s);

	fake_ask(*state, &c, FAKE_INITIALIZE("2025-11-25"), 400,
	    MCP_INVALID_REQUEST);
	free(s);
}

/* Some clients go on sending the id that a server forgot. */
TEST(initialize_with_an_id_of_no_session_begins_one)
{
	struct fake_client mine = fake_client("made-up");
	struct fake_client theirs = fake_client(NULL);
	char *s = fake_session(*state);
	struct fake_answer a;

	theirs.who = fake_bob();
	theirs.session = s;
	fake_post(*state, &mine, FAKE_INITIALIZE("2025-11-25"), &a);
	fake_expect(&a, 200, 0);
	assert_non_null(a.session);
	mine.session = a.session;
	fake_ask(*state, &mine, PING, 200, 0);
	fake_clear(&a);
	fake_post(*state, &theirs, FAKE_INITIALIZE("2025-11-25"), &a);
	fake_expect(&a, 200, 0);
	assert_non_null(a.session);
	assert_string_not_equal(a.session, s);
	fake_clear(&a);
	free(s);
}

TEST(all_but_initialize_wants_a_session)
{
	static const char *const texts[] = {PING, LIST, NOTIFY,
	    CALL("echo", "{}"), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
	    "{\"jsonrpc\":\"2.0\",\"method\":\"initialize\"}"};
	struct fake_client c = fake_client(NULL);
	struct fake_answer a;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		c.session = NULL;
		fake_post(*state, &c, texts[i], &a);
		fake_expect(&a, 400, MCP_SERVER_ERROR);
		fake_expect_has(a.body, "initialize");
		fake_clear(&a);
		c.session = "0123";
		fake_ask(*state, &c, texts[i], 404, MCP_SESSION_NOT_FOUND);
	}
	assert_int_equal(fake_called, 0);
}

TEST(an_unknown_session_is_refused_in_the_usual_words)
{
	struct fake_client c = fake_client("0123");
	struct fake_answer a;

	fake_post(*state, &c, NOTIFY, &a);
	assert_int_equal(a.status, 404);
	assert_string_equal(a.body,
	    "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32001,"
	    "\"message\":\"Session not found\"}}");
	fake_clear(&a);
}

TEST(a_foreign_session_is_like_an_unknown_one_and_stays_alive)
{
	static const char *const methods[] = {"POST", "GET", "DELETE"};
	char *s = fake_session(*state);
	struct fake_client mine = fake_client(s), theirs = fake_client(s);
	struct fake_client made_up = fake_client("made-up");
	struct fake_answer a, b;

	theirs.who = fake_bob();
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		fake_http(*state, methods[i], &theirs, LIST, strlen(LIST), &a);
		fake_http(*state, methods[i], &made_up, LIST, strlen(LIST), &b);
		fake_expect(&a, 404, MCP_SESSION_NOT_FOUND);
		assert_string_equal(a.body, b.body);
		fake_clear(&a);
		fake_clear(&b);
	}
	fake_ask(*state, &mine, PING, 200, 0);
	free(s);
}

TEST(a_bad_version_header_is_refused_in_a_session)
{
	static const char *const bad[] = {
	    "1999-01-01", "2025-11-25 junk", "2026-07-28 junk", ""};
	char *s = fake_session(*state);
	struct fake_client c = fake_client(s);
	struct fake_answer a;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		c.version = bad[i];
		fake_post(*state, &c, PING, &a);
		fake_expect(&a, 400, MCP_SERVER_ERROR);
		fake_expect_has(a.body, "\"supported\":[\"2024-11-05\",");
		fake_expect_has(a.body, "\"2025-11-25\"],\"requested\":");
		fake_clear(&a);
	}
	c.version = "2026-07-28";
	fake_ask(*state, &c, PING, 400, MCP_INVALID_PARAMS);
	c.version = NULL;
	fake_ask(*state, &c, PING, 200, 0);
	free(s);
}

TEST(another_served_version_is_let_pass_and_the_sessions_counts)
{
	char *s =
	    fake_session_of(*state, &fake_alice, FAKE_INITIALIZE("2025-06-18"));
	struct fake_client c = fake_client(s);
	struct fake_answer a;

	c.version = "2025-11-25";
	fake_post(*state, &c, LIST, &a);
	fake_expect(&a, 200, 0);
	assert_null(strstr(a.body, "icons"));
	fake_clear(&a);
	free(s);
}

TEST_MAIN(setup, teardown)

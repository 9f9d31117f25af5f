#include "supervisor/stdio/message.h"

#include "common/xmalloc.h"
#include "tests/unit/test.h"

static struct message
read_good(const char *text)
{
	struct message m;
	struct err e;

	assert_int_equal(message_read(text, strlen(text), &m, &e), 0);
	return m;
}

TEST(a_request_has_one_id)
{
	struct message m =
	    read_good("{\"id\":\"\\u0061\",\"method\":\"ping\"}");

	assert_int_equal(m.kind, MESSAGE_REQUEST);
	assert_string_equal(m.method, "ping");
	assert_true(message_has_id(&m, "\"a\""));
	assert_false(message_has_id(&m, "1"));
	assert_null(m.claim);
	message_clear(&m);
}

TEST(kinds_are_told_apart)
{
	static const struct {
		const char *text;
		enum message_kind kind;
	} cases[] = {{"{\"method\":\"a\"}", MESSAGE_NOTIFICATION},
	    {"{\"id\":null,\"method\":\"a\"}", MESSAGE_NOTIFICATION},
	    {"{\"id\":1,\"result\":{}}", MESSAGE_RESPONSE},
	    {"{\"id\":1,\"error\":{}}", MESSAGE_RESPONSE},
	    {"7", MESSAGE_RESPONSE}, {"{\"method\":7}", MESSAGE_RESPONSE},
	    {"[]", MESSAGE_BATCH}, {"[1,{\"id\":1}]", MESSAGE_BATCH}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct message m = read_good(cases[i].text);

		assert_int_equal(m.kind, cases[i].kind);
		assert_int_equal(m.nids, 0);
		message_clear(&m);
	}
}

TEST(a_batch_has_the_ids_of_its_requests)
{
	struct message m = read_good(
	    "[{\"id\":1,\"method\":\"a\"},{\"method\":\"b\"},{\"id\":2},"
	    "{\"id\":\"1\",\"method\":\"c\"}]");
	static const char one[] = "[{\"id\":\"1\",\"result\":{}}]";

	assert_int_equal(m.nids, 2);
	assert_int_equal(message_take_answer(&m, one, strlen(one)), 0);
	assert_int_equal(m.nids, 1);
	assert_true(message_has_id(&m, "1"));
	message_clear(&m);
}

TEST(only_a_response_answers)
{
	struct message m = read_good("{\"id\":1,\"method\":\"a\"}");
	static const char *const others[] = {"{\"id\":1,\"method\":\"ping\"}",
	    "{\"id\":2,\"result\":{}}",
	    "{\"method\":\"notifications/progress\"}", "{\"id\":\"1\"}"};
	static const char answer[] = "{\"result\":{},\"id\":1}";

	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		assert_int_equal(
		    message_take_answer(&m, others[i], strlen(others[i])), 0);
		assert_int_equal(m.nids, 1);
	}
	assert_int_equal(message_take_answer(&m, "<html>", 6), -1);
	assert_int_equal(message_take_answer(&m, "7", 1), -1);
	assert_int_equal(message_take_answer(&m, answer, strlen(answer)), 0);
	assert_int_equal(m.nids, 0);
	message_clear(&m);
}

TEST(a_claim_and_what_mcp_name_says_are_found)
{
	static const struct {
		const char *method, *member;
	} cases[] = {{"tools/call", "name"}, {"prompts/get", "name"},
	    {"resources/read", "uri"}, {"tasks/get", "taskId"},
	    {"tasks/update", "taskId"}, {"tasks/cancel", "taskId"}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(auto_free)
		char *text = xasprintf(
		    "{\"id\":1,\"method\":\"%s\",\"params\":{\"%s\":\"x\","
		    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
		    "\"2026-07-28\"}}}",
		    cases[i].method, cases[i].member);
		struct message m = read_good(text);

		assert_string_equal(m.name, "x");
		assert_string_equal(m.claim, "2026-07-28");
		message_clear(&m);
	}
}

TEST(a_cancel_names_what_it_cancels)
{
	struct message m = read_good("{\"method\":\"notifications/cancelled\","
				     "\"params\":{\"requestId\":7}}");

	assert_string_equal(m.cancels, "7");
	message_clear(&m);
	m = read_good("{\"method\":\"notifications/cancelled\","
		      "\"params\":{\"requestId\":[7]}}");
	assert_null(m.cancels);
	message_clear(&m);
}

TEST(what_is_no_json_is_refused)
{
	static const char *const bad[] = {"nonsense", "{", "{} {}",
	    "{\"a\":\"\xff\"}", "{\"a\":1,\"a\":2}", "\"a"};
	struct message m;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(
		    message_read(bad[i], strlen(bad[i]), &m, &e), ERR_PARSE);
}

TEST(nesting_has_a_bound)
{
	char text[4 * MESSAGE_DEPTH_MAX];
	struct message m;
	struct err e;

	memset(text, '[', sizeof(text));
	assert_int_equal(message_read(text, sizeof(text), &m, &e), ERR_PARSE);
}

TEST(an_error_has_the_id_that_is_known)
{
	AUTO(auto_free)
	char *with = message_error("\"a\"", MESSAGE_BROKEN, "it broke");
	AUTO(auto_free)
	char *without = message_error(NULL, MESSAGE_PARSE_ERROR, "\xff");

	assert_string_equal(with,
	    "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-31002,\"message\":"
	    "\"it broke\"},\"id\":\"a\"}");
	assert_null(strstr(without, "\"id\""));
	assert_non_null(strstr(without, "\xef\xbf\xbd"));
}

TEST(an_error_of_the_servers_gets_the_id_it_lacks)
{
	static const char lacks[] =
	    "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-1}}";
	static const char null_id[] = "{\"id\":null,\"error\":{\"code\":-1}}";
	static const char has[] = "{\"id\":5,\"error\":{\"code\":-1}}";
	static const char none[] = "{\"error\":{\"code\":\"forbidden\"}}";
	AUTO(auto_free) char *a = message_error_for("7", lacks, strlen(lacks));
	AUTO(auto_free)
	char *b = message_error_for("7", null_id, strlen(null_id));

	assert_non_null(strstr(a, "\"id\":7"));
	assert_non_null(strstr(b, "\"id\":7"));
	assert_null(message_error_for("7", has, strlen(has)));
	assert_null(message_error_for("7", none, strlen(none)));
	assert_int_equal(message_error_code(has, strlen(has)), -1);
	assert_int_equal(message_error_code(none, strlen(none)), 0);
}

TEST(a_complaint_is_found_in_any_of_its_forms)
{
	static const struct {
		const char *body, *want;
	} cases[] = {{"{\"error\":{\"message\":\"no\"}}", "no"},
	    {"{\"error\":\"x\",\"message\":\"no\"}", "no"}, {"<html>", ""},
	    {"", ""}, {"[]", ""}, {"{\"error\":{}}", ""}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(auto_free)
		char *said =
		    message_complaint(cases[i].body, strlen(cases[i].body));

		assert_string_equal(said, cases[i].want);
	}
}

TEST(a_revision_is_that_of_a_result)
{
	static const char good[] =
	    "{\"id\":1,\"result\":{\"protocolVersion\":\"2025-06-18\"}}";
	static const char bad[] = "{\"id\":1,\"error\":{\"code\":1}}";
	AUTO(auto_free) char *revision = message_revision(good, strlen(good));

	assert_string_equal(revision, "2025-06-18");
	assert_null(message_revision(bad, strlen(bad)));
}

TEST_MAIN(NULL, NULL)

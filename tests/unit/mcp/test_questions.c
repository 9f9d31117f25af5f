/* Questions to the client until 2025-11-25: requests on a stream. */
#include "supervisor/mcp/questions.h"

#include <math.h>

#include "supervisor/mcp/mcp_call.h"
#include "tests/unit/mcp/asker.h"

#define INIT(capabilities)                                                     \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":"  \
	"{\"protocolVersion\":\"2025-11-25\",\"capabilities\":" capabilities   \
	"}}"
#define ALL "{\"elicitation\":{},\"sampling\":{},\"roots\":{}}"
#define CALL(id)                                                               \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\","        \
	"\"params\":{\"name\":\"asker\"}}"
#define GET                                                                    \
	"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"prompts/get\","            \
	"\"params\":{\"name\":\"asker\"}}"
#define READ                                                                   \
	"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"resources/read\","         \
	"\"params\":{\"uri\":\"x://y\"}}"

/* A session of a client that can do so much. */
static void
begin(struct ground *g, const char *init)
{
	free(g->session);
	g->session = fake_session_of(g->m, &fake_alice, init);
	g->client.session = g->session;
}

static int
setup_asker(void **state)
{
	struct ground *g;

	setup(state);
	g = *state;
	asker_add(g->m);
	begin(g, INIT(ALL));
	return 0;
}

static int
teardown_asker(void **state)
{
	asker_clear();
	return teardown(state);
}

/* The id of the i-th question on a stream; the caller frees. */
static char *
id_of(const struct fake_answer *a, int i)
{
	assert_true(i < a->nevents);
	return xstrdup(js_text(fake_parse(a->event[i]), "id"));
}

static void
respond_in(
    struct ground *g, const char *session, const char *id, const char *outcome)
{
	AUTO(auto_free)
	char *body =
	    xasprintf("{\"jsonrpc\":\"2.0\",\"id\":\"%s\",%s}", id, outcome);
	struct fake_client c = g->client;
	struct fake_answer a;

	c.session = session;
	fake_post(g->m, &c, body, &a);
	assert_int_equal(a.status, 202);
	assert_null(a.body);
	fake_clear(&a);
}

static void
respond(struct ground *g, const char *id, const char *outcome)
{
	respond_in(g, g->session, id, outcome);
}

#define ACCEPT                                                                 \
	"\"result\":{\"action\":\"accept\",\"content\":{\"name\":\"Ada\"}}"

/* The last event is a result with this in it. */
static void
expect_end(const struct fake_answer *a, const char *part)
{
	assert_int_equal(a->ends, 1);
	fake_expect_has(a->event[a->nevents - 1], part);
}

TEST(a_question_goes_on_the_stream_and_its_answer_comes_back)
{
	struct ground *g = *state;
	struct fake_answer a;
	char *id;

	fake_post(g->m, &g->client, CALL("5"), &a);
	assert_int_equal(a.starts, 1);
	assert_int_equal(a.nevents, 1);
	id = id_of(&a, 0);
	fake_expect_has(a.event[0],
	    "\"method\":\"elicitation/create\",\"params\":{\"message\":"
	    "\"Your name?\",");
	assert_null(asker.answers[0]);
	respond(g, id, ACCEPT);
	assert_int_equal(asker.called, 2);
	assert_string_equal(asker.answers[1],
	    "{\"name\":{\"action\":\"accept\",\"content\":{\"name\":\"Ada\"}"
	    "}}");
	assert_null(asker.states[1]);
	expect_end(&a,
	    "\"id\":5,\"result\":{\"content\":[{\"type\":\"text\","
	    "\"text\":\"done\"}]");
	assert_int_equal(active(), 0);
	free(id);
	fake_clear(&a);
}

TEST(several_questions_are_answered_in_any_order)
{
	struct ground *g = *state;
	struct fake_answer a;
	char *first, *second;

	asker.questions = QUESTION_PAIR;
	fake_post(g->m, &g->client, CALL("5"), &a);
	assert_int_equal(a.nevents, 2);
	first = id_of(&a, 0);
	second = id_of(&a, 1);
	assert_string_not_equal(first, second);
	assert_null(strstr(a.event[1], "params"));
	respond(g, second, "\"result\":{\"roots\":[]}");
	assert_int_equal(asker.called, 1);
	respond(g, first, "\"result\":{\"role\":\"assistant\"}");
	assert_string_equal(asker.answers[1],
	    "{\"a\":{\"role\":\"assistant\"},\"b\":{\"roots\":[]}}");
	expect_end(&a, "done");
	free(first);
	free(second);
	fake_clear(&a);
}

TEST(a_function_may_ask_again_and_keep_a_state)
{
	struct ground *g = *state;
	struct fake_answer a;
	char *id;

	asker.rounds = 2;
	asker.state = "first";
	fake_post(g->m, &g->client, CALL("5"), &a);
	asker.state = "second";
	id = id_of(&a, 0);
	respond(g, id, ACCEPT);
	free(id);
	assert_int_equal(a.nevents, 2);
	assert_string_equal(asker.states[1], "first");
	id = id_of(&a, 1);
	respond(g, id, "\"result\":{\"action\":\"decline\"}");
	assert_string_equal(asker.states[2], "second");
	assert_string_equal(
	    asker.answers[2], "{\"name\":{\"action\":\"decline\"}}");
	expect_end(&a, "done");
	free(id);
	fake_clear(&a);
}

TEST(a_function_may_ask_later)
{
	struct ground *g = *state;
	struct fake_answer a;
	char *id;

	asker.waits = true;
	fake_post(g->m, &g->client, CALL("5"), &a);
	asker.waits = false;
	asker_ask(asker.held);
	id = id_of(&a, 0);
	respond(g, id, ACCEPT);
	expect_end(&a, "done");
	free(id);
	fake_clear(&a);
}

TEST(a_state_without_questions_is_a_call_again)
{
	struct ground *g = *state;
	struct fake_answer a;

	asker.questions = "{}";
	asker.state = "again";
	fake_post(g->m, &g->client, CALL("5"), &a);
	fake_expect(&a, 200, 0);
	assert_string_equal(asker.answers[1], "{}");
	assert_string_equal(asker.states[1], "again");
	fake_clear(&a);
}

TEST(prompts_and_resources_may_ask)
{
	static const char *const bodies[] = {GET, READ};
	static const char *const ends[] = {
	    "\"result\":{\"messages\":[]}", "\"result\":{\"contents\":[]}"};
	struct ground *g = *state;

	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		struct fake_answer a;
		char *id;

		asker_clear();
		asker.questions = QUESTION_NAME;
		asker.rounds = 1;
		fake_post(g->m, &g->client, bodies[i], &a);
		id = id_of(&a, 0);
		respond(g, id, ACCEPT);
		expect_end(&a, ends[i]);
		free(id);
		fake_clear(&a);
	}
}

TEST(progress_goes_on_growing_over_a_question)
{
	struct ground *g = *state;
	struct fake_answer a;
	char *id;

	asker.waits = true;
	fake_post(g->m, &g->client, TOKEN("asker", "5", "\"t\""), &a);
	mcp_call_progress(asker.held, 2, NAN, NULL);
	asker_ask(asker.held);
	assert_int_equal(a.nevents, 2);
	id = id_of(&a, 1);
	respond(g, id, ACCEPT);
	mcp_call_progress(asker.held, 1, NAN, NULL);
	assert_int_equal(a.nevents, 2);
	mcp_call_progress(asker.held, 3, NAN, NULL);
	assert_int_equal(a.nevents, 3);
	fake_done(asker.held, "done", NULL);
	free(id);
	fake_clear(&a);
}

/* MCP 2025-03-26: the responses of a client may come together. */
TEST(responses_may_come_in_a_batch)
{
	struct ground *g = *state;
	AUTO(auto_free) char *first = NULL;
	AUTO(auto_free) char *second = NULL;
	AUTO(auto_free) char *body = NULL;
	struct fake_answer a, b;

	begin(g,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\","
	    "\"params\":{\"protocolVersion\":\"2025-03-26\","
	    "\"capabilities\":" ALL "}}");
	asker.questions = QUESTION_PAIR;
	fake_post(g->m, &g->client, CALL("5"), &a);
	first = id_of(&a, 0);
	second = id_of(&a, 1);
	body = xasprintf(
	    "[{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"result\":{\"n\":1}},"
	    "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}},"
	    "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"result\":{\"n\":2}}]",
	    second, first);
	fake_post(g->m, &g->client, body, &b);
	assert_int_equal(b.status, 202);
	fake_clear(&b);
	assert_string_equal(
	    asker.answers[1], "{\"a\":{\"n\":2},\"b\":{\"n\":1}}");
	expect_end(&a, "done");
	fake_clear(&a);
}

TEST(a_request_of_a_batch_may_ask)
{
	struct ground *g = *state;
	AUTO(auto_free) char *id = NULL;
	struct fake_answer a;

	begin(g,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\","
	    "\"params\":{\"protocolVersion\":\"2025-03-26\","
	    "\"capabilities\":" ALL "}}");
	asker.questions = "{\"a\":{\"method\":\"roots/list\"}}";
	fake_post(g->m, &g->client,
	    "[" CALL(
		"5") ",{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"ping\"}]",
	    &a);
	id = id_of(&a, 0);
	respond(g, id, "\"result\":{\"roots\":[]}");
	assert_int_equal(asker.called, 2);
	expect_end(&a, "done");
	fake_clear(&a);
}

/* ---- who cannot be asked */

TEST(a_client_is_asked_only_what_it_declared)
{
	struct ground *g = *state;
	struct fake_answer a;

	begin(g, INIT("{\"sampling\":{}}"));
	fake_post(g->m, &g->client, CALL("5"), &a);
	fake_expect(&a, 200, MCP_INVALID_REQUEST);
	fake_expect_has(a.body, "must declare this capability");
	fake_expect_has(a.body, "elicitation");
	assert_int_equal(asker.called, 1);
	fake_clear(&a);
}

TEST(a_function_knows_what_its_client_can)
{
	struct ground *g = *state;
	struct fake_answer a;

	begin(g, INIT("{\"sampling\":{},\"roots\":{}}"));
	asker.waits = true;
	fake_post(g->m, &g->client, CALL("5"), &a);
	assert_true(mcp_call_can(asker.held, MCP_CAN_SAMPLE));
	assert_true(mcp_call_can(asker.held, MCP_CAN_LIST_ROOTS));
	assert_false(mcp_call_can(asker.held, MCP_CAN_ELICIT));
	assert_false(mcp_call_can(asker.held, MCP_CAN_TASKS));
	mcp_call_need(asker.held, MCP_CAN_ELICIT);
	fake_expect(&a, 200, MCP_INVALID_REQUEST);
	fake_clear(&a);
}

TEST(an_address_is_asked_for_only_by_its_own_mode)
{
	struct ground *g = *state;
	struct fake_answer a;

	asker.questions = "{\"a\":{\"method\":\"elicitation/create\","
			  "\"params\":{\"mode\":\"url\"}}}";
	fake_post(g->m, &g->client, CALL("5"), &a);
	fake_expect(&a, 200, MCP_INVALID_REQUEST);
	fake_expect_has(a.body, "url");
	fake_clear(&a);
	asker.called = 0;
	begin(g, INIT("{\"elicitation\":{\"url\":{}}}"));
	fake_post(g->m, &g->client, CALL("5"), &a);
	assert_int_equal(a.nevents, 1);
	mcp_client_gone(a.exchange);
	fake_clear(&a);
}

TEST(who_takes_no_stream_is_told)
{
	struct ground *g = *state;
	struct fake_answer a;

	g->client.accept = "application/json";
	fake_post(g->m, &g->client, CALL("5"), &a);
	fake_expect(&a, 200, 0);
	fake_expect_has(a.body, "takes no event stream");
	fake_expect_has(a.body, "\"isError\":true");
	fake_clear(&a);
	asker.called = 0;
	fake_post(g->m, &g->client, GET, &a);
	fake_expect(&a, 200, MCP_INTERNAL_ERROR);
	fake_clear(&a);
	assert_int_equal(active(), 0);
}

TEST(other_methods_ask_nothing)
{
	struct ground *g = *state;
	struct fake_answer a;

	asker.waits = true;
	fake_post(g->m, &g->client,
	    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"resources/list\"}", &a);
	assert_false(mcp_call_can(asker.held, MCP_CAN_ELICIT));
	asker_ask(asker.held);
	fake_expect(&a, 200, MCP_INTERNAL_ERROR);
	fake_clear(&a);
}

TEST(a_long_request_is_not_asked_about)
{
	struct ground *g = *state;
	struct fake_answer a;
	char *filler = xcalloc(1, MCP_ASK_BODY_MAX + 1);
	char *body;

	memset(filler, 'x', MCP_ASK_BODY_MAX);
	body = xasprintf("{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":"
			 "\"tools/call\",\"params\":{\"name\":\"asker\","
			 "\"arguments\":{\"x\":\"%s\"}}}",
	    filler);
	asker.waits = true;
	fake_post(g->m, &g->client, body, &a);
	assert_false(mcp_call_can(asker.held, MCP_CAN_ELICIT));
	asker_ask(asker.held);
	fake_expect(&a, 200, MCP_INVALID_REQUEST);
	fake_expect_has(a.body, "fewer bytes");
	free(body);
	free(filler);
	fake_clear(&a);
}

TEST(what_is_no_question_is_our_fault)
{
	static const char *const questions[] = {"{}", "[]",
	    "{\"a\":{\"method\":\"tools/call\"}}", "{\"a\":7}",
	    "{\"a\":{\"method\":\"roots/list\",\"params\":[]}}"};
	struct ground *g = *state;

	for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
		struct fake_answer a;

		asker.called = 0;
		asker.questions = questions[i];
		fake_post(g->m, &g->client, CALL("5"), &a);
		fake_expect(&a, 200, MCP_INTERNAL_ERROR);
		fake_clear(&a);
	}
}

TEST(the_number_of_questions_is_bounded)
{
	struct ground *g = *state;
	struct fake_answer a;
	json_t *many = json_object();
	char key[16];

	for (int i = 0; i <= QUESTIONS_MAX; i++) {
		(void)snprintf(key, sizeof(key), "%d", i);
		json_object_set_new(
		    many, key, json_pack("{s:s}", "method", "roots/list"));
	}
	asker.waits = true;
	fake_post(g->m, &g->client, CALL("5"), &a);
	mcp_call_ask(asker.held, many, NULL);
	fake_expect(&a, 200, MCP_INTERNAL_ERROR);
	fake_clear(&a);
}

/* ---- clients that do not answer well */

TEST(a_client_that_refuses_fails_the_tool_with_its_reason)
{
	struct ground *g = *state;
	struct fake_answer a;
	char *first, *second;

	asker.questions = QUESTION_PAIR;
	fake_post(g->m, &g->client, CALL("5"), &a);
	first = id_of(&a, 0);
	second = id_of(&a, 1);
	respond(g, first, "\"error\":{\"code\":-1,\"message\":\"no!\"}");
	assert_int_equal(asker.called, 1);
	assert_int_equal(a.nevents, 4);
	fake_expect_has(a.event[2], "\"method\":\"notifications/cancelled\"");
	fake_expect_has(a.event[2], second);
	expect_end(&a,
	    "sampling/createMessage: the client answered with error "
	    "-1: no!\"}],\"isError\":true}");
	respond(g, second, "\"result\":{}");
	assert_int_equal(active(), 0);
	free(first);
	free(second);
	fake_clear(&a);
}

TEST(a_client_that_refuses_a_prompt_gets_an_error)
{
	struct ground *g = *state;
	struct fake_answer a;
	char *id;

	fake_post(g->m, &g->client, GET, &a);
	id = id_of(&a, 0);
	respond(g, id, "\"error\":{\"code\":-32601,\"message\":\"what?\"}");
	expect_end(&a,
	    "\"error\":{\"code\":-32603,\"message\":"
	    "\"elicitation/create: the client answered with error "
	    "-32601: what?\"}");
	free(id);
	fake_clear(&a);
}

TEST(an_answer_is_an_object)
{
	static const char *const results[] = {
	    "\"result\":7", "\"result\":null", "\"result\":[]", "\"error\":7"};
	struct ground *g = *state;

	for (size_t i = 0; i < ARRAY_LEN(results); i++) {
		struct fake_answer a;
		char *id;

		asker.called = 0;
		fake_post(g->m, &g->client, CALL("5"), &a);
		id = id_of(&a, 0);
		respond(g, id, results[i]);
		expect_end(&a, "\"isError\":true");
		free(id);
		fake_clear(&a);
	}
}

/* Of MCP 2025-03-26, whose batches may be responses. */
TEST(a_batch_may_ask_and_may_answer)
{
	struct ground *g = *state;
	struct fake_answer a, b;
	char *first, *second, *body;

	begin(g,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\","
	    "\"params\":{\"protocolVersion\":\"2025-03-26\","
	    "\"capabilities\":" ALL "}}");
	asker.questions = QUESTION_PAIR;
	fake_post(g->m, &g->client, "[" CALL("5") "]", &a);
	assert_int_equal(a.nevents, 2);
	first = id_of(&a, 0);
	second = id_of(&a, 1);
	body = xasprintf("[{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"result\":{}},"
			 "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"result\":{}}]",
	    first, second);
	fake_post(g->m, &g->client, body, &b);
	assert_int_equal(b.status, 202);
	assert_string_equal(asker.answers[1], "{\"a\":{},\"b\":{}}");
	expect_end(&a, "\"id\":5,\"result\":");
	assert_int_equal(active(), 0);
	free(body);
	free(first);
	free(second);
	fake_clear(&a);
	fake_clear(&b);
}

TEST(a_response_to_what_was_never_asked_is_ignored)
{
	static const char *const ids[] = {
	    "\"x\"", "1", "\"\"", "\"5\"", "5", "\"x\\u0000\""};
	struct ground *g = *state;
	struct fake_answer a;
	char *id;

	fake_post(g->m, &g->client, CALL("5"), &a);
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		AUTO(auto_free)
		char *body = xasprintf(
		    "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}", ids[i]);
		struct fake_answer b;

		fake_post(g->m, &g->client, body, &b);
		assert_int_equal(b.status, 202);
		fake_clear(&b);
	}
	assert_int_equal(asker.called, 1);
	id = id_of(&a, 0);
	respond(g, id, ACCEPT);
	expect_end(&a, "done");
	free(id);
	fake_clear(&a);
}

TEST(a_response_in_another_session_is_ignored)
{
	struct ground *g = *state;
	char *other = fake_session_of(g->m, &fake_alice, INIT(ALL));
	struct fake_answer a;
	char *id;

	fake_post(g->m, &g->client, CALL("5"), &a);
	id = id_of(&a, 0);
	respond_in(g, other, id, ACCEPT);
	assert_int_equal(asker.called, 1);
	respond(g, id, ACCEPT);
	assert_int_equal(asker.called, 2);
	expect_end(&a, "done");
	free(id);
	free(other);
	fake_clear(&a);
}

TEST(a_second_response_is_ignored)
{
	struct ground *g = *state;
	struct fake_answer a;
	char *first, *second;

	asker.questions = QUESTION_PAIR;
	fake_post(g->m, &g->client, CALL("5"), &a);
	first = id_of(&a, 0);
	second = id_of(&a, 1);
	respond(g, first, "\"result\":{\"n\":1}");
	respond(g, first, "\"result\":{\"n\":2}");
	respond(g, first, "\"error\":{\"code\":1,\"message\":\"\"}");
	respond(g, second, "\"result\":{}");
	respond(g, second, "\"result\":{}");
	assert_int_equal(asker.called, 2);
	assert_string_equal(asker.answers[1], "{\"a\":{\"n\":1},\"b\":{}}");
	free(first);
	free(second);
	fake_clear(&a);
}

TEST(answers_are_bounded_together)
{
	struct ground *g = *state;
	size_t each = QUESTION_ANSWERS_MAX / 5;
	AUTO(auto_free) char *filler = xcalloc(1, each + 1);
	AUTO(auto_free) char *outcome = NULL;
	struct fake_answer a;

	memset(filler, 'x', each);
	outcome = xasprintf("\"result\":{\"x\":\"%s\"}", filler);
	asker.questions = "{\"a\":{\"method\":\"roots/list\"},"
			  "\"b\":{\"method\":\"roots/list\"},"
			  "\"c\":{\"method\":\"roots/list\"},"
			  "\"d\":{\"method\":\"roots/list\"},"
			  "\"e\":{\"method\":\"roots/list\"}}";
	fake_post(g->m, &g->client, CALL("5"), &a);
	for (int i = 0; i < 5; i++) {
		AUTO(auto_free) char *id = id_of(&a, i);

		respond(g, id, outcome);
	}
	assert_int_equal(asker.called, 1);
	expect_end(&a, "over the limit");
	fake_clear(&a);
}

TEST(a_client_that_leaves_ends_the_call)
{
	struct ground *g = *state;
	struct fake_answer a;
	char *id;

	fake_post(g->m, &g->client, CALL("5"), &a);
	id = id_of(&a, 0);
	assert_int_equal(active(), 1);
	mcp_client_gone(a.exchange);
	assert_int_equal(active(), 0);
	respond(g, id, ACCEPT);
	assert_int_equal(asker.called, 1);
	free(id);
	fake_clear(&a);
}

TEST(a_call_that_asks_is_cancelled)
{
	struct ground *g = *state;
	struct fake_answer a;
	char *id;

	fake_post(g->m, &g->client, CALL("5"), &a);
	id = id_of(&a, 0);
	cancel(g, CANCEL("5"));
	assert_int_equal(a.ends, 1);
	assert_int_equal(a.nevents, 1);
	assert_int_equal(active(), 0);
	respond(g, id, ACCEPT);
	assert_int_equal(asker.called, 1);
	free(id);
	fake_clear(&a);
}

TEST(a_call_may_ask_when_its_client_is_gone)
{
	struct ground *g = *state;
	struct fake_answer a;

	asker.waits = true;
	fake_post(g->m, &g->client, CALL("5"), &a);
	mcp_client_gone(a.exchange);
	asker_ask(asker.held);
	assert_int_equal(active(), 0);
	assert_int_equal(a.nevents + a.replies, 0);
	fake_clear(&a);
}

TEST(a_request_id_is_in_use_while_its_call_asks)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, CALL("5"), &a);
	fake_ask(g->m, &g->client, CALL("5"), 400, MCP_INVALID_REQUEST);
	mcp_client_gone(a.exchange);
	fake_clear(&a);
}

TEST(the_client_has_ten_minutes)
{
	struct ground *g = *state;
	uint64_t now = clock_mono_ms();
	struct fake_answer a;
	char *id;

	fake_post(g->m, &g->client, CALL("5"), &a);
	id = id_of(&a, 0);
	mcp_tick(g->m, now + 599000);
	assert_int_equal(a.ends, 0);
	mcp_tick(g->m, clock_mono_ms() + 600000);
	fake_expect_has(a.event[a.nevents - 2], "notifications/cancelled");
	expect_end(&a,
	    "elicitation/create: the client did not answer within "
	    "10 minutes");
	respond(g, id, ACCEPT);
	assert_int_equal(asker.called, 1);
	free(id);
	fake_clear(&a);
}

TEST(the_server_may_go_while_it_asks)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, CALL("5"), &a);
	mcp_free(g->m);
	g->m = NULL;
	assert_int_equal(active(), 0);
	fake_clear(&a);
}

/* A transport that finds its connection closed when it is to write. */
struct leaver {
	struct mcp_exchange *exchange;
	int writes, allowed, told;
};

static void
leave_reply_cb(void *handle, int status, const char *session_id,
    const char *body, size_t len)
{
	(void)status;
	(void)session_id;
	(void)body;
	(void)len;
	((struct leaver *)handle)->told++;
}

static void
leave_start_cb(void *handle, const char *session_id)
{
	(void)handle;
	(void)session_id;
}

static void
leave_write_cb(void *handle, const struct iovec *pieces, int n)
{
	struct leaver *l = handle;

	(void)pieces;
	(void)n;
	if (l->writes++ == l->allowed)
		mcp_client_gone(l->exchange);
}

static void
leave_end_cb(void *handle)
{
	((struct leaver *)handle)->told++;
}

static size_t
leave_pending_cb(void *handle)
{
	(void)handle;
	return 0;
}

static const struct mcp_transport_ops leave_ops = {.reply = leave_reply_cb,
    .stream_start = leave_start_cb,
    .stream_write = leave_write_cb,
    .stream_pending = leave_pending_cb,
    .stream_end = leave_end_cb};

static void
leaver_post(struct ground *g, struct leaver *l)
{
	static const char body[] = CALL("5");
	struct mcp_http http = {.method = "POST",
	    .content_type = "application/json",
	    .accept = FAKE_BOTH,
	    .session_id = g->session,
	    .body = body,
	    .body_len = sizeof(body) - 1,
	    .who = g->client.who,
	    .request_id = "http-2"};

	l->exchange = mcp_handle(g->m, &http, &leave_ops, l);
	assert_non_null(l->exchange);
}

TEST(a_client_may_leave_while_it_is_asked)
{
	struct ground *g = *state;
	struct leaver l = {.allowed = 0};

	asker.questions = QUESTION_PAIR;
	asker.waits = true;
	leaver_post(g, &l);
	asker_ask(asker.held);
	assert_int_equal(l.writes, 1);
	assert_int_equal(l.told, 0);
	assert_int_equal(active(), 0);
}

TEST(a_client_may_leave_while_a_question_is_withdrawn)
{
	struct ground *g = *state;
	struct leaver l = {.allowed = 2};

	asker.questions = QUESTION_PAIR;
	asker.waits = true;
	leaver_post(g, &l);
	asker_ask(asker.held);
	mcp_tick(g->m, clock_mono_ms() + 600000);
	assert_int_equal(l.writes, 3);
	assert_int_equal(l.told, 0);
	assert_int_equal(active(), 0);
}

TEST_MAIN(setup_asker, teardown_asker)

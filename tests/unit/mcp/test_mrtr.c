/* Questions to the client in MCP 2026-07-28: results that ask, and requests
 * that come again with answers. */
#include "common/clock.h"
#include "supervisor/mcp/can.h"
#include "supervisor/mcp/mcp_int.h"
#include "supervisor/mcp/request_state.h"
#include "tests/unit/mcp/asker.h"

#define CAN_ALL                                                                \
	(1u << MCP_CAN_ELICIT | 1u << MCP_CAN_SAMPLE | 1u << MCP_CAN_LIST_ROOTS)

static unsigned int client_can;

static int
setup_asker(void **state)
{
	struct ground *g;

	setup(state);
	g = *state;
	asker_add(g->m);
	client_can = CAN_ALL;
	return 0;
}

static int
teardown_asker(void **state)
{
	asker_clear();
	return teardown(state);
}

/* What the client declares. */
static json_t *
capabilities(void)
{
	json_t *all = json_object();

	for (int i = 0; i < 8; i++) {
		json_t *one = can_required((enum mcp_can)i);

		if ((client_can & 1u << i) != 0)
			json_object_update(all, one);
		json_decref(one);
	}
	return all;
}

/* params but for _meta, as text */
static void
ask_as(struct mcp *m, struct principal *who, const char *method,
    const char *params, struct fake_answer *a)
{
	AUTO(auto_json) json_t *all = json_loads(params, JSON_ALLOW_NUL, NULL);
	const char *name = js_text(all, "name");
	struct fake_client c = fake_modern(method,
	    *name != '\0' ? name :
			    json_string_value(json_object_get(all, "uri")));
	AUTO(auto_free) char *whole = NULL;
	AUTO(auto_free) char *body = NULL;

	assert_non_null(all);
	json_object_set_new(all, "_meta",
	    json_pack("{s:s, s:o}", ERA_CLAIM, "2026-07-28",
		"io.modelcontextprotocol/clientCapabilities", capabilities()));
	whole = js_dump(all);
	body = xasprintf("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\","
			 "\"params\":%s}",
	    method, whole);
	c.who = who;
	fake_post(m, &c, body, a);
}

static void
call(struct ground *g, const char *more, struct fake_answer *a)
{
	AUTO(auto_free)
	char *params = xasprintf("{\"name\":\"asker\"%s}", more);

	ask_as(g->m, &fake_alice, "tools/call", params, a);
}

/* What a result asks with; the caller frees, NULL: it has no state. */
static char *
state_of(const struct fake_answer *a)
{
	const json_t *result = json_object_get(fake_parse(a->body), "result");
	const char *text =
	    json_string_value(json_object_get(result, "requestState"));

	assert_string_equal(js_text(result, "resultType"), "input_required");
	return text == NULL ? NULL : xstrdup(text);
}

/* Asks with a state; the state as the client has it. */
static char *
first_round(struct ground *g, const char *more)
{
	struct fake_answer a;
	char *state;

	asker.state = "step 1";
	call(g, more, &a);
	fake_expect(&a, 200, 0);
	state = state_of(&a);
	assert_non_null(state);
	fake_clear(&a);
	return state;
}

static void
expect_done(const struct fake_answer *a)
{
	fake_expect(a, 200, 0);
	fake_expect_has(a->body, "done");
}

#define ANSWER                                                                 \
	",\"inputResponses\":{\"name\":{\"action\":\"accept\",\"content\":"    \
	"{\"name\":\"Ada\"}}}"
#define TAKEN                                                                  \
	"{\"name\":{\"action\":\"accept\",\"content\":{\"name\":\"Ada\"}}}"

TEST(questions_are_a_result)
{
	struct fake_answer a;

	call(*state, "", &a);
	fake_expect(&a, 200, 0);
	fake_expect_has(a.body,
	    "\"resultType\":\"input_required\",\"inputRequests\":" QUESTION_NAME
	    ",\"_meta\":");
	assert_null(strstr(a.body, "\"complete\""));
	assert_null(strstr(a.body, "ttlMs"));
	assert_null(asker.answers[0]);
	assert_int_equal(active(), 0);
	fake_clear(&a);
}

TEST(the_request_comes_again_with_answers)
{
	struct fake_answer a;

	call(*state, ANSWER, &a);
	assert_string_equal(asker.answers[0], TAKEN);
	assert_null(asker.states[0]);
	fake_clear(&a);
	call(*state, ANSWER, &a);
	expect_done(&a);
	fake_clear(&a);
}

TEST(a_state_goes_by_the_client)
{
	struct ground *g = *state;
	AUTO(auto_free) char *kept = first_round(g, "");
	AUTO(auto_free)
	char *more = xasprintf(ANSWER ",\"requestState\":\"%s\"", kept);
	struct fake_answer a;

	call(g, more, &a);
	assert_string_equal(asker.answers[1], TAKEN);
	assert_string_equal(asker.states[1], "step 1");
	expect_done(&a);
	fake_clear(&a);
}

TEST(a_state_alone_is_no_first_call)
{
	struct ground *g = *state;
	struct fake_answer a;
	AUTO(auto_free) char *kept = NULL;
	AUTO(auto_free) char *more = NULL;

	asker.questions = "{}";
	asker.state = "come back";
	call(g, "", &a);
	kept = state_of(&a);
	assert_null(strstr(a.body, "inputRequests"));
	fake_clear(&a);
	more = xasprintf(",\"requestState\":\"%s\"", kept);
	call(g, more, &a);
	assert_string_equal(asker.answers[1], "{}");
	assert_string_equal(asker.states[1], "come back");
	expect_done(&a);
	fake_clear(&a);
}

TEST(each_round_has_a_state_of_its_own)
{
	struct ground *g = *state;
	AUTO(auto_free) char *first = first_round(g, "");
	AUTO(auto_free)
	char *more = xasprintf(ANSWER ",\"requestState\":\"%s\"", first);
	AUTO(auto_free) char *second = NULL;
	AUTO(auto_free) char *last = NULL;
	struct fake_answer a;

	asker.rounds = 2;
	asker.state = "step 2";
	call(g, more, &a);
	second = state_of(&a);
	assert_string_not_equal(first, second);
	fake_clear(&a);
	last = xasprintf(ANSWER ",\"requestState\":\"%s\"", second);
	call(g, last, &a);
	assert_string_equal(asker.states[2], "step 2");
	expect_done(&a);
	fake_clear(&a);
}

TEST(a_function_may_ask_with_the_state_that_it_has)
{
	struct ground *g = *state;
	AUTO(auto_free) char *first = first_round(g, "");
	AUTO(auto_free)
	char *more = xasprintf(",\"requestState\":\"%s\"", first);
	AUTO(auto_free) char *second = NULL;
	struct fake_answer a;

	asker.waits = true;
	call(g, more, &a);
	mcp_call_ask(asker.held, json_object(), mcp_call_state(asker.held));
	second = state_of(&a);
	assert_non_null(second);
	fake_clear(&a);
}

TEST(prompts_and_resources_may_ask)
{
	static const struct {
		const char *method, *params;
	} cases[] = {{"prompts/get", "\"name\":\"asker\""},
	    {"resources/read", "\"uri\":\"x://y\""}};
	struct ground *g = *state;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(auto_free)
		char *first = xasprintf("{%s}", cases[i].params);
		AUTO(auto_free) char *kept = NULL;
		AUTO(auto_free) char *again = NULL;
		struct fake_answer a;

		asker_clear();
		asker.questions = QUESTION_NAME;
		asker.rounds = 1;
		asker.state = "s";
		ask_as(g->m, &fake_alice, cases[i].method, first, &a);
		kept = state_of(&a);
		fake_clear(&a);
		again = xasprintf("{%s" ANSWER ",\"requestState\":\"%s\"}",
		    cases[i].params, kept);
		ask_as(g->m, &fake_alice, cases[i].method, again, &a);
		fake_expect(&a, 200, 0);
		assert_string_equal(asker.answers[1], TAKEN);
		fake_clear(&a);
	}
}

/* ---- what clients get wrong */

TEST(answers_are_an_object)
{
	static const char *const more[] = {",\"inputResponses\":7",
	    ",\"inputResponses\":null", ",\"inputResponses\":[]",
	    ",\"inputResponses\":\"name\"", ",\"inputResponses\":true"};

	for (size_t i = 0; i < ARRAY_LEN(more); i++) {
		struct fake_answer a;

		call(*state, more[i], &a);
		fake_expect(&a, 200, MCP_INVALID_PARAMS);
		fake_expect_has(a.body, "params.inputResponses");
		fake_clear(&a);
	}
	assert_int_equal(asker.called, 0);
	assert_int_equal(active(), 0);
}

TEST(an_answer_that_is_no_object_is_none)
{
	struct fake_answer a;

	call(*state, ",\"inputResponses\":{\"name\":12345,\"x\":null,\"y\":[]}",
	    &a);
	assert_string_equal(asker.answers[0], "{}");
	assert_non_null(strstr(a.body, "input_required"));
	fake_clear(&a);
}

TEST(keys_that_were_not_asked_for_do_no_harm)
{
	struct ground *g = *state;
	AUTO(auto_free) char *kept = first_round(g, "");
	AUTO(auto_free)
	char *more = xasprintf(",\"inputResponses\":{\"name\":{},\"other\":"
			       "{\"a\":1}},\"requestState\":\"%s\"",
	    kept);
	struct fake_answer a;

	call(g, more, &a);
	assert_string_equal(
	    asker.answers[1], "{\"name\":{},\"other\":{\"a\":1}}");
	expect_done(&a);
	fake_clear(&a);
}

static void
expect_bad_state(struct ground *g, struct principal *who, const char *params)
{
	int before = asker.called;
	struct fake_answer a;

	ask_as(g->m, who, "tools/call", params, &a);
	fake_expect(&a, 200, MCP_INVALID_PARAMS);
	fake_expect_has(a.body, "params.requestState");
	assert_int_equal(asker.called, before);
	fake_clear(&a);
}

TEST(a_changed_state_is_refused)
{
	static const char *const states[] = {
	    "7", "null", "{}", "\"\"", "\"step 1\"", "\"AAAA\"", "\"\\u0000\""};
	struct ground *g = *state;
	AUTO(auto_free) char *kept = first_round(g, "");
	AUTO(auto_free)
	char *changed = xasprintf(
	    "{\"name\":\"asker\",\"requestState\":\"%s-TAMPERED\"}", kept);

	expect_bad_state(g, &fake_alice, changed);
	for (size_t i = 0; i < ARRAY_LEN(states); i++) {
		AUTO(auto_free)
		char *params = xasprintf(
		    "{\"name\":\"asker\",\"requestState\":%s}", states[i]);

		expect_bad_state(g, &fake_alice, params);
	}
}

TEST(a_state_is_its_principals_alone)
{
	struct ground *g = *state;
	AUTO(auto_free) char *kept = first_round(g, "");
	AUTO(auto_free)
	char *params =
	    xasprintf("{\"name\":\"asker\",\"requestState\":\"%s\"}", kept);

	expect_bad_state(g, fake_bob(), params);
}

TEST(a_state_is_of_one_tool_and_its_arguments)
{
	struct ground *g = *state;
	AUTO(auto_free)
	char *kept = first_round(g, ",\"arguments\":{\"a\":1,\"b\":2}");
	static const char *const others[] = {"\"name\":\"asker\"",
	    "\"name\":\"asker\",\"arguments\":{\"a\":1}",
	    "\"name\":\"asker\",\"arguments\":{\"a\":1,\"b\":3}",
	    "\"name\":\"asker\",\"arguments\":{\"a\":1,\"b\":2,\"c\":3}",
	    "\"name\":\"other\",\"arguments\":{\"a\":1,\"b\":2}"};
	AUTO(auto_free)
	char *same = xasprintf(",\"arguments\":{\"b\":2,\"a\":1}"
			       ",\"requestState\":\"%s\"",
	    kept);
	struct fake_answer a;

	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		AUTO(auto_free)
		char *params =
		    xasprintf("{%s,\"requestState\":\"%s\"}", others[i], kept);

		expect_bad_state(g, &fake_alice, params);
	}
	call(g, same, &a);
	expect_done(&a);
	fake_clear(&a);
}

TEST(a_state_is_good_for_an_hour)
{
	struct ground *g = *state;
	AUTO(auto_json) json_t *arguments = json_object();
	const struct request_bound bound = {
	    &fake_alice, "tools/call", "asker", arguments};
	int64_t now_s = clock_wall_ms() / 1000;
	AUTO(auto_free)
	char *old = request_state_make(session_signer(g->m->sessions), &bound,
	    "s", now_s - REQUEST_STATE_TTL_S - 1);
	AUTO(auto_free)
	char *young = request_state_make(session_signer(g->m->sessions), &bound,
	    "s", now_s - REQUEST_STATE_TTL_S + 60);
	AUTO(auto_free)
	char *params =
	    xasprintf("{\"name\":\"asker\",\"requestState\":\"%s\"}", old);
	AUTO(auto_free)
	char *more = xasprintf(",\"requestState\":\"%s\"", young);
	struct fake_answer a;

	expect_bad_state(g, &fake_alice, params);
	call(g, more, &a);
	assert_string_equal(asker.states[0], "s");
	fake_clear(&a);
}

TEST(other_methods_take_no_answers)
{
	struct ground *g = *state;
	struct fake_answer a;

	asker.rounds = 0;
	ask_as(g->m, &fake_alice, "resources/list",
	    "{\"inputResponses\":7,\"requestState\":7}", &a);
	fake_expect(&a, 200, 0);
	assert_null(asker.answers[0]);
	fake_clear(&a);
}

/* ---- what the client can */

TEST(what_a_client_lacks_is_named)
{
	struct ground *g = *state;
	struct fake_answer a;

	client_can = can_bit(MCP_CAN_SAMPLE);
	call(g, "", &a);
	fake_expect(&a, 400, MCP_CAPABILITY_MISSING);
	fake_expect_has(
	    a.body, "\"data\":{\"requiredCapabilities\":{\"elicitation\":{}}}");
	fake_clear(&a);
	asker.called = 0;
	asker.questions = "{\"a\":{\"method\":\"sampling/createMessage\"}}";
	call(g, "", &a);
	fake_expect(&a, 200, 0);
	fake_expect_has(a.body, "input_required");
	fake_clear(&a);
}

TEST(a_function_may_need_a_capability)
{
	struct ground *g = *state;
	struct fake_answer a;

	asker.waits = true;
	call(g, "", &a);
	assert_true(mcp_call_can(asker.held, MCP_CAN_SAMPLE));
	assert_false(mcp_call_can(asker.held, MCP_CAN_TASKS));
	mcp_call_need(asker.held, MCP_CAN_TASKS);
	fake_expect(&a, 400, MCP_CAPABILITY_MISSING);
	fake_expect_has(a.body,
	    "\"requiredCapabilities\":{\"extensions\":"
	    "{\"io.modelcontextprotocol/tasks\":{}}}");
	fake_clear(&a);
}

TEST(a_result_that_its_offer_holds_stays_as_it_is)
{
	struct ground *g = *state;
	AUTO(auto_json)
	json_t *held =
	    json_pack("{s:[], s:{s:i}}", "contents", "_meta", "x", 1);
	AUTO(auto_free) char *text = NULL;
	struct fake_answer a;

	asker.waits = true;
	ask_as(g->m, &fake_alice, "resources/read", "{\"uri\":\"x://y\"}", &a);
	mcp_call_answer(asker.held, json_incref(held));
	fake_expect(&a, 200, 0);
	fake_expect_has(a.body, "\"resultType\":\"complete\"");
	fake_expect_has(a.body, "serverInfo");
	text = js_dump(held);
	assert_string_equal(text, "{\"contents\":[],\"_meta\":{\"x\":1}}");
	fake_clear(&a);
}

TEST(a_resource_that_is_not_there_is_a_bad_parameter)
{
	struct ground *g = *state;
	struct fake_answer a;

	asker.waits = true;
	ask_as(g->m, &fake_alice, "resources/read", "{\"uri\":\"x://y\"}", &a);
	mcp_call_no_resource(asker.held, "x://y");
	fake_expect(&a, 200, MCP_INVALID_PARAMS);
	fake_expect_has(a.body, "\"data\":{\"uri\":\"x://y\"}");
	fake_clear(&a);
}

TEST_MAIN(setup_asker, teardown_asker)

/* prompts/list, prompts/get and completion/complete. */
#include "common/js.h"
#include "supervisor/mcp/offer.h"
#include "supervisor/mcp/list_page.h"
#include "supervisor/mcp/prompts.h"
#include "supervisor/mcp/shape.h"
#include "tests/unit/mcp/call_ground.h"

#define GET(params)                                                            \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"prompts/get\","            \
	"\"params\":" params "}"
#define LIST(params)                                                           \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"prompts/list\","           \
	"\"params\":" params "}"
#define COMPLETE(params)                                                       \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"completion/complete\","    \
	"\"params\":" params "}"
#define GREETING                                                               \
	"{\"name\":\"greeting\",\"title\":\"A greeting\",\"description\":"     \
	"\"d\",\"arguments\":[{\"name\":\"whom\",\"title\":\"Whom\","          \
	"\"required\":true},{\"name\":\"how\"}]}"

static struct mcp_call *held;

static void
greeting_cb(struct mcp_call *c, const json_t *arguments, void *arg)
{
	const char *whom = js_text(arguments, "whom");

	(void)arg;
	if (strcmp(whom, "later") == 0) {
		held = c;
		return;
	}
	mcp_call_answer(c,
	    json_pack("{s:[{s:s, s:{s:s, s:s}}]}", "messages", "role", "user",
		"content", "type", "text", "text", whom));
}

static int
add(struct mcp *m, const char *text, struct err *e)
{
	AUTO(auto_json) json_t *definition = json_loads(text, 0, NULL);

	assert_non_null(definition);
	return mcp_add_prompt(m, definition, greeting_cb, NULL, e);
}

static int
setup_prompts(void **state)
{
	struct ground *g;
	struct err e;

	setup(state);
	g = *state;
	assert_int_equal(add(g->m, GREETING, &e), 0);
	return 0;
}

static void
expect_result(struct ground *g, const char *body, const char *want)
{
	struct fake_answer a;

	fake_post(g->m, &g->client, body, &a);
	fake_expect(&a, 200, 0);
	fake_expect_has(a.body, want);
	fake_clear(&a);
}

static void
expect_bad(struct ground *g, const char *body, const char *why)
{
	struct fake_answer a;

	fake_post(g->m, &g->client, body, &a);
	fake_expect(&a, 200, MCP_INVALID_PARAMS);
	fake_expect_has(a.body, why);
	fake_clear(&a);
}

static void
expect_unknown(struct ground *g, const char *body)
{
	fake_ask(g->m, &g->client, body, 200, MCP_METHOD_NOT_FOUND);
}

/* ---- prompts */

TEST(the_list_has_what_was_registered)
{
	expect_result(
	    *state, LIST("{}"), "\"result\":{\"prompts\":[" GREETING "]}}");
	expect_result(*state, LIST("{\"cursor\":\"\"}"), GREETING);
}

TEST(a_long_list_comes_in_pages)
{
	struct ground *g = *state;
	struct err e;

	for (int i = 0; i < LIST_PAGE_LEN; i++) {
		AUTO(auto_free) char *text = xasprintf("{\"name\":\"p%d\"}", i);

		assert_int_equal(add(g->m, text, &e), 0);
	}
	expect_result(g, LIST("{}"), "\"nextCursor\":\"1\"");
	expect_result(g, LIST("{\"cursor\":\"1\"}"),
	    "\"result\":{\"prompts\":[{\"name\":\"p99\"}]}");
	expect_bad(g, LIST("{\"cursor\":\"2\"}"), "unknown cursor");
	expect_bad(g, LIST("{\"cursor\":7}"), "nextCursor");
}

TEST(a_prompt_is_got_by_name_and_arguments)
{
	expect_result(*state,
	    GET("{\"name\":\"greeting\",\"arguments\":{\"whom\":\"you\"}}"),
	    "\"result\":{\"messages\":[{\"role\":\"user\",\"content\":"
	    "{\"type\":\"text\",\"text\":\"you\"}}]}");
}

TEST(a_prompt_may_answer_later)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client,
	    GET("{\"name\":\"greeting\",\"arguments\":{\"whom\":\"later\"}}"),
	    &a);
	assert_int_equal(a.replies, 0);
	mcp_call_answer(held, json_pack("{s:[]}", "messages"));
	fake_expect(&a, 200, 0);
	fake_clear(&a);
}

TEST(a_prompt_that_is_not_there_is_named)
{
	expect_bad(*state, GET("{\"name\":\"x\"}"), "Unknown prompt: x");
	expect_bad(
	    *state, GET("{\"name\":\"greeting\\u0000\"}"), "Unknown prompt");
	expect_bad(*state, GET("{}"), "params.name");
	expect_bad(*state, GET("{\"name\":7}"), "params.name");
}

TEST(arguments_are_strings_and_the_required_ones_are_there)
{
	expect_bad(
	    *state, GET("{\"name\":\"greeting\"}"), "argument whom is missing");
	expect_bad(*state, GET("{\"name\":\"greeting\",\"arguments\":[]}"),
	    "params.arguments must be an object");
	expect_bad(*state,
	    GET("{\"name\":\"greeting\",\"arguments\":{\"whom\":7}}"),
	    "argument whom must be a string");
	expect_bad(*state,
	    GET("{\"name\":\"greeting\",\"arguments\":{\"whom\":\"a\","
		"\"how\":null}}"),
	    "argument how must be a string");
	expect_bad(*state,
	    GET("{\"name\":\"greeting\",\"arguments\":{\"whom\":\"\\u0000\"}}"),
	    "without NUL");
}

TEST(what_can_be_no_prompt_is_not_taken)
{
	static const char *const texts[] = {"{}", "{\"name\":\"\"}",
	    "{\"name\":7}", "{\"name\":\"x\",\"arguments\":{}}",
	    "{\"name\":\"x\",\"arguments\":[{}]}",
	    "{\"name\":\"x\",\"arguments\":[{\"name\":\"y\",\"required\":1}]}"};
	struct ground *g = *state;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		assert_int_equal(add(g->m, texts[i], &e), ERR_INVAL);
	assert_int_equal(add(g->m, GREETING, &e), ERR_INVAL);
}

TEST(without_a_prompt_there_are_no_methods)
{
	struct mcp *m = fake_server();
	char *session = fake_session(m);
	struct fake_client c = fake_client(session);

	fake_ask(m, &c, LIST("{}"), 200, MCP_METHOD_NOT_FOUND);
	free(session);
	mcp_free(m);
}

TEST(initialize_announces_prompts)
{
	struct ground *g = *state;
	struct fake_client c = fake_client(NULL);
	struct fake_answer a;

	fake_post(g->m, &c, FAKE_INITIALIZE("2025-11-25"), &a);
	fake_expect_has(a.body,
	    "\"capabilities\":{\"tools\":{},\"prompts\":{},\"logging\":{}}");
	fake_clear(&a);
}

/* ---- what revisions do not know */

TEST(members_are_left_out_before_their_revision)
{
	AUTO(auto_json) json_t *prompt = json_loads(GREETING, 0, NULL);
	AUTO(auto_json) json_t *old = shape_item(&era_table[0], prompt);
	AUTO(auto_free) char *text = js_dump(old);
	AUTO(auto_free) char *same = js_dump(prompt);

	assert_string_equal(text,
	    "{\"name\":\"greeting\",\"description\":\"d\",\"arguments\":["
	    "{\"name\":\"whom\",\"required\":true},{\"name\":\"how\"}]}");
	assert_string_equal(same, GREETING);
}

/* ---- completion */

static struct {
	char *prompt, *uri, *argument, *value, *context;
	int values; /* to answer with */
} asked;

static void
forget_asked(void)
{
	free(asked.prompt);
	free(asked.uri);
	free(asked.argument);
	free(asked.value);
	free(asked.context);
	memset(&asked, 0, sizeof(asked));
}

static void
complete_cb(struct mcp_call *c, const struct mcp_completion *what, void *arg)
{
	json_t *values = json_array();
	int n = asked.values;

	(void)arg;
	forget_asked();
	asked.prompt = what->prompt == NULL ? NULL : xstrdup(what->prompt);
	asked.uri = what->uri == NULL ? NULL : xstrdup(what->uri);
	asked.argument = xstrdup(what->argument);
	asked.value = xstrdup(what->value);
	asked.context = what->context == NULL ? NULL : js_dump(what->context);
	for (int i = 0; i < n; i++)
		json_array_append_new(values, json_integer(i));
	mcp_call_answer(
	    c, json_pack("{s:{s:o}}", "completion", "values", values));
}

#define REF "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"greeting\"}"
#define ARGUMENT "\"argument\":{\"name\":\"how\",\"value\":\"w\"}"

TEST(a_prompts_argument_is_completed)
{
	struct ground *g = *state;

	mcp_set_completion(g->m, complete_cb, NULL);
	expect_result(g,
	    COMPLETE("{" REF "," ARGUMENT
		     ",\"context\":{\"arguments\":{\"whom\":\"x\"}}}"),
	    "\"result\":{\"completion\":{\"values\":[]}}");
	assert_string_equal(asked.prompt, "greeting");
	assert_string_equal(asked.argument, "how");
	assert_string_equal(asked.value, "w");
	assert_string_equal(asked.context, "{\"whom\":\"x\"}");
	forget_asked();
}

TEST(no_more_than_a_hundred_values_are_sent)
{
	struct ground *g = *state;

	mcp_set_completion(g->m, complete_cb, NULL);
	asked.values = 100;
	expect_result(g, COMPLETE("{" REF "," ARGUMENT "}"), "98,99]}");
	asked.values = 101;
	expect_result(
	    g, COMPLETE("{" REF "," ARGUMENT "}"), "98,99],\"hasMore\":true}");
	forget_asked();
}

TEST(what_cannot_be_completed_is_refused)
{
	static const struct {
		const char *params, *why;
	} cases[] = {
	    {"{}", "params.argument"},
	    {"{" REF "}", "params.argument"},
	    {"{" REF ",\"argument\":{\"name\":\"how\"}}", "params.argument"},
	    {"{" REF ",\"argument\":{\"name\":\"how\",\"value\":7}}",
		"params.argument"},
	    {"{" REF ",\"argument\":{\"name\":\"x\",\"value\":\"\"}}",
		"has no argument x"},
	    {"{" ARGUMENT "}", "params.ref"},
	    {"{\"ref\":7," ARGUMENT "}", "params.ref"},
	    {"{\"ref\":{\"type\":\"x\",\"name\":\"greeting\"}," ARGUMENT "}",
		"params.ref"},
	    {"{\"ref\":{\"type\":\"ref/prompt\",\"name\":\"x\"}," ARGUMENT "}",
		"Unknown prompt: x"},
	    {"{\"ref\":{\"type\":\"ref/prompt\"}," ARGUMENT "}", "params.ref"},
	    {"{\"ref\":{\"type\":\"ref/resource\",\"uri\":\"a://b\"}," ARGUMENT
	     "}",
		"Unknown resource template: a://b"},
	    {"{" REF "," ARGUMENT ",\"context\":{\"arguments\":[]}}",
		"params.context.arguments"},
	    {"{" REF "," ARGUMENT ",\"context\":{\"arguments\":{\"whom\":7}}}",
		"params.context.arguments.whom"},
	};
	struct ground *g = *state;

	mcp_set_completion(g->m, complete_cb, NULL);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(auto_free)
		char *body = xasprintf("{\"jsonrpc\":\"2.0\",\"id\":1,"
				       "\"method\":\"completion/complete\","
				       "\"params\":%s}",
		    cases[i].params);

		expect_bad(g, body, cases[i].why);
	}
	assert_null(asked.prompt);
}

TEST(a_templates_variable_is_completed)
{
	static const struct mcp_resource_ops ops = {.list = NULL};
	AUTO(auto_json)
	json_t *templates = json_pack(
	    "[{s:s, s:s}]", "uriTemplate", "files://{path}", "name", "files");
	struct ground *g = *state;

	mcp_set_resources(g->m, templates, &ops, NULL);
	mcp_set_completion(g->m, complete_cb, NULL);
	expect_result(g,
	    COMPLETE("{\"ref\":{\"type\":\"ref/resource\",\"uri\":"
		     "\"files://{path}\"}," ARGUMENT "}"),
	    "\"values\":[]");
	assert_null(asked.prompt);
	assert_string_equal(asked.uri, "files://{path}");
	forget_asked();
}

TEST(without_a_function_there_is_no_completion)
{
	expect_unknown(*state, COMPLETE("{" REF "," ARGUMENT "}"));
}

TEST(initialize_announces_completions)
{
	struct ground *g = *state;
	struct fake_client c = fake_client(NULL);
	struct fake_answer a;

	mcp_set_completion(g->m, complete_cb, NULL);
	fake_post(g->m, &c, FAKE_INITIALIZE("2025-06-18"), &a);
	fake_expect_has(
	    a.body, "\"prompts\":{},\"completions\":{},\"logging\":{}}");
	fake_clear(&a);
}

TEST_MAIN(setup_prompts, teardown)

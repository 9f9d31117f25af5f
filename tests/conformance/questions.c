/*
 * questions.c - tools that ask the client: for a form, a completion of its
 * model, its roots
 *
 * The library asks in whatever way the client's revision has: each function
 * here is called again with the answers.  These come from the client, and
 * nobody checked them.
 */
#include "tests/conformance/fixtures.h"

#include "common/js.h"
#include "common/xmalloc.h"

#define NAME_SCHEMA                                                            \
	"{\"type\": \"object\", \"required\": [\"name\"],"                     \
	" \"properties\": {\"name\": {\"type\": \"string\"}}}"
#define CONFIRM_SCHEMA                                                         \
	"{\"type\": \"object\", \"required\": [\"ok\"],"                       \
	" \"properties\": {\"ok\": {\"type\": \"boolean\"}}}"

/* ---- questions */

static json_t *
form(const char *message, const char *schema)
{
	return json_pack("{s:s, s:{s:s, s:o}}", "method", "elicitation/create",
	    "params", "message", message, "requestedSchema",
	    fixture_json(schema));
}

static json_t *
sampling(const char *prompt, int max_tokens)
{
	return json_pack("{s:s, s:{s:[{s:s, s:{s:s, s:s}}], s:i}}", "method",
	    "sampling/createMessage", "params", "messages", "role", "user",
	    "content", "type", "text", "text", prompt, "maxTokens", max_tokens);
}

static json_t *
roots(void)
{
	return json_pack("{s:s, s:{}}", "method", "roots/list", "params");
}

/* Ends the call with one question, or for a client that cannot be asked. */
static void
ask(struct mcp_call *c, enum mcp_can can, const char *key, json_t *question,
    const char *state)
{
	if (mcp_call_can(c, can)) {
		mcp_call_ask(c, json_pack("{s:o}", key, question), state);
		return;
	}
	json_decref(question);
	mcp_call_need(c, can);
}

/* ---- answers */

/* The answer to a question; NULL: none, or one that is no object. */
static const json_t *
answer_to(const struct mcp_call *c, const char *key)
{
	const json_t *answer = json_object_get(mcp_call_answers(c), key);

	return json_is_object(answer) ? answer : NULL;
}

/* What was filled in; NULL: the form was not accepted. */
static const json_t *
filled_in(const struct mcp_call *c, const char *key)
{
	const json_t *answer = answer_to(c, key);

	return strcmp(js_text(answer, "action"), "accept") == 0 ?
	    json_object_get(answer, "content") :
	    NULL;
}

static bool
has_state(const struct mcp_call *c, const char *want)
{
	const char *state = mcp_call_state(c);

	return state != NULL && strcmp(state, want) == 0;
}

static void
say_with(struct mcp_call *c, const char *before, const json_t *o)
{
	AUTO(auto_free) char *json = js_dump(o);
	AUTO(auto_free) char *text = xasprintf("%s%s", before, json);

	fixture_say(c, text);
}

/* ---- as until 2025-11-25 */

static void
on_sampling(struct mcp_call *c, json_t *arguments, void *arg)
{
	const json_t *answer = answer_to(c, "sample");
	AUTO(auto_free) char *text = NULL;

	(void)arg;
	if (answer == NULL) {
		ask(c, MCP_CAN_SAMPLE, "sample",
		    sampling(js_text(arguments, "prompt"), 100), NULL);
		return;
	}
	text = xasprintf("LLM response: %s",
	    js_text(json_object_get(answer, "content"), "text"));
	fixture_say(c, text);
}

static void
ask_form(struct mcp_call *c, const char *said, const char *message,
    const char *schema)
{
	const json_t *answer = answer_to(c, "form");

	if (answer == NULL)
		ask(c, MCP_CAN_ELICIT, "form", form(message, schema), NULL);
	else
		say_with(c, said, answer);
}

static void
on_elicitation(struct mcp_call *c, json_t *arguments, void *arg)
{
	static const char schema[] =
	    "{\"type\": \"object\", \"required\": [\"username\", \"email\"],"
	    "\"properties\": {"
	    "  \"username\": {\"type\": \"string\","
	    "    \"description\": \"User's response\"},"
	    "  \"email\": {\"type\": \"string\","
	    "    \"description\": \"User's email address\"}}}";

	(void)arg;
	ask_form(c, "User response: ", js_text(arguments, "message"), schema);
}

static void
on_defaults(struct mcp_call *c, json_t *arguments, void *arg)
{
	static const char schema[] =
	    "{\"type\": \"object\", \"required\": [], \"properties\": {"
	    "\"name\": {\"type\": \"string\", \"default\": \"John Doe\"},"
	    "\"age\": {\"type\": \"integer\", \"default\": 30},"
	    "\"score\": {\"type\": \"number\", \"default\": 95.5},"
	    "\"status\": {\"type\": \"string\", \"default\": \"active\","
	    "  \"enum\": [\"active\", \"inactive\", \"pending\"]},"
	    "\"verified\": {\"type\": \"boolean\", \"default\": true}}}";

	(void)arguments;
	(void)arg;
	ask_form(c, "Elicitation completed: ", "Look at the defaults", schema);
}

static void
on_enums(struct mcp_call *c, json_t *arguments, void *arg)
{
	static const char schema[] =
	    "{\"type\": \"object\", \"required\": [], \"properties\": {"
	    "\"untitledSingle\": {\"type\": \"string\","
	    "  \"enum\": [\"option1\", \"option2\", \"option3\"]},"
	    "\"titledSingle\": {\"type\": \"string\", \"oneOf\": ["
	    "  {\"const\": \"value1\", \"title\": \"First Option\"},"
	    "  {\"const\": \"value2\", \"title\": \"Second Option\"},"
	    "  {\"const\": \"value3\", \"title\": \"Third Option\"}]},"
	    "\"legacyEnum\": {\"type\": \"string\","
	    "  \"enum\": [\"opt1\", \"opt2\", \"opt3\"], \"enumNames\":"
	    "  [\"Option One\", \"Option Two\", \"Option Three\"]},"
	    "\"untitledMulti\": {\"type\": \"array\", \"items\": {"
	    "  \"type\": \"string\","
	    "  \"enum\": [\"option1\", \"option2\", \"option3\"]}},"
	    "\"titledMulti\": {\"type\": \"array\", \"items\": {\"anyOf\": ["
	    "  {\"const\": \"value1\", \"title\": \"First Choice\"},"
	    "  {\"const\": \"value2\", \"title\": \"Second Choice\"},"
	    "  {\"const\": \"value3\", \"title\": \"Third Choice\"}]}}}}";

	(void)arguments;
	(void)arg;
	ask_form(c, "Elicitation completed: ", "Choose", schema);
}

/* ---- as since 2026-07-28: input_required */

static void
on_name(struct mcp_call *c, json_t *arguments, void *arg)
{
	const char *name = json_string_value(
	    json_object_get(filled_in(c, "user_name"), "name"));
	AUTO(auto_free) char *text = NULL;

	(void)arguments;
	(void)arg;
	if (name == NULL) {
		ask(c, MCP_CAN_ELICIT, "user_name",
		    form("What is your name?", NAME_SCHEMA), NULL);
		return;
	}
	text = xasprintf("Hello, %s!", name);
	fixture_say(c, text);
}

static void
on_capital(struct mcp_call *c, json_t *arguments, void *arg)
{
	const json_t *answer = answer_to(c, "capital_question");

	(void)arguments;
	(void)arg;
	if (answer == NULL)
		ask(c, MCP_CAN_SAMPLE, "capital_question",
		    sampling("What is the capital of France?", 100), NULL);
	else
		fixture_say(
		    c, js_text(json_object_get(answer, "content"), "text"));
}

static void
on_roots(struct mcp_call *c, json_t *arguments, void *arg)
{
	const json_t *answer = answer_to(c, "client_roots");

	(void)arguments;
	(void)arg;
	if (!json_is_array(json_object_get(answer, "roots")))
		ask(c, MCP_CAN_LIST_ROOTS, "client_roots", roots(), NULL);
	else
		say_with(c, "Roots: ", json_object_get(answer, "roots"));
}

/* The state that comes back is the one that was given, or the library refused
 * it. */
static void
on_state(struct mcp_call *c, json_t *arguments, void *arg)
{
	const json_t *ok = json_object_get(filled_in(c, "confirm"), "ok");

	(void)arguments;
	(void)arg;
	if (json_is_boolean(ok) && has_state(c, "confirming"))
		fixture_say(c, "state-ok");
	else
		ask(c, MCP_CAN_ELICIT, "confirm",
		    form("Please confirm", CONFIRM_SCHEMA), "confirming");
}

static void
on_three(struct mcp_call *c, json_t *arguments, void *arg)
{
	(void)arguments;
	(void)arg;
	if (filled_in(c, "user_name") != NULL &&
	    answer_to(c, "greeting") != NULL &&
	    answer_to(c, "client_roots") != NULL && has_state(c, "three"))
		say_with(c, "Answers: ", mcp_call_answers(c));
	else if (!mcp_call_can(c, MCP_CAN_ELICIT))
		mcp_call_need(c, MCP_CAN_ELICIT);
	else if (!mcp_call_can(c, MCP_CAN_SAMPLE))
		mcp_call_need(c, MCP_CAN_SAMPLE);
	else if (!mcp_call_can(c, MCP_CAN_LIST_ROOTS))
		mcp_call_need(c, MCP_CAN_LIST_ROOTS);
	else
		mcp_call_ask(c,
		    json_pack("{s:o, s:o, s:o}", "user_name",
			form("What is your name?", NAME_SCHEMA), "greeting",
			sampling("Generate a greeting", 50), "client_roots",
			roots()),
		    "three");
}

static void
on_rounds(struct mcp_call *c, json_t *arguments, void *arg)
{
	static const char color_schema[] =
	    "{\"type\": \"object\", \"required\": [\"color\"],"
	    " \"properties\": {\"color\": {\"type\": \"string\"}}}";

	(void)arguments;
	(void)arg;
	if (has_state(c, "round 2") && filled_in(c, "step2") != NULL)
		say_with(c, "Favorite color: ", filled_in(c, "step2"));
	else if (has_state(c, "round 1") && filled_in(c, "step1") != NULL)
		ask(c, MCP_CAN_ELICIT, "step2",
		    form("Step 2: What is your favorite color?", color_schema),
		    "round 2");
	else
		ask(c, MCP_CAN_ELICIT, "step1",
		    form("Step 1: What is your name?", NAME_SCHEMA), "round 1");
}

/* Asks whatever this client can be asked. */
static void
on_capabilities(struct mcp_call *c, json_t *arguments, void *arg)
{
	json_t *questions;

	(void)arguments;
	(void)arg;
	if (mcp_call_answers(c) != NULL) {
		say_with(c, "Answers: ", mcp_call_answers(c));
		return;
	}
	questions = json_object();
	if (mcp_call_can(c, MCP_CAN_ELICIT))
		json_object_set_new(questions, "user_name",
		    form("What is your name?", NAME_SCHEMA));
	if (mcp_call_can(c, MCP_CAN_SAMPLE))
		json_object_set_new(
		    questions, "greeting", sampling("Generate a greeting", 50));
	if (json_object_size(questions) > 0) {
		mcp_call_ask(c, questions, NULL);
		return;
	}
	json_decref(questions);
	mcp_call_need(c, MCP_CAN_SAMPLE);
}

/* ---- what a client must be able to do */

static void
on_missing_capability(struct mcp_call *c, json_t *arguments, void *arg)
{
	(void)arguments;
	(void)arg;
	if (mcp_call_can(c, MCP_CAN_SAMPLE))
		fixture_say(c, "this client can be asked for samples");
	else
		mcp_call_need(c, MCP_CAN_SAMPLE);
}

static void
streaming_step(struct fixtures *f, struct mcp_call *c, unsigned int step)
{
	(void)f;
	(void)step;
	ask(c, MCP_CAN_ELICIT, "user_name",
	    form("What is your name?", NAME_SCHEMA), NULL);
}

static void
on_streaming(struct mcp_call *c, json_t *arguments, void *arg)
{
	(void)arguments;
	if (filled_in(c, "user_name") != NULL) {
		say_with(c, "Answers: ", mcp_call_answers(c));
		return;
	}
	mcp_call_progress(c, 1, 2, "about to ask");
	fixture_wait(arg, c, 50, streaming_step, 0);
}

#define ONE_STRING(name)                                                       \
	"{\"type\": \"object\", \"required\": [\"" name "\"],"                 \
	" \"properties\": {\"" name "\": {\"type\": \"string\"}}}"

static const struct fixture_tool tools[] = {
    {"test_sampling", "Asks the client's model", ONE_STRING("prompt"), NULL,
	on_sampling},
    {"test_elicitation", "Asks the client's user", ONE_STRING("message"), NULL,
	on_elicitation},
    {"test_elicitation_sep1034_defaults", "Asks with defaults", NULL, NULL,
	on_defaults},
    {"test_elicitation_sep1330_enums", "Asks for choices", NULL, NULL,
	on_enums},
    {"test_input_required_result_elicitation", "Asks for a name", NULL, NULL,
	on_name},
    {"test_input_required_result_sampling", "Asks for a capital", NULL, NULL,
	on_capital},
    {"test_input_required_result_list_roots", "Asks for roots", NULL, NULL,
	on_roots},
    {"test_input_required_result_request_state", "Asks, with a state", NULL,
	NULL, on_state},
    {"test_input_required_result_multiple_inputs", "Asks three at once", NULL,
	NULL, on_three},
    {"test_input_required_result_multi_round", "Asks twice", NULL, NULL,
	on_rounds},
    {"test_input_required_result_tampered_state", "Asks, with a state", NULL,
	NULL, on_state},
    {"test_input_required_result_capabilities", "Asks what can be asked", NULL,
	NULL, on_capabilities},
    {"test_missing_capability", "Wants a client that samples", NULL, NULL,
	on_missing_capability},
    {"test_streaming_elicitation", "Asks after some progress", NULL, NULL,
	on_streaming},
};

void
question_fixtures(struct fixtures *f)
{
	fixture_add_tools(f, tools, ARRAY_LEN(tools));
}

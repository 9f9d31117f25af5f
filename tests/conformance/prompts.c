/* prompts.c - prompts, and the completion of their arguments */
#include "tests/conformance/fixtures.h"

#include "common/exit.h"
#include "common/js.h"
#include "common/log.h"
#include "common/xmalloc.h"

/* ---- messages */

static json_t *
text_message(const char *text)
{
	return json_pack("{s:s, s:{s:s, s:s}}", "role", "user", "content",
	    "type", "text", "text", text);
}

static void
answer_messages(struct mcp_call *c, json_t *first, json_t *second)
{
	json_t *messages = json_pack("[o]", first);

	if (second != NULL)
		json_array_append_new(messages, second);
	mcp_call_answer(c, json_pack("{s:o}", "messages", messages));
}

/* ---- each prompt */

static void
on_simple(struct mcp_call *c, const json_t *arguments, void *arg)
{
	(void)arguments;
	(void)arg;
	answer_messages(
	    c, text_message("This is a simple prompt for testing."), NULL);
}

static void
on_arguments(struct mcp_call *c, const json_t *arguments, void *arg)
{
	AUTO(auto_free)
	char *text = xasprintf("Prompt with arguments: arg1='%s', arg2='%s'",
	    js_text(arguments, "arg1"), js_text(arguments, "arg2"));

	(void)arg;
	answer_messages(c, text_message(text), NULL);
}

static void
on_embedded(struct mcp_call *c, const json_t *arguments, void *arg)
{
	json_t *message = json_pack("{s:s, s:{s:s, s:{s:s, s:s, s:s}}}", "role",
	    "user", "content", "type", "resource", "resource", "uri",
	    js_text(arguments, "resourceUri"), "mimeType", "text/plain", "text",
	    "Embedded resource content for testing.");

	(void)arg;
	answer_messages(c, message,
	    text_message("Please process the embedded resource above."));
}

static void
on_image(struct mcp_call *c, const json_t *arguments, void *arg)
{
	json_t *message = json_pack("{s:s, s:{s:s, s:s, s:s}}", "role", "user",
	    "content", "type", "image", "data", FIXTURE_PNG_BASE64, "mimeType",
	    "image/png");

	(void)arguments;
	(void)arg;
	answer_messages(
	    c, message, text_message("Please analyze the image above."));
}

static void
on_context(struct mcp_call *c, const json_t *arguments, void *arg)
{
	static const char schema[] =
	    "{\"type\": \"object\", \"required\": [\"context\"],"
	    " \"properties\": {\"context\": {\"type\": \"string\"}}}";
	const json_t *answer =
	    json_object_get(mcp_call_answers(c), "user_context");
	const char *context = json_string_value(
	    json_object_get(json_object_get(answer, "content"), "context"));
	AUTO(auto_free) char *text = NULL;

	(void)arguments;
	(void)arg;
	if (context != NULL) {
		text = xasprintf("In this context: %s", context);
		answer_messages(c, text_message(text), NULL);
	} else if (mcp_call_can(c, MCP_CAN_ELICIT)) {
		mcp_call_ask(c,
		    json_pack("{s:{s:s, s:{s:s, s:o}}}", "user_context",
			"method", "elicitation/create", "params", "message",
			"What context should the prompt use?",
			"requestedSchema", fixture_json(schema)),
		    NULL);
	} else {
		mcp_call_need(c, MCP_CAN_ELICIT);
	}
}

static const struct fixture_prompt {
	const char *definition;
	mcp_prompt_cb on_get;
} prompts[] = {
    {"{\"name\": \"test_simple_prompt\", \"description\": \"A text\"}",
	on_simple},
    {"{\"name\": \"test_prompt_with_arguments\","
     " \"description\": \"A text with two arguments\", \"arguments\": ["
     "  {\"name\": \"arg1\", \"description\": \"The first\","
     "   \"required\": true},"
     "  {\"name\": \"arg2\", \"description\": \"The second\","
     "   \"required\": true}]}",
	on_arguments},
    {"{\"name\": \"test_prompt_with_embedded_resource\","
     " \"description\": \"A resource\", \"arguments\": ["
     "  {\"name\": \"resourceUri\", \"description\": \"Its address\","
     "   \"required\": true}]}",
	on_embedded},
    {"{\"name\": \"test_prompt_with_image\", \"description\": \"An image\"}",
	on_image},
    {"{\"name\": \"test_input_required_result_prompt\","
     " \"description\": \"Asks for a context\"}",
	on_context},
};

/* ---- completion */

/* Of arg1, these; of all else, nothing. */
static void
on_complete(struct mcp_call *c, const struct mcp_completion *what, void *arg)
{
	static const char *const words[] = {"paris", "park", "party"};
	json_t *values = json_array();

	(void)arg;
	for (size_t i = 0;
	     strcmp(what->argument, "arg1") == 0 && i < ARRAY_LEN(words); i++)
		if (strncmp(words[i], what->value, strlen(what->value)) == 0)
			json_array_append_new(values, json_string(words[i]));
	mcp_call_answer(c,
	    json_pack("{s:{s:I, s:b, s:o}}", "completion", "total",
		(json_int_t)json_array_size(values), "hasMore", 0, "values",
		values));
}

void
prompt_fixtures(struct fixtures *f)
{
	struct err e;
	json_t *definition;

	for (size_t i = 0; i < ARRAY_LEN(prompts); i++) {
		definition = fixture_json(prompts[i].definition);
		if (mcp_add_prompt(
			f->mcp, definition, prompts[i].on_get, f, &e) != 0)
			fatal(EXIT_BUG, "%s", e.msg);
		json_decref(definition);
	}
	mcp_set_completion(f->mcp, on_complete, f);
}

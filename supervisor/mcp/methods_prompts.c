/*
 * methods_prompts.c - prompts/list and prompts/get
 */
#include "supervisor/mcp/provider.h"

#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/content.h"
#include "supervisor/mcp/mcp_call.h"
#include "supervisor/mcp/list_page.h"
#include "supervisor/mcp/prompts.h"
#include "supervisor/mcp/shape.h"

#define SINCE_FIRST 20241105

static void
on_list(struct mcp_request *r, const struct mcp_context *c)
{
	const struct prompts *all = c->m->prompts;
	AUTO(auto_json) json_t *result = json_object();
	AUTO(auto_free) char *text = NULL;
	json_t *list = json_array();
	struct list_page page;
	struct err e;

	json_object_set_new(result, "prompts", list);
	if (list_page_find(c->message->params, prompts_count(all), &page, &e) !=
	    0) {
		request_error(r, MCP_INVALID_PARAMS, e.msg, NULL);
		return;
	}
	for (size_t i = page.from; i < page.to; i++)
		json_array_append_new(
		    list, shape_item(c->rev, prompts_at(all, i)->definition));
	list_page_end(&page, prompts_count(all), result);
	text = js_dump(result);
	request_result(r, NULL, text);
}

/* The content of each message. */
static json_t *
shape_messages(const struct era_revision *rev, json_t *result)
{
	json_t *out = json_copy(result), *messages = json_array(), *message;
	size_t i;

	json_array_foreach (json_object_get(result, "messages"), i, message) {
		json_t *mine = json_copy(message);

		json_object_set_new(mine, "content",
		    content_block(rev, json_object_get(message, "content")));
		json_array_append_new(messages, mine);
	}
	json_object_set_new(out, "messages", messages);
	return out;
}

static void
repeat_prompt(struct mcp_call *call, const void *thing, json_t *arguments)
{
	const struct prompt *prompt = thing;

	mcp_call_set_shape(call, shape_messages);
	prompt->on_get(call, arguments, prompt->arg);
}

static const struct call_repeat prompt_repeat = {
    .method = "prompts/get", .run = repeat_prompt};

struct prompt_work {
	const struct prompt *prompt;
	json_t *arguments;
};

static void
run_prompt(struct mcp_call *call, void *arg)
{
	const struct prompt_work *w = arg;

	if (mcp_call_set_repeat(
		call, &prompt_repeat, w->prompt, w->prompt->name, w->arguments))
		repeat_prompt(call, w->prompt, w->arguments);
}

static void
unknown_prompt(struct mcp_request *r, json_t *name)
{
	AUTO(auto_json) json_t *data = json_object();
	AUTO(auto_free) char *message = NULL;

	json_object_set(data, "name", name);
	message = xasprintf("Unknown prompt: %.80s; prompts/list names them",
	    json_string_value(name));
	request_error(r, MCP_INVALID_PARAMS, message, data);
}

static void
on_get(struct mcp_request *r, const struct mcp_context *c)
{
	const json_t *params = c->message->params;
	json_t *name = json_object_get(params, "name");
	AUTO(auto_json)
	json_t *arguments = json_incref(json_object_get(params, "arguments"));
	struct prompt_work work = {.prompt = NULL};
	struct err e;

	if (arguments == NULL)
		arguments = json_object();
	if (!json_is_string(name)) {
		request_error(r, MCP_INVALID_PARAMS,
		    "params.name must be the name of a prompt", NULL);
		return;
	}
	if (!json_is_object(arguments)) {
		request_error(r, MCP_INVALID_PARAMS,
		    "params.arguments must be an object", NULL);
		return;
	}
	work.arguments = arguments;
	if (js_plain(name) != NULL)
		work.prompt = prompts_find(c->m->prompts, js_plain(name));
	if (work.prompt == NULL)
		unknown_prompt(r, name);
	else if (prompt_check(work.prompt, arguments, &e) != 0)
		request_error(r, MCP_INVALID_PARAMS, e.msg, NULL);
	else
		mcp_call_start(r, c, run_prompt, &work);
}

static bool
is_offered(const struct mcp *m)
{
	return prompts_count(m->prompts) > 0;
}

static void
announce(
    const struct mcp *m, const struct era_revision *rev, json_t *capabilities)
{
	(void)rev;
	json_object_set_new(
	    capabilities, "prompts", provider_list_capability(m));
}

static const struct mcp_method methods[] = {
    {"prompts/list", SINCE_FIRST, 0, on_list},
    {"prompts/get", SINCE_FIRST, 0, on_get},
};

const struct mcp_provider methods_prompts = {
    .is_offered = is_offered,
    .announce = announce,
    .methods = methods,
    .nmethods = ARRAY_LEN(methods),
};

/*
 * methods_tools.c - tools/list and tools/call
 */
#include "supervisor/mcp/provider.h"

#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/content.h"
#include "supervisor/mcp/mcp_call.h"
#include "supervisor/mcp/methods_tasks.h"

#define SINCE_FIRST 20241105

static void
bad_params(struct mcp_request *r, const char *message)
{
	request_error(r, MCP_INVALID_PARAMS, message, NULL);
}

static void
on_list(struct mcp_request *r, const struct mcp_context *c)
{
	const json_t *cursor = json_object_get(c->message->params, "cursor");

	/* All tools are one page: no cursor was ever given out. */
	if (cursor != NULL &&
	    (!json_is_string(cursor) || json_string_length(cursor) != 0)) {
		bad_params(r,
		    "unknown cursor: the list has one page; ask "
		    "without a cursor");
		return;
	}
	request_result(r, NULL, registry_list(c->m->registry, c->session->rev));
}

static void
unknown_tool(struct mcp_request *r, json_t *name)
{
	AUTO(auto_json) json_t *data = json_object();
	AUTO(auto_free) char *message = NULL;

	json_object_set(data, "name", name);
	message = xasprintf(
	    "tool_not_found: Unknown tool: %.80s; tools/list names them",
	    json_string_value(name));
	request_error(r, MCP_INVALID_PARAMS, message, data);
}

/* The model can mend these, so they are a result that it sees (MCP
 * 2025-11-25, tools, error handling; allowed before).  Who asked for a task
 * takes no result in its place. */
static void
bad_arguments(struct mcp_request *r, const struct era_revision *rev,
    const struct call_task *task, const char *why)
{
	struct mcp_content *content;
	AUTO(auto_free) char *said = xasprintf("invalid_arguments: %s", why);
	json_t *result;

	if (task->asked) {
		bad_params(r, said);
		return;
	}
	content = mcp_content_new();
	mcp_content_text(content, said, strlen(said));
	result = content_tool_json(rev, content, MCP_TOOL_FAILED);
	mcp_content_free(content);
	request_answer(r, result);
}

struct tool_work {
	const struct registry_tool *tool;
	json_t *arguments;
	struct call_task task;
};

static void
repeat_tool(struct mcp_call *call, const void *thing, json_t *arguments)
{
	const struct registry_tool *tool = thing;

	tool->on_call(call, arguments, tool->arg);
}

/* The model sees it, and may do without. */
static void
refuse_tool(struct mcp_call *call, const char *why)
{
	struct mcp_content *content = mcp_content_new();

	mcp_content_text(content, why, strlen(why));
	mcp_call_result(call, content, MCP_TOOL_FAILED);
}

static const struct call_repeat tool_repeat = {
    .method = "tools/call", .run = repeat_tool, .refuse = refuse_tool};

static void
run_tool(struct mcp_call *call, void *arg)
{
	const struct tool_work *w = arg;

	mcp_call_set_task(call, &w->task);
	if (mcp_call_set_repeat(
		call, &tool_repeat, w->tool, w->tool->name, w->arguments))
		repeat_tool(call, w->tool, w->arguments);
}

static void
on_call(struct mcp_request *r, const struct mcp_context *c)
{
	const json_t *params = c->message->params;
	json_t *name = json_object_get(params, "name");
	AUTO(auto_json)
	json_t *arguments = json_incref(json_object_get(params, "arguments"));
	struct tool_work work;
	const struct registry_tool *tool;
	struct err e;

	if (!json_is_string(name)) {
		bad_params(r, "params.name must be the name of a tool");
		return;
	}
	if (arguments == NULL)
		arguments = json_object();
	if (!json_is_object(arguments)) {
		bad_params(r, "params.arguments must be an object");
		return;
	}
	tool = js_plain(name) == NULL ?
	    NULL :
	    registry_find(c->m->registry, json_string_value(name));
	if (tool == NULL) {
		unknown_tool(r, name);
		return;
	}
	if (era_has(c->rev, ERA_STATELESS) &&
	    mirror_set_check(tool->mirrors, arguments, &c->headers, &e) != 0) {
		request_refuse(r, 400, MCP_HEADER_MISMATCH, e.msg);
		return;
	}
	work = (struct tool_work){.tool = tool, .arguments = arguments};
	if (!tasks_admit(r, c, tool, &work.task))
		return;
	schema_tidy(tool->input, arguments, c->message->removed);
	if (schema_check(tool->input, arguments, &e) != 0)
		bad_arguments(r, c->rev, &work.task, e.msg);
	else
		mcp_call_start(r, c, run_tool, &work);
}

static void
announce(
    const struct mcp *m, const struct era_revision *rev, json_t *capabilities)
{
	(void)rev;
	json_object_set_new(capabilities, "tools", provider_list_capability(m));
}

static const struct mcp_method methods[] = {
    {"tools/list", SINCE_FIRST, 0, on_list},
    {"tools/call", SINCE_FIRST, 0, on_call},
};

const struct mcp_provider methods_tools = {
    .announce = announce,
    .methods = methods,
    .nmethods = ARRAY_LEN(methods),
};

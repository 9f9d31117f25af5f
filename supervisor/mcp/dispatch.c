#include "supervisor/mcp/dispatch.h"

#include "common/clock.h"
#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/content.h"
#include "supervisor/mcp/mcp_call.h"

static void
bad_params(struct mcp_request *r, const char *message)
{
	exchange_error(r, MCP_INVALID_PARAMS, message, NULL);
}

/* A JSON string as a C string; NULL when it is none or holds a NUL. */
static const char *
plain_string(const json_t *v)
{
	const char *s = json_string_value(v);

	return s == NULL || strlen(s) != json_string_length(v) ? NULL : s;
}

/* ---- initialize */

static char *
initialize_result(const struct mcp *m, const struct era_revision *rev)
{
	AUTO(auto_json) json_t *result = json_object();
	json_t *info = json_object(), *capabilities = json_object();

	/* What is not named here is not offered: no listChanged either, the
	 * set of tools is fixed. */
	json_object_set_new(capabilities, "tools", json_object());
	json_object_set_new(info, "name", json_string(m->name));
	if (m->title != NULL && era_has(rev, ERA_TITLE))
		json_object_set_new(info, "title", json_string(m->title));
	json_object_set_new(info, "version", json_string(m->version));
	json_object_set_new(result, "protocolVersion", json_string(rev->date));
	json_object_set_new(result, "capabilities", capabilities);
	json_object_set_new(result, "serverInfo", info);
	if (m->instructions != NULL)
		json_object_set_new(
		    result, "instructions", json_string(m->instructions));
	return js_dump(result);
}

void
dispatch_initialize(struct mcp_request *r, const struct dispatch *d)
{
	const json_t *params = d->message->params;
	const json_t *wanted = json_object_get(params, "protocolVersion");
	AUTO(auto_free) char *result = NULL;
	const struct era_revision *rev;
	char id[SESSION_TEXT_LEN + 1];

	if (!json_is_object(params)) {
		bad_params(r,
		    "params must be an object with protocolVersion, "
		    "capabilities and clientInfo");
		return;
	}
	if (!json_is_string(wanted)) {
		bad_params(r,
		    "params.protocolVersion must be a string such as "
		    "\"2025-11-25\"");
		return;
	}
	rev = era_negotiate(json_string_value(wanted));
	session_issue(r->m->sessions, rev, d->who, clock_wall_ms() / 1000, id);
	r->m->stats.sessions++;
	result = initialize_result(r->m, rev);
	exchange_result(r, id, result);
}

/* ---- requests */

static void
on_ping(struct mcp_request *r, const struct dispatch *d)
{
	(void)d;
	exchange_result(r, NULL, "{}");
}

static void
on_tools_list(struct mcp_request *r, const struct dispatch *d)
{
	const json_t *cursor = json_object_get(d->message->params, "cursor");

	/* All tools are one page: no cursor was ever given out. */
	if (cursor != NULL &&
	    (!json_is_string(cursor) || json_string_length(cursor) != 0)) {
		bad_params(r,
		    "unknown cursor: the list has one page; ask "
		    "without a cursor");
		return;
	}
	exchange_result(
	    r, NULL, registry_list(r->m->registry, d->session->rev));
}

static void
unknown_tool(struct mcp_request *r, json_t *name)
{
	AUTO(auto_json) json_t *data = json_object();
	AUTO(auto_free) char *message = NULL;

	json_object_set(data, "name", name);
	message = xasprintf("Unknown tool: %.80s; tools/list names them",
	    json_string_value(name));
	exchange_error(r, MCP_INVALID_PARAMS, message, data);
}

/* The model can mend these, so they are a result that it sees (MCP
 * 2025-11-25, tools, error handling; allowed before). */
static void
bad_arguments(
    struct mcp_request *r, const struct era_revision *rev, const char *why)
{
	struct mcp_content *content = mcp_content_new();
	AUTO(auto_free) char *text = NULL;

	mcp_content_text(content, why, strlen(why));
	text = content_tool_result(rev, content, MCP_TOOL_FAILED);
	mcp_content_free(content);
	exchange_result(r, NULL, text);
}

static void
on_tools_call(struct mcp_request *r, const struct dispatch *d)
{
	const json_t *params = d->message->params;
	json_t *name = json_object_get(params, "name");
	AUTO(auto_json)
	json_t *arguments = json_incref(json_object_get(params, "arguments"));
	const struct tool *tool;
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
	tool = plain_string(name) == NULL ?
	    NULL :
	    registry_find(r->m->registry, json_string_value(name));
	if (tool == NULL) {
		unknown_tool(r, name);
		return;
	}
	if (schema_check(tool->input, arguments, &e) != 0) {
		bad_arguments(r, d->session->rev, e.msg);
		return;
	}
	mcp_call_start(r, tool, arguments,
	    &(struct mcp_call_start){.session = d->session,
		.who = d->who,
		.request_id = d->request_id,
		.progress_token = d->message->progress_token});
}

static const struct method {
	const char *name;
	void (*on)(struct mcp_request *, const struct dispatch *);
} methods[] = {{"ping", on_ping}, {"tools/list", on_tools_list},
    {"tools/call", on_tools_call}};

void
dispatch_request(struct mcp_request *r, const struct dispatch *d)
{
	const struct rpc_message *m = d->message;
	AUTO(auto_free) char *message = NULL;

	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		if (strcmp(methods[i].name, m->method) != 0)
			continue;
		if (m->params != NULL && !json_is_object(m->params))
			bad_params(r, "params must be an object");
		else
			methods[i].on(r, d);
		return;
	}
	message = xasprintf("Method not found: %.80s", m->method);
	exchange_error(r, MCP_METHOD_NOT_FOUND, message, NULL);
}

/* ---- notifications */

void
dispatch_notification(struct mcp_request *r, const struct dispatch *d)
{
	const struct rpc_message *m = d->message;

	/* notifications/initialized asks for nothing; unknown ones are to be
	 * ignored; all are accepted. */
	if (strcmp(m->method, "notifications/cancelled") == 0 &&
	    m->request_id != NULL)
		mcp_call_cancel(r->m, d->session, m->request_id);
	exchange_accept(r, 202);
}

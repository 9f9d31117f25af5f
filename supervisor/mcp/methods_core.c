/*
 * methods_core.c - initialize or server/discover, ping, and taking requests
 * back
 */
#include "supervisor/mcp/provider.h"

#include "common/clock.h"
#include "common/js.h"
#include "supervisor/mcp/can.h"
#include "supervisor/mcp/client.h"
#include "supervisor/mcp/mcp_call.h"

#define SINCE_FIRST 20241105
#define UNTIL_STATELESS 20251125
#define SINCE_STATELESS 20260728 /* without session and ping */

static char *
initialize_result(const struct mcp *m, const struct era_revision *rev)
{
	AUTO(auto_json)
	json_t *result =
	    json_pack("{s:s, s:o, s:o, s:s*}", "protocolVersion", rev->date,
		"capabilities", provider_capabilities(m, rev), "serverInfo",
		provider_server_info(m, rev), "instructions", m->instructions);

	return js_dump(result);
}

static void
on_initialize(struct mcp_request *r, const struct mcp_context *c)
{
	const json_t *params = c->message->params;
	const json_t *wanted = json_object_get(params, "protocolVersion");
	AUTO(auto_free) char *result = NULL;
	const struct era_revision *rev;
	struct session_said said;
	char id[SESSION_TEXT_MAX + 1], client[CALL_CLIENT_MAX + 1];

	if (params == NULL) {
		request_error(r, MCP_INVALID_PARAMS,
		    "params must be an object with protocolVersion, "
		    "capabilities and clientInfo",
		    NULL);
		return;
	}
	if (!json_is_string(wanted)) {
		request_error(r, MCP_INVALID_PARAMS,
		    "params.protocolVersion must be a string such as "
		    "\"2025-11-25\"",
		    NULL);
		return;
	}
	rev = era_negotiate(json_string_value(wanted));
	client_name(json_object_get(params, "clientInfo"), client);
	said = (struct session_said){
	    client, can_of(json_object_get(params, "capabilities"), rev)};
	session_issue(
	    c->m->sessions, rev, c->who, &said, clock_wall_ms() / 1000, id);
	result = initialize_result(c->m, rev);
	request_result(r, id, result);
}

static void
on_discover(struct mcp_request *r, const struct mcp_context *c)
{
	request_answer(r,
	    json_pack("{s:o, s:o, s:s*}", "supportedVersions",
		era_dates(ERA_KIND_MODERN), "capabilities",
		provider_capabilities(c->m, c->rev), "instructions",
		c->m->instructions));
}

static void
on_ping(struct mcp_request *r, const struct mcp_context *c)
{
	(void)c;
	request_result(r, NULL, "{}");
}

static void
on_cancelled(const struct mcp_context *c)
{
	if (c->message->request_id != NULL)
		mcp_call_cancel(c->m, c->session, c->message->request_id);
}

static const struct mcp_method methods[] = {
    {"initialize", SINCE_FIRST, UNTIL_STATELESS, on_initialize},
    {"ping", SINCE_FIRST, UNTIL_STATELESS, on_ping},
    {"server/discover", SINCE_STATELESS, 0, on_discover},
};
static const struct mcp_notice notices[] = {
    {"notifications/cancelled", SINCE_FIRST, UNTIL_STATELESS, on_cancelled},
};

const struct mcp_provider methods_core = {
    .methods = methods,
    .nmethods = ARRAY_LEN(methods),
    .notices = notices,
    .nnotices = ARRAY_LEN(notices),
};

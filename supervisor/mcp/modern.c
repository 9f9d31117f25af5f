#include "supervisor/mcp/modern.h"

#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/can.h"
#include "supervisor/mcp/client.h"
#include "supervisor/mcp/level.h"
#include "supervisor/mcp/mirror.h"
#include "supervisor/mcp/provider.h"

#define PREFIX "io.modelcontextprotocol/"
#define CAPABILITIES PREFIX "clientCapabilities"
#define CLIENT_INFO PREFIX "clientInfo"
#define LOG_LEVEL PREFIX "logLevel"
#define SERVER_INFO PREFIX "serverInfo"

/* ---- requests */

/* header: MCP-Protocol-Version, or NULL */
static int
check_claim(const json_t *claim, const char *header,
    const struct era_revision **rev, struct err *e)
{
	if (!json_is_string(claim))
		return err_set(e, MCP_INVALID_PARAMS,
		    "params._meta: " ERA_CLAIM " must be a string");
	if (header != NULL && strcmp(header, json_string_value(claim)) != 0)
		return err_set(e, MCP_HEADER_MISMATCH,
		    "MCP-Protocol-Version is not the revision that "
		    "params._meta claims");
	*rev = era_find_served(json_string_value(claim));
	if (*rev == NULL || !era_has(*rev, ERA_STATELESS))
		return err_set(e, MCP_VERSION_UNSUPPORTED,
		    "Unsupported protocol version; data.supported names those "
		    "that are served");
	return 0;
}

static int
check_envelope(const json_t *meta, struct err *e)
{
	const json_t *info = json_object_get(meta, CLIENT_INFO);
	const json_t *level = json_object_get(meta, LOG_LEVEL);

	if (!json_is_object(json_object_get(meta, CAPABILITIES)))
		return err_set(e, MCP_INVALID_PARAMS,
		    "params._meta: " CAPABILITIES
		    " must be there, an object (may be empty)");
	if (info != NULL && !json_is_object(info))
		return err_set(e, MCP_INVALID_PARAMS,
		    "params._meta: " CLIENT_INFO
		    " must be an object with name and version");
	if (level != NULL && level_find(level) == LEVEL_NONE)
		return err_set(e, MCP_INVALID_PARAMS,
		    "params._meta: " LOG_LEVEL
		    " must be one of debug, info, notice, warning, error, "
		    "critical, alert, emergency");
	return 0;
}

static int
check_method(
    const struct rpc_message *message, const char *header, struct err *e)
{
	if (header != NULL && strcmp(header, message->method) != 0)
		return err_set(e, MCP_HEADER_MISMATCH,
		    "Mcp-Method is not the method of the body");
	return 0;
}

static int
check_presence(const struct mcp_http *http, struct err *e)
{
	if (http->protocol_version == NULL)
		return err_set(e, MCP_HEADER_MISMATCH,
		    "the header MCP-Protocol-Version is missing");
	if (http->mcp_method == NULL)
		return err_set(e, MCP_HEADER_MISMATCH,
		    "the header Mcp-Method is missing: it repeats the method");
	return 0;
}

static int
read_request(const struct rpc_message *message, const struct mcp_http *http,
    struct modern *out, struct err *e)
{
	const json_t *meta = json_object_get(message->params, "_meta");
	const json_t *claim = era_claim(message->params);
	const json_t *capabilities = json_object_get(meta, CAPABILITIES);
	const struct era_revision *rev;
	char name[CALL_CLIENT_MAX + 1];

	if (check_claim(claim, http->protocol_version, &rev, e) != 0 ||
	    check_envelope(meta, e) != 0 ||
	    check_method(message, http->mcp_method, e) != 0 ||
	    check_presence(http, e) != 0)
		return e->code;
	client_name(json_object_get(meta, CLIENT_INFO), name);
	session_of_request(&out->session, rev, name, can_of(capabilities, rev));
	out->log_level = level_find(json_object_get(meta, LOG_LEVEL));
	return 0;
}

int
modern_read(const struct rpc_message *message, const struct mcp_http *http,
    struct modern *out, struct err *e)
{
	const json_t *claim = era_claim(message->params);
	const struct era_revision *rev;

	if (message->kind == RPC_REQUEST)
		return read_request(message, http, out, e);
	if (claim != NULL &&
	    check_claim(claim, http->protocol_version, &rev, e) != 0)
		return e->code;
	return check_method(message, http->mcp_method, e);
}

/* By which member of params a method names its object, and which other one is
 * an object, if it is there. */
static const struct named {
	const char *method, *name, *object;
} named[] = {
    {"tools/call", "name", "arguments"},
    {"prompts/get", "name", "arguments"},
    {"resources/read", "uri", NULL},
    {"tasks/get", "taskId", NULL},
    {"tasks/update", "taskId", "inputResponses"},
    {"tasks/cancel", "taskId", NULL},
};

static bool
is_shaped(const struct named *n, const json_t *params)
{
	const json_t *object =
	    n->object == NULL ? NULL : json_object_get(params, n->object);

	return json_is_string(json_object_get(params, n->name)) &&
	    (object == NULL || json_is_object(object));
}

static int
check_name(const struct named *n, const json_t *params, const char *line,
    struct err *e)
{
	if (!is_shaped(n, params))
		return 0;
	if (line == NULL)
		return err_set(e, MCP_HEADER_MISMATCH,
		    "the header Mcp-Name is missing: it repeats params.%s",
		    n->name);
	if (!mirror_shows(line, json_object_get(params, n->name)))
		return err_set(e, MCP_HEADER_MISMATCH,
		    "Mcp-Name is not params.%s", n->name);
	return 0;
}

int
modern_check_name(const struct rpc_message *message,
    const struct mcp_http *http, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(named); i++)
		if (strcmp(named[i].method, message->method) == 0)
			return check_name(
			    &named[i], message->params, http->mcp_name, e);
	return 0;
}

/* ---- results */

/* Tools and discovery are the same for everybody, and a changed list is seen
 * after a minute also by who does not listen.  All else is its principal's,
 * and what a sandbox holds changes at any time. */
static const struct modern_hint {
	const char *method, *scope;
	int ttl_ms;
} hints[] = {
    {"server/discover", "public", 60000},
    {"tools/list", "public", 60000},
    {"prompts/list", "private", 60000},
    {"resources/list", "private", 0},
    {"resources/templates/list", "private", 60000},
    {"resources/read", "private", 0},
};

const struct modern_hint *
modern_hint_of(const char *method)
{
	for (size_t i = 0; i < ARRAY_LEN(hints); i++)
		if (strcmp(hints[i].method, method) == 0)
			return &hints[i];
	return NULL;
}

static void
set_absent(json_t *o, const char *key, json_t *value)
{
	if (json_object_get(o, key) == NULL)
		json_object_set_new(o, key, value);
	else
		json_decref(value);
}

void
modern_seal(const struct mcp *m, const struct modern_hint *hint, json_t *result)
{
	set_absent(result, "resultType", json_string("complete"));
	if (hint != NULL &&
	    strcmp(js_text(result, "resultType"), "complete") == 0) {
		set_absent(result, "ttlMs", json_integer(hint->ttl_ms));
		set_absent(result, "cacheScope", json_string(hint->scope));
	}
	set_absent(result, "_meta", json_object());
	set_absent(json_object_get(result, "_meta"), SERVER_INFO,
	    provider_server_info(m, &era_table[ERA_REVISIONS - 1]));
}

char *
modern_seal_text(
    const struct mcp *m, const struct modern_hint *hint, const char *result)
{
	AUTO(auto_json) json_t *around = json_object();
	AUTO(auto_free) char *head = NULL;

	modern_seal(m, hint, around);
	head = js_dump(around);
	head[strlen(head) - 1] = '\0';
	return xasprintf(
	    "%s%s%s", head, result[1] == '}' ? "" : ",", result + 1);
}

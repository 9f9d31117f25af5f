#include "supervisor/mcp/mcp.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/accept.h"
#include "supervisor/mcp/dispatch.h"
#include "supervisor/mcp/internal.h"
#include "supervisor/mcp/mcp_call.h"

#define STREAM_AFTER_MS 1000 /* a call that takes longer gets its stream */

struct mcp *
mcp_new(const struct mcp_config *config)
{
	struct mcp *m = xcalloc(1, sizeof(*m));

	m->name = xstrdup(config->name);
	m->title = config->title == NULL ? NULL : xstrdup(config->title);
	m->version = xstrdup(config->version);
	if (config->instructions != NULL)
		m->instructions = xstrdup(config->instructions);
	m->body_max = config->body_max;
	m->sessions = session_keeper_new(config->session_key,
	    config->session_key_len, config->session_ttl_s);
	m->registry = registry_new();
	m->inflight = inflight_new();
	TAILQ_INIT(&m->exchanges);
	return m;
}

void
mcp_free(struct mcp *m)
{
	struct mcp_request *r;

	if (m == NULL)
		return;
	while ((r = TAILQ_FIRST(&m->exchanges)) != NULL)
		exchange_abandon(r);
	mcp_call_orphan_all(m);
	inflight_free(m->inflight);
	registry_free(m->registry);
	session_keeper_free(m->sessions);
	free(m->name);
	free(m->title);
	free(m->version);
	free(m->instructions);
	free(m);
}

int
mcp_add_tool(struct mcp *m, json_t *definition, mcp_tool_cb on_call, void *arg,
    struct err *e)
{
	return registry_add(m->registry, definition, on_call, arg, e);
}

/* ---- the ladder */

static void
refuse_era(struct mcp_request *r, const struct era_answer *a)
{
	AUTO(auto_json) json_t *data = json_object();

	json_object_set_new(data, "supported", era_served_dates());
	json_object_set_new(data, "requested",
	    js_string_bytes(a->requested, strlen(a->requested), NULL));
	exchange_refuse(r, a->status, a->code, a->message, data);
}

/* false when there is none, and then it is answered */
static bool
find_session(
    struct mcp_request *r, const struct mcp_http *http, struct session *out)
{
	if (http->session_id == NULL) {
		exchange_refuse(r, 400, MCP_SERVER_ERROR,
		    "Mcp-Session-Id header is missing: send initialize first, "
		    "then this header with the id of its answer",
		    NULL);
		return false;
	}
	if (session_open(r->m->sessions, http->session_id, http->who,
		clock_wall_ms() / 1000, out) != 0) {
		/* In these very words: clients know to start again by them. */
		exchange_refuse(
		    r, 404, MCP_SESSION_NOT_FOUND, "Session not found", NULL);
		return false;
	}
	return true;
}

/* A served revision other than the session's is let pass; the session's
 * counts (MCP 2025-06-18, transports, protocol version header). */
static bool
check_header(struct mcp_request *r, const char *header)
{
	struct era_answer a = {.status = 400, .code = MCP_SERVER_ERROR};

	if (header == NULL || era_find_served(header) != NULL)
		return true;
	(void)snprintf(a.requested, sizeof(a.requested), "%s", header);
	(void)snprintf(a.message, sizeof(a.message),
	    "Bad MCP-Protocol-Version header: send the revision that "
	    "initialize answered");
	refuse_era(r, &a);
	return false;
}

/* GET and DELETE (MCP 2025-11-25, transports, session management). */
static void
handle_session_method(struct mcp_request *r, const struct mcp_http *http)
{
	bool is_delete = strcmp(http->method, "DELETE") == 0;
	bool is_get = strcmp(http->method, "GET") == 0;
	struct session s;

	/* No stream for a session is offered, so a GET without one and a
	 * method of another era end alike. */
	if ((!is_delete && !is_get) || era_is_modern(http->protocol_version) ||
	    (is_get && http->session_id == NULL)) {
		exchange_refuse(r, 405, MCP_SERVER_ERROR,
		    "Method not allowed: POST one JSON-RPC message", NULL);
		return;
	}
	if (!find_session(r, http, &s) ||
	    !check_header(r, http->protocol_version))
		return;
	if (is_get) {
		exchange_refuse(r, 405, MCP_SERVER_ERROR,
		    "Method not allowed: this server opens no stream on GET",
		    NULL);
		return;
	}
	session_end(r->m->sessions, &s, clock_wall_ms() / 1000);
	exchange_accept(r, 204);
}

static void
handle_initialize(struct mcp_request *r, const struct mcp_http *http,
    const struct dispatch *d)
{
	struct session s;

	if (http->session_id == NULL)
		dispatch_initialize(r, d);
	else if (find_session(r, http, &s))
		exchange_refuse(r, 400, MCP_INVALID_REQUEST,
		    "this session is initialized already; leave out "
		    "Mcp-Session-Id to start another",
		    NULL);
}

static void
handle_message(struct mcp_request *r, const struct mcp_http *http,
    const struct rpc_message *message)
{
	struct dispatch d = {.message = message,
	    .who = http->who,
	    .request_id = http->request_id};
	struct era_question q = {message->method, message->params, message->id,
	    http->protocol_version};
	struct era_answer a;
	struct session session;

	era_decide(&q, &a);
	if (a.branch == ERA_REFUSED) {
		refuse_era(r, &a);
		return;
	}
	if (a.branch == ERA_INITIALIZE) {
		handle_initialize(r, http, &d);
		return;
	}
	if (!find_session(r, http, &session) ||
	    !check_header(r, http->protocol_version))
		return;
	d.session = &session;
	if (message->kind == RPC_REQUEST)
		dispatch_request(r, &d);
	else if (message->kind == RPC_NOTIFICATION)
		dispatch_notification(r, &d);
	else /* we never ask: whatever it answers, nobody waits for it */
		exchange_accept(r, 202);
}

/* What can be said before the body is read; false when it was refused. */
static bool
check_post(struct mcp_request *r, const struct mcp_http *http)
{
	if (http->body_len > r->m->body_max) {
		AUTO(auto_free)
		char *message = xasprintf("the body is over the limit of %zu "
					  "bytes",
		    r->m->body_max);

		exchange_refuse(r, 413, MCP_SERVER_ERROR, message, NULL);
		return false;
	}
	if (!accept_is_json(http->content_type)) {
		exchange_refuse(r, 415, MCP_SERVER_ERROR,
		    "Content-Type must be application/json", NULL);
		return false;
	}
	r->forms = accept_forms(http->accept);
	if (r->forms == 0) {
		exchange_refuse(r, 406, MCP_SERVER_ERROR,
		    "Accept must list application/json or text/event-stream",
		    NULL);
		return false;
	}
	return true;
}

static void
handle_post(struct mcp_request *r, const struct mcp_http *http)
{
	struct rpc_message message;
	struct err e;
	int code;

	if (!check_post(r, http))
		return;
	code = rpc_parse(http->body, http->body_len, &message, &e);
	if (message.id != NULL)
		r->id = xstrdup(message.id);
	if (code != 0)
		exchange_refuse(r, 400, code, e.msg, NULL);
	else
		handle_message(r, http, &message);
	rpc_clear(&message);
}

struct mcp_request *
mcp_handle(struct mcp *m, const struct mcp_http *http,
    const struct mcp_reply_ops *ops, void *handle)
{
	struct mcp_request *r = exchange_new(m, ops, handle);

	m->stats.requests++;
	exchange_pin(r);
	if (strcmp(http->method, "POST") == 0)
		handle_post(r, http);
	else
		handle_session_method(r, http);
	return exchange_unpin(r) ? r : NULL;
}

void
mcp_client_gone(struct mcp_request *r)
{
	/* Disconnecting is not cancelling (MCP 2025-11-25, transports): the
	 * tool goes on, and its answer has nobody to go to. */
	exchange_abandon(r);
}

void
mcp_tick(struct mcp *m, uint64_t mono_ms)
{
	struct mcp_request *r = TAILQ_FIRST(&m->exchanges);
	struct mcp_request *next;

	for (; r != NULL && r->since_ms + STREAM_AFTER_MS <= mono_ms;
	     r = next) {
		exchange_pin(r);
		exchange_stream_open(r);
		next = TAILQ_NEXT(r, link);
		(void)exchange_unpin(r);
	}
}

void
mcp_stats(const struct mcp *m, struct mcp_stats *out)
{
	*out = m->stats;
	out->calls_active = inflight_count(m->inflight);
}

/*
 * mcp.c - one HTTP request in, its answer out: the ladder
 *
 * Each step either refuses the exchange or hands on: the headers (check_post),
 * the envelope (rpc.h), and by the body the revision (era.h).  A message of
 * 2026-07-28 says itself who asks (modern.h); of older revisions the session
 * does.  Then comes the method (provider.h).  A request that waits stays behind
 * as the exchange's waiter; a batch is several of them (batch.h).
 */
#include "supervisor/mcp/mcp.h"

#include "common/clock.h"
#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/accept.h"
#include "supervisor/mcp/batch.h"
#include "supervisor/mcp/level.h"
#include "supervisor/mcp/duplex.h"
#include "supervisor/mcp/listeners.h"
#include "supervisor/mcp/mcp_int.h"
#include "supervisor/mcp/mcp_call.h"
#include "supervisor/mcp/modern.h"
#include "supervisor/mcp/prompts.h"
#include "supervisor/mcp/offer.h"
#include "supervisor/mcp/provider.h"
#include "supervisor/mcp/questions.h"
#include "supervisor/mcp/resume.h"
#include "supervisor/mcp/rpc.h"

/* In the order in which their capabilities are announced. */
static const struct mcp_provider *const providers[] = {
    &methods_core,
    &methods_tools,
    &methods_resources,
    &methods_prompts,
    &methods_completion,
    &methods_tasks,
    &methods_watch,
    &methods_logging,
    &methods_subscriptions,
};

struct mcp *
mcp_new(const struct mcp_config *config)
{
	struct mcp *m = xcalloc(1, sizeof(*m));

	m->name = config->name;
	m->title = config->title;
	m->version = config->version;
	m->instructions = config->instructions;
	m->body_max = config->body_max;
	m->heartbeat_ms = config->heartbeat_ms;
	m->list_changes = config->list_changes;
	m->is_legacy_only = config->is_legacy_only;
	m->providers = providers;
	m->nproviders = ARRAY_LEN(providers);
	m->sessions = session_keeper_new(config->session_key,
	    config->session_key_len, config->session_ttl_s);
	m->registry = registry_new();
	m->prompts = prompts_new();
	m->duplexes = duplexes_new();
	m->questions = question_book_new();
	m->listeners = listeners_new();
	TAILQ_INIT(&m->exchanges);
	LIST_INIT(&m->streams);
	LIST_INIT(&m->batches);
	return m;
}

void
mcp_set_instructions(struct mcp *m, const char *instructions)
{
	m->instructions = instructions;
}

void
mcp_free(struct mcp *m)
{
	struct mcp_exchange *x;

	if (m == NULL)
		return;
	mcp_call_orphan_all(m); /* first: nothing is cancelled */
	while ((x = TAILQ_FIRST(&m->exchanges)) != NULL)
		exchange_abandon(x);
	duplexes_free(m->duplexes);
	batch_free_all(m);
	listeners_free(m->listeners);
	registry_free(m->registry);
	prompts_free(m->prompts);
	question_book_free(m->questions);
	json_decref(m->templates);
	session_keeper_free(m->sessions);
	free(m);
}

void
mcp_drain(struct mcp *m)
{
	duplex_drain_all(m);
	listeners_drain(m);
}

int
mcp_add_tool(struct mcp *m, json_t *definition, mcp_tool_cb on_call, void *arg,
    struct err *e)
{
	return registry_add(m->registry, definition, on_call, arg, e);
}

int
mcp_change_tool(struct mcp *m, json_t *definition, struct err *e)
{
	return registry_change(m->registry, definition, e);
}

void
mcp_set_resources(struct mcp *m, json_t *templates,
    const struct mcp_resource_ops *ops, void *arg)
{
	json_decref(m->templates);
	m->templates = json_incref(templates);
	m->resource_ops = ops;
	m->resource_arg = arg;
}

int
mcp_add_prompt(struct mcp *m, json_t *definition, mcp_prompt_cb on_get,
    void *arg, struct err *e)
{
	return prompts_add(m->prompts, definition, on_get, arg, e);
}

void
mcp_set_completion(struct mcp *m, mcp_complete_cb on_complete, void *arg)
{
	m->on_complete = on_complete;
	m->complete_arg = arg;
}

int
mcp_tool_on_resume(
    struct mcp *m, const char *name, mcp_resume_cb on_resume, struct err *e)
{
	return registry_set_resume(m->registry, name, on_resume, e);
}

/* ---- a body, read before */

struct mcp_message {
	struct rpc_message rpc;
	int code; /* 0, or as rpc_parse returned, and why */
	struct err why;
};

struct mcp_message *
mcp_message_read(const void *body, size_t len)
{
	struct mcp_message *message = xcalloc(1, sizeof(*message));

	message->code = rpc_parse(body, len, &message->rpc, &message->why);
	return message;
}

void
mcp_message_free(struct mcp_message *message)
{
	if (message != NULL)
		rpc_clear(&message->rpc);
	free(message);
}

const char *
mcp_message_method(const struct mcp_message *message)
{
	return message->rpc.method;
}

/* ---- the ladder */

#define REVISION_MAX 64 /* bytes of a bad one that are repeated */

/* One HTTP request on its way down, or one message of its batch. */
struct visit {
	struct mcp *m;
	struct mcp_exchange *x;
	const struct mcp_http *http;
	void *handle;               /* the transport's */
	struct rpc_message message; /* POST; empty before it was parsed */
	struct session session;     /* as soon as it is known */
	int log_level;
};

static void
refuse(const struct visit *v, int status, int code, const char *message,
    const json_t *data)
{
	AUTO(auto_free)
	char *text = rpc_error(v->message.id, code, message, data);

	exchange_reply(v->x, status, text);
}

/* A revision that is none of this kind. */
static void
refuse_revision(const struct visit *v, int code, const char *message,
    enum era_kind kind, const char *requested)
{
	AUTO(auto_json) json_t *data = json_object();

	json_object_set_new(data, "supported", era_dates(kind));
	json_object_set_new(data, "requested",
	    js_string_bytes(requested, strnlen(requested, REVISION_MAX), NULL));
	refuse(v, 400, code, message, data);
}

/* false when there is none, and then it is answered */
static bool
find_session(struct visit *v)
{
	if (v->http->session_id == NULL) {
		refuse(v, 400, MCP_SERVER_ERROR,
		    "Mcp-Session-Id header is missing: send initialize first, "
		    "then this header with the id of its answer",
		    NULL);
		return false;
	}
	if (session_open(v->m->sessions, v->http->session_id, v->http->who,
		clock_wall_ms() / 1000, &v->session) != 0) {
		/* In these very words: clients know to start again by them. */
		refuse(
		    v, 404, MCP_SESSION_NOT_FOUND, "Session not found", NULL);
		return false;
	}
	return true;
}

/* A served revision other than the session's is let pass; the session's
 * counts (MCP 2025-06-18, transports, protocol version header). */
static bool
check_header(const struct visit *v)
{
	const char *header = v->http->protocol_version;

	if (header == NULL || era_find_served(header) != NULL)
		return true;
	refuse_revision(v, MCP_SERVER_ERROR,
	    "Bad MCP-Protocol-Version header: send the revision that "
	    "initialize answered",
	    ERA_KIND_LEGACY, header);
	return false;
}

static struct mcp_context
context_of(const struct visit *v, const struct session *session)
{
	return (struct mcp_context){.m = v->m,
	    .message = &v->message,
	    .session = session,
	    .rev = session == NULL ? NULL : session->rev,
	    .client_can = session == NULL ? 0 : session->client_can,
	    .body_len = v->http->body_len,
	    .who = v->http->who,
	    .request_id = v->http->request_id,
	    .origin = v->http->origin,
	    .server_url = v->http->server_url,
	    .traceparent = v->http->traceparent,
	    .log_level = v->log_level,
	    .headers = {v->http->header, v->handle}};
}

/* Its params fit the form that all have; else it is answered. */
static bool
has_params(struct mcp_request *r, const struct rpc_message *message)
{
	if (message->params == NULL || json_is_object(message->params))
		return true;
	request_error(r, MCP_INVALID_PARAMS, "params must be an object", NULL);
	return false;
}

static char *
unknown_method(const struct rpc_message *message)
{
	return xasprintf("Method not found: %.80s", message->method);
}

static void
refuse_get(const struct visit *v)
{
	refuse(v, 405, MCP_SERVER_ERROR,
	    "Method not allowed: POST one JSON-RPC message; GET with Accept: "
	    "text/event-stream takes up a session's streams",
	    NULL);
}

/* The stream of HTTP+SSE, on a path of its own or for a client that was given
 * MCP_PATH. */
static void
handle_open(struct visit *v)
{
	const struct mcp_context c = context_of(v, NULL);
	struct err e;

	if (strcmp(v->http->method, "GET") != 0 || v->http->messages == NULL)
		refuse_get(v);
	else if (exchange_set_forms(v->x, ACCEPT_STREAM, &e) != 0)
		refuse(v, 429, MCP_SERVER_ERROR, e.msg, NULL);
	else
		duplex_open(v->x, &c, v->http->messages);
}

/* A client of MCP 2024-11-05: what later ones send with a GET is missing. */
static bool
is_open(const struct mcp_http *http)
{
	return http->session_id == NULL && http->protocol_version == NULL &&
	    http->last_event_id == NULL && http->messages != NULL &&
	    (accept_forms(http->accept) & ACCEPT_STREAM) != 0;
}

/* A GET whose session is known. */
static void
handle_get(struct visit *v)
{
	const struct mcp_context c = context_of(v, &v->session);
	struct err e;

	if ((accept_forms(v->http->accept) & ACCEPT_STREAM) == 0)
		refuse_get(v);
	else if (exchange_set_forms(v->x, ACCEPT_STREAM, &e) != 0)
		refuse(v, 429, MCP_SERVER_ERROR, e.msg, NULL);
	else if (v->http->last_event_id == NULL)
		listeners_on_get(v->x, &c);
	else
		resume_on_get(v->x, &c, v->http->last_event_id);
}

/* GET and DELETE (MCP 2025-11-25, transports, session management). */
static void
handle_session_method(struct visit *v)
{
	const struct mcp_http *http = v->http;
	bool is_delete = strcmp(http->method, "DELETE") == 0;
	bool is_get = strcmp(http->method, "GET") == 0;

	if (is_get && is_open(http)) {
		handle_open(v);
		return;
	}
	if ((!is_delete && !is_get) || era_is_modern(http->protocol_version) ||
	    (is_get && http->session_id == NULL)) {
		refuse_get(v);
		return;
	}
	if (!find_session(v) || !check_header(v))
		return;
	if (is_get) {
		handle_get(v);
		return;
	}
	session_end(v->m->sessions, &v->session, clock_wall_ms() / 1000);
	listeners_end(v->m, v->session.id);
	exchange_reply(v->x, 204, NULL);
}

/* The request takes over its id. */
static struct mcp_request *
take_request(struct visit *v)
{
	struct mcp_request *r = request_new(v->x, v->message.id);

	v->message.id = NULL;
	return r;
}

static void
on_request(struct visit *v, const struct session *session)
{
	const struct mcp_context c = context_of(v, session);
	const struct mcp_method *method =
	    provider_method(v->m, v->message.method, c.rev);
	struct mcp_request *r = take_request(v);
	AUTO(auto_free) char *text = NULL;

	if (method == NULL) {
		text = unknown_method(&v->message);
		request_error(r, MCP_METHOD_NOT_FOUND, text, NULL);
	} else if (has_params(r, &v->message)) {
		method->on(r, &c);
	}
}

static void
on_notification(const struct visit *v)
{
	const struct mcp_context c = context_of(v, &v->session);
	const struct mcp_notice *notice =
	    provider_notice(v->m, v->message.method, v->session.rev);

	/* Unknown notifications are ignored, and accepted as all are. */
	if (notice != NULL)
		notice->on(&c);
}

/* The id of a session that ended, or never was, is ignored: a client may
 * send it until it has a new one. */
static void
on_initialize(struct visit *v)
{
	const struct mcp_http *http = v->http;

	if (http->session_id == NULL ||
	    session_open(v->m->sessions, http->session_id, http->who,
		clock_wall_ms() / 1000, &v->session) != 0)
		on_request(v, NULL);
	else
		refuse(v, 400, MCP_INVALID_REQUEST,
		    "this session is initialized already; leave out "
		    "Mcp-Session-Id to start another",
		    NULL);
}

/* bytes: of the body, as far as it is this message's. */
static void
on_response(const struct visit *v, size_t bytes)
{
	question_book_answer(
	    v->m->questions, v->session.id, v->message.root, bytes);
}

/* A message of a session. */
static void
handle_legacy(struct visit *v)
{
	if (v->message.kind == RPC_REQUEST) {
		on_request(v, &v->session);
		return;
	}
	if (v->message.kind == RPC_NOTIFICATION)
		on_notification(v);
	if (!v->x->ended) /* as a part of a stream it may have */
		exchange_reply(v->x, 202, NULL);
	/* Also one that nobody waits for is accepted. */
	if (v->message.kind == RPC_RESPONSE)
		on_response(v, v->http->body_len);
}

/* ---- MCP 2026-07-28 */

static void
refuse_modern(const struct visit *v, int code, const char *why)
{
	const json_t *claim = era_claim(v->message.params);

	if (code == MCP_VERSION_UNSUPPORTED)
		refuse_revision(
		    v, code, why, ERA_KIND_MODERN, json_string_value(claim));
	else
		refuse(v, 400, code, why, NULL);
}

static void
on_modern_request(struct visit *v)
{
	const struct mcp_context c = context_of(v, &v->session);
	const struct mcp_method *method =
	    provider_method(v->m, v->message.method, c.rev);
	AUTO(auto_free) char *text = NULL;
	struct mcp_request *r;
	struct err e;

	if (method == NULL) {
		text = unknown_method(&v->message);
		refuse(v, 404, MCP_METHOD_NOT_FOUND, text, NULL);
		return;
	}
	if (modern_check_name(&v->message, v->http, &e) != 0) {
		refuse(v, 400, e.code, e.msg, NULL);
		return;
	}
	r = take_request(v);
	request_set_modern(r, v->message.method);
	method->on(r, &c);
	if (!v->x->ended) /* and so it waits */
		exchange_watch(v->x);
}

/* No notification of this revision means anything to a server over HTTP: to
 * cancel is to close the response stream (MCP 2026-07-28, cancellation). */
static void
handle_modern(struct visit *v)
{
	struct modern who;
	struct err e;
	int code = modern_read(&v->message, v->http, &who, &e);

	if (code != 0) {
		refuse_modern(v, code, e.msg);
	} else if (v->message.kind != RPC_REQUEST) {
		exchange_reply(v->x, 202, NULL);
	} else {
		v->session = who.session;
		v->log_level = who.log_level;
		on_modern_request(v);
	}
}

/* ---- batches (MCP 2025-03-26) */

/* Also what is no message of a batch: it is refused as a whole, before any of
 * it is done. */
static int
read_part(const struct rpc_message *batch, size_t i, struct rpc_message *out,
    struct err *e)
{
	if (rpc_read(json_array_get(batch->root, i), out, e) != 0)
		return err_wrap(e, "message %zu of the batch", i + 1);
	if (era_claim(out->params) != NULL)
		return err_set(e, MCP_INVALID_REQUEST,
		    "message %zu of the batch is of a revision without "
		    "batches: send it alone",
		    i + 1);
	if (out->kind == RPC_REQUEST && strcmp(out->method, "initialize") == 0)
		return err_set(e, MCP_INVALID_REQUEST,
		    "initialize must not be in a batch: send it alone");
	return 0;
}

static bool
is_for_batches(struct visit *v)
{
	if (v->http->session_id != NULL &&
	    !era_is_modern(v->http->protocol_version)) {
		if (!find_session(v) || !check_header(v))
			return false;
		if (era_has(v->session.rev, ERA_BATCH))
			return true;
	}
	refuse(v, 400, MCP_INVALID_REQUEST,
	    "a batch, which only sessions of 2025-03-26 may send: send one "
	    "message per POST",
	    NULL);
	return false;
}

/* bytes: of the body, as many as come to each of its messages */
static void
handle_part(const struct visit *whole, struct mcp_batch *b,
    struct rpc_message *one, size_t bytes)
{
	struct visit v = *whole;

	v.message = *one;
	if (one->kind == RPC_REQUEST) {
		v.x = batch_add(b, one->id);
		exchange_pin(v.x);
		on_request(&v, &v.session);
		(void)exchange_unpin(v.x);
	} else if (one->kind == RPC_NOTIFICATION) {
		on_notification(&v);
	} else {
		on_response(&v, bytes);
	}
	*one = v.message; /* without what was taken over */
}

static void
handle_parts(struct visit *v, struct rpc_message *all, size_t n)
{
	struct mcp_batch *b;

	if (!is_for_batches(v))
		return;
	b = batch_new(v->x);
	for (size_t i = 0; i < n; i++) {
		all[i].removed = json_incref(v->message.removed);
		handle_part(v, b, &all[i], v->http->body_len / n);
	}
	batch_close(b);
}

static void
handle_batch(struct visit *v)
{
	const size_t n = json_array_size(v->message.root);
	struct rpc_message *all = xcalloc(n, sizeof(*all));
	struct err e;
	int code = 0;

	for (size_t i = 0; i < n && code == 0; i++)
		code = read_part(&v->message, i, &all[i], &e);
	if (code != 0)
		refuse(v, 400, MCP_INVALID_REQUEST, e.msg, NULL);
	else
		handle_parts(v, all, n);
	for (size_t i = 0; i < n; i++)
		rpc_clear(&all[i]);
	free(all);
}

/* ---- a POST */

/* A plain 400 makes a client that can do both fall back to initialize; the
 * codes of 2026-07-28 would tell it to stay (its versioning page). */
static bool
is_beyond(const struct visit *v)
{
	const json_t *claim = era_claim(v->message.params);
	const char *asked = claim != NULL ? json_string_value(claim) :
					    v->http->protocol_version;

	if (!v->m->is_legacy_only ||
	    (claim == NULL && !era_is_modern(v->http->protocol_version)))
		return false;
	refuse_revision(v, MCP_SERVER_ERROR,
	    "Unsupported protocol version: send initialize first",
	    ERA_KIND_LEGACY, asked != NULL ? asked : "");
	return true;
}

static void
handle_message(struct visit *v)
{
	const struct rpc_message *message = &v->message;
	struct era_question q = {message->method, message->params, message->id,
	    v->http->protocol_version};
	struct era_answer a;

	if (is_beyond(v))
		return;
	era_decide(&q, &a);
	if (a.branch == ERA_REFUSED)
		refuse(v, 400, a.code, a.message, NULL);
	else if (a.branch == ERA_MODERN)
		handle_modern(v);
	else if (a.branch == ERA_INITIALIZE)
		on_initialize(v);
	else if (find_session(v) && check_header(v))
		handle_legacy(v);
}

/* What can be said before the body is read; false when it was refused. */
static bool
check_body(const struct visit *v)
{
	if (v->http->body_len > v->m->body_max) {
		AUTO(auto_free)
		char *message = xasprintf("the body is over the limit of %zu "
					  "bytes",
		    v->m->body_max);

		refuse(v, 413, MCP_SERVER_ERROR, message, NULL);
		return false;
	}
	if (!accept_is_json(v->http->content_type)) {
		refuse(v, 415, MCP_SERVER_ERROR,
		    "Content-Type must be application/json", NULL);
		return false;
	}
	return true;
}

static bool
check_post(const struct visit *v)
{
	unsigned int forms;
	struct err e;

	if (!check_body(v))
		return false;
	forms = accept_forms(v->http->accept);
	if (forms == 0) {
		refuse(v, 406, MCP_SERVER_ERROR,
		    "Accept must list application/json or text/event-stream",
		    NULL);
		return false;
	}
	if (exchange_set_forms(v->x, forms, &e) != 0) {
		refuse(v, 429, MCP_SERVER_ERROR, e.msg, NULL);
		return false;
	}
	return true;
}

/* As rpc_parse, also when that was done before. */
static int
take_message(struct visit *v, struct err *e)
{
	const struct mcp_http *http = v->http;
	struct mcp_message *given = http->message;

	if (given == NULL)
		return rpc_parse(http->body, http->body_len, &v->message, e);
	v->message = given->rpc;
	v->message.removed = json_array();
	*e = given->why;
	return given->code;
}

/* As rpc_clear, also of one that was given. */
static void
put_message(const struct visit *v, struct rpc_message *message)
{
	if (v->http->message != NULL)
		v->http->message->rpc = *message; /* is freed there */
	else
		rpc_clear(message);
}

/* ---- a message of HTTP+SSE (duplex.h) */

static bool
is_method(const struct rpc_message *message, const char *method)
{
	return message->kind == RPC_REQUEST &&
	    strcmp(message->method, method) == 0;
}

static void
handle_part_of_stream(struct visit *v, const struct session *session)
{
	bool initialize = is_method(&v->message, "initialize");

	if (session != NULL && !initialize) {
		v->session = *session;
		handle_legacy(v);
	} else if (session == NULL &&
	    (initialize || is_method(&v->message, "ping"))) {
		on_request(v, NULL);
	} else if (v->message.kind != RPC_REQUEST) {
		exchange_reply(v->x, 202, NULL);
	} else if (initialize) {
		refuse(v, 400, MCP_INVALID_REQUEST,
		    "this session is initialized already; open another stream "
		    "to start another",
		    NULL);
	} else {
		refuse(
		    v, 400, MCP_INVALID_REQUEST, "send initialize first", NULL);
	}
}

static void
serve_part(struct visit *v, struct duplex *d)
{
	struct visit part = *v;
	const struct session *session = duplex_session(d);

	part.x = duplex_exchange(
	    d, v->message.kind == RPC_REQUEST ? v->message.id : NULL);
	exchange_pin(part.x);
	handle_part_of_stream(&part, session);
	(void)exchange_unpin(part.x);
	v->message = part.message; /* without what was taken over */
}

static void
take_part(struct visit *v, struct duplex *d)
{
	struct err e;
	int code = take_message(v, &e);

	if (code != 0) {
		refuse(v, 400, code, e.msg, NULL);
	} else if (v->message.kind == RPC_BATCH) {
		refuse(v, 400, MCP_INVALID_REQUEST,
		    "a batch, which this transport does not have: send one "
		    "message per POST",
		    NULL);
	} else {
		serve_part(v, d);
		exchange_reply(v->x, 202, "Accepted");
	}
	put_message(v, &v->message);
}

/* What is another's is as unknown as what never was. */
static void
handle_part_post(struct visit *v)
{
	const char *id = v->http->stream_id;
	struct duplex *d =
	    id == NULL ? NULL : duplex_find(v->m, id, v->http->who);
	struct err e;

	if (d == NULL)
		refuse(
		    v, 404, MCP_SESSION_NOT_FOUND, "Session not found", NULL);
	else if (duplex_check_room(d, &e) != 0)
		refuse(v, 429, MCP_SERVER_ERROR, e.msg, NULL);
	else if (check_body(v))
		take_part(v, d);
}

static void
handle_post(struct visit *v)
{
	struct err e;
	int code;

	if (!check_post(v))
		return;
	code = take_message(v, &e);
	if (code != 0)
		refuse(v, 400, code, e.msg, NULL);
	else if (v->message.kind == RPC_BATCH)
		handle_batch(v);
	else
		handle_message(v);
	put_message(v, &v->message);
}

struct mcp_exchange *
mcp_handle(struct mcp *m, const struct mcp_http *http,
    const struct mcp_transport_ops *ops, void *handle)
{
	struct visit v = {.m = m,
	    .x = exchange_new(m, ops, handle),
	    .http = http,
	    .handle = handle,
	    .log_level = LEVEL_NONE};

	v.x->can_resume = http->route == MCP_ROUTE_MAIN;
	exchange_pin(v.x);
	if (http->route == MCP_ROUTE_SSE)
		handle_open(&v);
	else if (http->route == MCP_ROUTE_MESSAGES)
		handle_part_post(&v);
	else if (strcmp(http->method, "POST") == 0)
		handle_post(&v);
	else
		handle_session_method(&v);
	return exchange_unpin(v.x) ? v.x : NULL;
}

void
mcp_client_gone(struct mcp_exchange *x)
{
	/* Whether that cancels its request is the revision's: mcp_call.c. */
	exchange_abandon(x);
}

void
mcp_tick(struct mcp *m, uint64_t mono_ms)
{
	exchange_tick(m, mono_ms);
	question_book_tick(m->questions, mono_ms);
	listeners_tick(m, mono_ms);
}

/*
 * mcp_call.c - calls in flight: started, told of, cancelled, ended
 *
 * A call is found by its session and request id as long as its offer did not
 * end it, and so long it is counted for its principal, also when its client is
 * gone: that bounds the work one principal can cause.  Its request is only
 * there while somebody waits: what takes the request away (call_lose) also
 * takes the progress, so that a tool which asks call_wants_progress() does
 * nothing for nobody.  A request of MCP 2026-07-28 has a session of its own, so
 * that no id of another meets its own.
 */
#include "supervisor/mcp/mcp_call.h"

#include <stdio.h>

#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/content.h"
#include "supervisor/mcp/event_id.h"
#include "supervisor/mcp/offer.h"
#include "supervisor/mcp/task_view.h"

/* Who is counted for calls: a tenant's subject, while it has any. */
struct caller {
	struct hash_entry by_who;
	struct principal *who;
	unsigned int n;
};

struct mcp_call {
	struct call base; /* first: what is given back is found by it */
	struct hash_entry by_id;
	uint8_t session[SESSION_ID_LEN];
	char *id;              /* JSON text */
	bool canceled;         /* it has given its id up */
	struct caller *caller; /* NULL: not in flight */
	struct mcp *m;
	struct mcp_request *request; /* NULL: nobody to answer */
	const struct era_revision *rev;
	struct call_task task;
	json_t *meta;         /* params._meta, or NULL */
	char *progress_token; /* JSON text; NULL: not asked for */
	bool progressed;      /* and last was sent */
	uint64_t last;
	mcp_call_shape_cb shape; /* NULL: answers go as they are */
	char *tool;              /* its name; NULL: another method */
	struct event_id *resume; /* NULL: nobody can come back for it */
};

static void call_on_progress(struct call *base, const struct call_progress *p);

static const struct call_ops call_ops_telling = {.progress = call_on_progress};
static const struct call_ops call_ops_silent = {.progress = NULL};

/* ---- in flight */

struct call_key {
	const uint8_t *session;
	const char *id;
};

static uint64_t
hash_of(const struct call_key *key)
{
	return hashmap_key_named(
	    hashmap_key_bytes(key->session, SESSION_ID_LEN), key->id);
}

static bool
is_call(const struct hash_entry *en, const void *key)
{
	const struct mcp_call *c = HASH_OF(en, const struct mcp_call, by_id);
	const struct call_key *want = key;

	return !c->canceled &&
	    memcmp(c->session, want->session, SESSION_ID_LEN) == 0 &&
	    strcmp(c->id, want->id) == 0;
}

static struct mcp_call *
call_find(struct mcp *m, const struct call_key *key)
{
	return HASH_OBJECT(hashmap_get(&m->calls, hash_of(key), is_call, key),
	    struct mcp_call, by_id);
}

static bool
is_who(const struct hash_entry *en, const void *key)
{
	const struct caller *o = HASH_OF(en, const struct caller, by_who);
	const struct principal *who = key;

	return tenant_id_is_equal(o->who->tenant, who->tenant) &&
	    strcmp(o->who->subject, who->subject) == 0;
}

static struct caller *
caller_get(struct mcp *m, struct principal *who)
{
	uint64_t h = hashmap_key_named(who->tenant.n, who->subject);
	struct caller *o = HASH_OBJECT(
	    hashmap_get(&m->callers, h, is_who, who), struct caller, by_who);

	if (o != NULL)
		return o;
	o = xcalloc(1, sizeof(*o));
	o->who = principal_ref(who);
	hashmap_put(&m->callers, &o->by_who, h);
	return o;
}

static int
call_add(struct mcp_call *c, struct principal *who, struct err *e)
{
	const struct call_key key = {c->session, c->id};
	struct caller *o;

	if (call_find(c->m, &key) != NULL)
		return err_set(e, ERR_CONFLICT,
		    "a request with this id is still running in this session; "
		    "use a new id");
	o = caller_get(c->m, who);
	if (o->n >= MCP_CALLS_PER_PRINCIPAL)
		return err_set(e, ERR_LIMIT,
		    "%d tool calls are running already; wait for one to end "
		    "or cancel one",
		    MCP_CALLS_PER_PRINCIPAL);
	o->n++;
	c->caller = o;
	hashmap_put(&c->m->calls, &c->by_id, hash_of(&key));
	return 0;
}

static void
call_remove(struct mcp_call *c)
{
	struct caller *o = c->caller;

	hashmap_del(&c->m->calls, &c->by_id);
	c->caller = NULL;
	if (--o->n > 0)
		return;
	hashmap_del(&c->m->callers, &o->by_who);
	principal_unref(o->who);
	free(o);
}

static void
call_free(struct mcp_call *c)
{
	if (c->caller != NULL)
		call_remove(c);
	call_clear(&c->base);
	json_decref(c->meta);
	free(c->id);
	free(c->task.id);
	free(c->progress_token);
	free(c->tool);
	free(c->resume);
	free(c);
}

/* NULL: it is no tool that is called. */
static const char *
tool_of(const struct mcp_context *with)
{
	const struct rpc_message *message = with->message;

	return message->method == NULL ||
		strcmp(message->method, "tools/call") != 0 ?
	    NULL :
	    json_string_value(json_object_get(message->params, "name"));
}

static struct mcp_call *
call_new(struct mcp_request *r, const struct mcp_context *with)
{
	/* Progress needs somebody who asked and a stream to send it in. */
	bool telling = with->message->progress_token != NULL &&
	    exchange_takes_stream(r->exchange);
	struct mcp_call *c = xcalloc(1, sizeof(*c));

	call_init(&c->base, telling ? &call_ops_telling : &call_ops_silent,
	    with->who, with->request_id);
	call_set_origin(&c->base, with->origin);
	call_set_server_url(&c->base, with->server_url);
	memcpy(c->base.session, with->session->name, sizeof(c->base.session));
	call_set_client(&c->base, with->session->client);
	call_set_trace(&c->base, with->message->traceparent, with->traceparent);
	c->m = with->m;
	c->request = r;
	c->rev = with->session->rev;
	c->meta = json_incref(json_object_get(with->message->params, "_meta"));
	c->id = xstrdup(r->id);
	memcpy(c->session, with->session->id, SESSION_ID_LEN);
	if (telling)
		c->progress_token = xstrdup(with->message->progress_token);
	if (tool_of(with) != NULL)
		c->tool = xstrdup(tool_of(with));
	return c;
}

/* Nobody is left to be answered. */
static void
call_lose(struct mcp_call *c)
{
	c->request = NULL;
	c->base.up = &call_ops_silent;
}

/*
 * The client left.  To a request of a session that is nothing: its holder hears
 * nothing of it (MCP 2025-11-25, transports).  Of a revision without sessions
 * it is the cancel (MCP 2026-07-28, cancellation), but not when it is the
 * server that ends.
 */
static void
call_on_lost(void *arg)
{
	struct mcp_call *c = arg;

	call_lose(c);
	if (era_has(c->rev, ERA_STATELESS) && c->caller != NULL)
		call_cancel(&c->base); /* may end the call */
}

/* In flight, or its request is refused and it is gone. */
static bool
call_admit(struct mcp_call *c, struct principal *who)
{
	struct mcp_request *r = c->request;
	struct err e;
	int rc = call_add(c, who, &e);

	if (rc == 0) {
		request_hold(r, call_on_lost, c);
		return true;
	}
	call_free(c);
	request_refuse(r, rc == ERR_LIMIT ? 429 : 400,
	    rc == ERR_LIMIT ? MCP_SERVER_ERROR : MCP_INVALID_REQUEST, e.msg);
	return false;
}

void
mcp_call_start(struct mcp_request *r, const struct mcp_context *with,
    mcp_call_run_cb run, void *arg)
{
	struct mcp_call *c = call_new(r, with);

	/* What ends at once is answered as plain JSON; who waits gets its
	 * stream with the first progress, or after a while. */
	if (call_admit(c, with->who))
		run(c, arg);
}

/* ---- answers that outlive their connection */

/* What came before it knows nothing of (MCP 2025-11-25, transports). */
static bool
takes_prime(const struct era_revision *rev)
{
	return rev->number >= 20251125;
}

/* The events of whoever waits have ids of this call's. */
static void
call_give_ids(struct mcp_call *c)
{
	struct mcp_exchange *x = c->request->exchange;

	if (x->can_resume)
		exchange_set_ids(x,
		    event_ids_new(
			session_signer(c->m->sessions), c->resume, c->base.who),
		    takes_prime(c->rev) ? EXCHANGE_PRIME : EXCHANGE_NO_PRIME);
}

static bool
can_resume(const struct mcp_call *c)
{
	const struct registry_tool *tool =
	    c->tool == NULL || c->caller == NULL ?
	    NULL :
	    registry_find(c->m->registry, c->tool);

	return tool != NULL && tool->on_resume != NULL &&
	    !era_has(c->rev, ERA_STATELESS);
}

/* Of what is too long for an id there is none. */
void
mcp_call_set_token(struct mcp_call *c, const void *token, size_t n)
{
	const char *progress =
	    c->progress_token == NULL ? "" : c->progress_token;
	struct event_id *id;

	if (c->resume != NULL || n > MCP_TOKEN_MAX || !can_resume(c) ||
	    strlen(c->id) > EVENT_ID_PART_MAX ||
	    strlen(progress) > EVENT_ID_PART_MAX)
		return;
	id = xcalloc(1, sizeof(*id));
	memcpy(id->session, c->session, SESSION_ID_LEN);
	(void)snprintf(id->tool, sizeof(id->tool), "%s", c->tool);
	(void)snprintf(id->request, sizeof(id->request), "%s", c->id);
	(void)snprintf(
	    id->progress_token, sizeof(id->progress_token), "%s", progress);
	memcpy(id->token, token, n);
	id->ntoken = n;
	if (!event_id_begin(id)) {
		free(id);
		return;
	}
	c->resume = id;
	if (c->request != NULL)
		call_give_ids(c);
}

void
mcp_call_hang_up(struct mcp_call *c, uint32_t retry_ms)
{
	if (c->request != NULL)
		(void)exchange_hang_up(c->request->exchange, retry_ms);
}

/* Whoever waited before, on a connection that we take for open, waits no
 * more. */
static void
call_attach(struct mcp_call *c, struct mcp_exchange *x)
{
	struct mcp_request *before = c->request;

	if (before != NULL) {
		call_on_lost(c);
		request_drop(before);
	}
	c->request = request_new(x, xstrdup(c->id));
	request_hold(c->request, call_on_lost, c);
	if (c->progress_token != NULL)
		c->base.up = &call_ops_telling;
	call_give_ids(c);
	exchange_stream_open(x);
}

/* The tool has its name from the id, and nothing else of the request. */
static struct mcp_call *
call_again(struct mcp_exchange *x, const struct mcp_context *with,
    const struct event_id *id)
{
	AUTO(auto_json)
	json_t *params = json_pack("{s:s}", "name", id->tool);
	const struct rpc_message message = {.kind = RPC_REQUEST,
	    .method = "tools/call",
	    .params = params,
	    .progress_token = id->progress_token[0] == '\0' ?
		NULL :
		(char *)(uintptr_t)id->progress_token};
	struct mcp_context again = *with;
	struct mcp_call *c;

	again.message = &message;
	c = call_new(request_new(x, xstrdup(id->request)), &again);
	c->resume = xmemdup(id, sizeof(*id));
	c->progressed = id->progressed;
	c->last = id->progress;
	return c;
}

void
mcp_call_resume(struct mcp_exchange *x, const struct mcp_context *with,
    const struct event_id *id)
{
	const struct call_key key = {id->session, id->request};
	const struct registry_tool *tool =
	    registry_find(with->m->registry, id->tool);
	struct mcp_call *c = call_find(with->m, &key);

	if (c != NULL && c->resume != NULL &&
	    memcmp(c->resume->stream, id->stream, sizeof(id->stream)) == 0) {
		call_attach(c, x);
		return;
	}
	c = call_again(x, with, id);
	if (tool == NULL || tool->on_resume == NULL) { /* another server's */
		mcp_call_error(c, MCP_INTERNAL_ERROR,
		    "the tool cannot say this answer again", NULL);
		return;
	}
	if (!call_admit(c, with->who))
		return;
	call_give_ids(c);
	exchange_stream_open(x);
	/* Also when the client is gone meanwhile: the tool ends the call. */
	tool->on_resume(c, id->token, id->ntoken, tool->arg);
}

void
mcp_call_cancel(
    struct mcp *m, const struct session *session, const char *request_id)
{
	const struct call_key key = {session->id, request_id};
	struct mcp_call *c = call_find(m, &key);
	struct mcp_request *r;

	if (c == NULL)
		return;
	c->canceled = true;
	r = c->request;
	call_lose(c);
	if (r != NULL) /* no response, says the cancellation page */
		request_drop(r);
	call_cancel(&c->base); /* may end the call */
}

void
mcp_call_orphan_all(struct mcp *m)
{
	struct hash_entry *en;

	while ((en = hashmap_next(&m->calls, NULL)) != NULL)
		call_remove(HASH_OF(en, struct mcp_call, by_id));
	hashmap_clear(&m->calls);
	hashmap_clear(&m->callers);
}

void
mcp_call_set_shape(struct mcp_call *c, mcp_call_shape_cb shape)
{
	c->shape = shape;
}

const json_t *
mcp_call_meta(const struct mcp_call *c)
{
	return c->meta;
}

struct call *
mcp_call_base(struct mcp_call *c)
{
	return &c->base;
}

const struct call_task *
mcp_call_task_of(const struct mcp_call *c)
{
	return &c->task;
}

void
mcp_call_set_task(struct mcp_call *c, const struct call_task *task)
{
	c->task = *task;
}

const struct era_revision *
mcp_call_rev(const struct mcp_call *c)
{
	return c->rev;
}

/* What is given to nobody is not made. */
static struct mcp_request *
call_end(struct mcp_call *c)
{
	struct mcp_request *r = c->request;

	call_free(c);
	return r;
}

void
mcp_call_result(
    struct mcp_call *c, struct mcp_content *content, enum mcp_outcome outcome)
{
	json_t *result = NULL;
	struct mcp_request *r;

	/* Who asked for a task takes no result in its place; a JSON-RPC error
	 * it does (MCP 2025-11-25, tasks). */
	if (c->task.asked) {
		AUTO(auto_free) char *why = xstrdup(content_text(content));

		mcp_content_free(content);
		mcp_call_error(c, MCP_SERVER_ERROR, why, NULL);
		return;
	}
	if (c->task.way == CALL_TASK_RESULT)
		mcp_content_meta(
		    content, TASK_RELATED, task_view_related(c->task.id));
	if (c->request != NULL)
		result = content_tool_json(c->rev, content, outcome);
	mcp_content_free(content);
	r = call_end(c);
	if (r != NULL)
		request_answer(r, result);
}

void
mcp_call_answer(struct mcp_call *c, json_t *result)
{
	struct mcp_request *r;

	if (c->request != NULL && c->shape != NULL) {
		json_t *shaped = c->shape(c->rev, result);

		json_decref(result);
		result = shaped;
	}
	r = call_end(c);
	if (r != NULL)
		request_answer(r, result);
	else
		json_decref(result);
}

void
mcp_call_error(struct mcp_call *c, int code, const char *message, json_t *data)
{
	struct mcp_request *r = call_end(c);

	if (r != NULL)
		request_error(r, code, message, data);
	json_decref(data);
}

void
mcp_call_no_resource(struct mcp_call *c, const char *uri)
{
	/* Its own code until 2025-11-25, that of other bad parameters since. */
	int code = era_has(c->rev, ERA_STATELESS) ? MCP_INVALID_PARAMS :
						    MCP_RESOURCE_NOT_FOUND;
	json_t *data = json_object();

	json_object_set_new(
	    data, "uri", js_string_bytes(uri, strlen(uri), NULL));
	mcp_call_error(c, code, "Resource not found", data);
}

static char *
progress_text(const struct mcp_call *c, const struct call_progress *p)
{
	bool has_text = p->text != NULL && era_has(c->rev, ERA_PROGRESS_TEXT);
	AUTO(auto_json)
	json_t *params = json_pack("{s:I, s:o*}", "progress",
	    (json_int_t)p->done, "message",
	    has_text ? js_string_bytes(p->text, strlen(p->text), NULL) : NULL);
	AUTO(auto_free) char *rest = js_dump(params);
	/* The token goes in as the text it came in. */
	AUTO(auto_free)
	char *all =
	    xasprintf("{\"progressToken\":%s,%s", c->progress_token, rest + 1);

	return rpc_notification("notifications/progress", all);
}

/* Progress is left out when the client does not read; answers are not. */
static void
call_on_progress(struct call *base, const struct call_progress *p)
{
	struct mcp_call *c = (struct mcp_call *)base;
	AUTO(auto_free) char *text = NULL;

	/* It must grow with each notification (MCP 2025-11-25, progress). */
	if (p->done > INT64_MAX || (c->progressed && p->done <= c->last) ||
	    !exchange_has_room(c->request->exchange))
		return;
	c->progressed = true;
	c->last = p->done;
	if (c->resume != NULL) {
		c->resume->progressed = true;
		c->resume->progress = p->done;
		if (c->request->exchange->ids != NULL)
			event_ids_progress(c->request->exchange->ids, p->done);
	}
	text = progress_text(c, p);
	exchange_send(c->request->exchange, text);
}

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

#include <math.h>
#include <stdio.h>

#include "common/clock.h"
#include "common/js.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/can.h"
#include "supervisor/mcp/content.h"
#include "supervisor/mcp/event_id.h"
#include "supervisor/mcp/level.h"
#include "supervisor/mcp/listeners.h"
#include "supervisor/mcp/offer.h"
#include "supervisor/mcp/questions.h"
#include "supervisor/mcp/request_state.h"
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
	double last;
	int log_level;           /* as in struct mcp_context */
	mcp_call_shape_cb shape; /* NULL: answers go as they are */
	/* Questions to the client: */
	unsigned int client_can;
	size_t body_len;
	json_t *given_answers, *given_state; /* as they came, not checked */
	const struct call_repeat *repeat;    /* NULL: it asks nothing */
	const void *thing;
	char *name;
	json_t *input;
	json_t *answers;
	char *state;
	struct question_set *asking; /* ended by its offer, not yet answered */
	char *tool;                  /* its name; NULL: another method */
	struct event_id *resume;     /* NULL: nobody can come back for it */
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
	return principal_is_same(
	    HASH_OF(en, const struct caller, by_who)->who, key);
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
	question_set_free(c->asking);
	json_decref(c->given_answers);
	json_decref(c->given_state);
	free(c->name);
	json_decref(c->input);
	json_decref(c->answers);
	free(c->state);
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
	c->log_level = with->log_level;
	c->meta = json_incref(json_object_get(with->message->params, "_meta"));
	c->id = xstrdup(r->id);
	memcpy(c->session, with->session->id, SESSION_ID_LEN);
	if (telling)
		c->progress_token = xstrdup(with->message->progress_token);
	c->client_can = with->client_can;
	c->body_len = with->body_len;
	/* Of more bytes it is not asked, and so has no answers. */
	if (era_has(c->rev, ERA_STATELESS) &&
	    with->body_len <= MCP_ASK_BODY_MAX) {
		c->given_answers = json_incref(
		    json_object_get(with->message->params, "inputResponses"));
		c->given_state = json_incref(
		    json_object_get(with->message->params, "requestState"));
	}
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
	if (c->asking != NULL) /* what it waits for brings nobody an answer */
		call_free(c);
	else if (era_has(c->rev, ERA_STATELESS) && c->caller != NULL)
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
		call_lose(c);
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
	c->last = (double)id->progress;
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

	if (c != NULL && c->resume != NULL && c->asking == NULL &&
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
	if (c->asking != NULL)
		call_free(c);
	else
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

/* A result that may be written to: its offer may hold it, and what is in it,
 * to answer with again. */
static json_t *
own_result(json_t *result)
{
	json_t *mine = json_copy(result);
	json_t *meta = json_object_get(mine, "_meta");

	if (meta != NULL)
		json_object_set_new(mine, "_meta", json_copy(meta));
	json_decref(result);
	return mine;
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
		request_answer(r, own_result(result));
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

/* ---- questions to the client */

/* RESULT of each key; what is no object was no answer. */
static json_t *
objects_of(json_t *given)
{
	json_t *all = json_object(), *result;
	const char *key;

	json_object_foreach (given, key, result)
		if (json_is_object(result))
			json_object_set(all, key, result);
	return all;
}

static struct request_bound
bound_of(const struct mcp_call *c)
{
	return (struct request_bound){
	    c->base.who, c->repeat->method, c->name, c->input};
}

static int
call_read_state(struct mcp_call *c)
{
	const struct request_bound bound = bound_of(c);
	const char *given = js_plain(c->given_state);

	return given == NULL ?
	    ERR_NOTFOUND :
	    request_state_read(session_signer(c->m->sessions), &bound, given,
		clock_wall_ms() / 1000, &c->state);
}

/* What a client of MCP 2026-07-28 brings for a request that it repeats; false:
 * it is not good, and the call has ended. */
static bool
call_take_given(struct mcp_call *c)
{
	if (c->given_answers == NULL && c->given_state == NULL)
		return true;
	if (c->given_answers != NULL && !json_is_object(c->given_answers)) {
		mcp_call_error(c, MCP_INVALID_PARAMS,
		    "params.inputResponses must be an object: the result of "
		    "each of inputRequests by its key",
		    NULL);
		return false;
	}
	if (c->given_state != NULL && call_read_state(c) != 0) {
		mcp_call_error(c, MCP_INVALID_PARAMS,
		    "params.requestState is none that was given out for this "
		    "request in the last hour: send the request without it, "
		    "and without inputResponses",
		    NULL);
		return false;
	}
	c->answers = objects_of(c->given_answers);
	return true;
}

bool
mcp_call_set_repeat(struct mcp_call *c, const struct call_repeat *repeat,
    const void *thing, const char *name, json_t *input)
{
	if (c->body_len > MCP_ASK_BODY_MAX)
		return true;
	c->repeat = repeat;
	c->thing = thing;
	c->name = xstrdup(name);
	c->input = json_incref(input);
	return call_take_given(c);
}

bool
mcp_call_can(const struct mcp_call *c, enum mcp_can what)
{
	return (c->client_can & can_bit(what)) != 0 &&
	    (c->repeat != NULL || what == MCP_CAN_TASKS);
}

const json_t *
mcp_call_answers(const struct mcp_call *c)
{
	return c->answers;
}

const char *
mcp_call_state(const struct mcp_call *c)
{
	return c->state;
}

void
mcp_call_need(struct mcp_call *c, enum mcp_can what)
{
	AUTO(auto_json) json_t *required = can_required(what);
	AUTO(auto_free) char *text = js_dump(required);
	AUTO(auto_free)
	char *message =
	    xasprintf("the client must declare this capability: %s", text);

	if (era_has(c->rev, ERA_STATELESS))
		mcp_call_error(c, MCP_CAPABILITY_MISSING, message,
		    json_pack("{s:O}", "requiredCapabilities", required));
	else
		mcp_call_error(c, MCP_INVALID_REQUEST, message, NULL);
}

static void
call_refuse(struct mcp_call *c, const char *why)
{
	if (c->repeat->refuse != NULL)
		c->repeat->refuse(c, why);
	else
		mcp_call_error(c, MCP_INTERNAL_ERROR, why, NULL);
}

static void
call_run_again(struct mcp_call *c, json_t *answers)
{
	json_decref(c->answers);
	c->answers = answers;
	c->repeat->run(c, c->thing, c->input);
}

static void
call_on_answers(void *arg, json_t *answers)
{
	struct mcp_call *c = arg;

	question_set_free(c->asking);
	c->asking = NULL;
	call_run_again(c, answers);
}

static void
call_on_refusal(void *arg, const char *why)
{
	struct mcp_call *c = arg;
	struct mcp_exchange *x = c->request->exchange;

	exchange_pin(x);
	question_set_withdraw(c->asking, x);
	if (!exchange_unpin(x)) /* and c with it */
		return;
	question_set_free(c->asking);
	c->asking = NULL;
	call_refuse(c, why);
}

static const struct question_ops question_ops_of_call = {
    .on_answers = call_on_answers, .on_refusal = call_on_refusal};

/* Until 2025-11-25: on the stream of the request. */
static void
ask_by_request(struct mcp_call *c, const json_t *questions)
{
	struct mcp_exchange *x = c->request->exchange;

	exchange_pin(x);
	exchange_stream_open(x);
	if (x->ended) {
		call_free(c);
	} else if (!x->is_streaming) {
		call_refuse(c,
		    "this has a question to the client, which takes no event "
		    "stream now: send the request with Accept: "
		    "application/json, text/event-stream");
	} else {
		c->asking = question_set_new(c->m->questions, c->session,
		    questions, &question_ops_of_call, c);
		question_set_send(c->asking, x);
	}
	(void)exchange_unpin(x);
}

/* MCP 2026-07-28, multi round-trip requests. */
static void
ask_by_result(struct mcp_call *c, json_t *questions)
{
	const struct request_bound bound = bound_of(c);
	json_t *result = json_pack("{s:s}", "resultType", "input_required");

	if (json_object_size(questions) > 0)
		json_object_set(result, "inputRequests", questions);
	if (c->state != NULL) {
		AUTO(auto_free)
		char *state = request_state_make(session_signer(c->m->sessions),
		    &bound, c->state, clock_wall_ms() / 1000);

		json_object_set_new(result, "requestState", json_string(state));
	}
	c->shape = NULL;
	mcp_call_answer(c, result);
}

/* false: it cannot be asked so, and the call has ended. */
static bool
may_ask(struct mcp_call *c, const json_t *questions)
{
	enum mcp_can lacks;
	struct err e;
	int rc;

	if (c->request == NULL) {
		call_free(c);
		return false;
	}
	if (c->repeat == NULL && c->body_len > MCP_ASK_BODY_MAX) {
		mcp_call_error(c, MCP_INVALID_REQUEST,
		    "this has a question to the client, which is asked for "
		    "short requests only: send it with fewer bytes",
		    NULL);
		return false;
	}
	rc = questions_check(questions, c->client_can, &lacks, &e);
	if (rc == ERR_POLICY)
		mcp_call_need(c, lacks);
	if (rc == 0 &&
	    (c->repeat == NULL ||
		(c->state == NULL && json_object_size(questions) == 0)))
		rc = err_set(&e, ERR_INVAL,
		    "there is nothing to ask, or the "
		    "method asks no questions");
	if (rc == ERR_INVAL) {
		log_error("%s", e.msg);
		mcp_call_error(c, MCP_INTERNAL_ERROR,
		    "the question to the client is not one: a fault of this "
		    "server",
		    NULL);
	}
	return rc == 0;
}

void
mcp_call_ask(struct mcp_call *c, json_t *questions, const char *state)
{
	AUTO(auto_json) json_t *asked = questions;
	char *kept = state == NULL ? NULL : xstrndup(state, MCP_STATE_MAX);

	free(c->state); /* state may be it */
	c->state = kept;
	if (!may_ask(c, asked))
		return;
	/* The offer has let go of it: what comes is another call. */
	call_release(&c->base);
	c->base.deadline_ms = 0;
	if (era_has(c->rev, ERA_STATELESS))
		ask_by_result(c, asked);
	else if (json_object_size(asked) == 0)
		call_run_again(c, json_object());
	else
		ask_by_request(c, asked);
}

/* ---- progress */

/* How far a call is. */
struct told {
	double done, total; /* total: not finite when it is not known */
	const char *text;
};

static json_t *
number_of(double v)
{
	if (!isfinite(v))
		return NULL;
	return fabs(v) < 9007199254740992.0 && v == (double)(json_int_t)v ?
	    json_integer((json_int_t)v) :
	    json_real(v);
}

static char *
progress_text(const struct mcp_call *c, const struct told *p)
{
	bool has_text = p->text != NULL && era_has(c->rev, ERA_PROGRESS_TEXT);
	AUTO(auto_json)
	json_t *params = json_pack("{s:o, s:o*, s:o*}", "progress",
	    number_of(p->done), "total", number_of(p->total), "message",
	    has_text ? js_string_bytes(p->text, strlen(p->text), NULL) : NULL);
	AUTO(auto_free) char *rest = js_dump(params);
	/* The token goes in as the text it came in. */
	AUTO(auto_free)
	char *all =
	    xasprintf("{\"progressToken\":%s,%s", c->progress_token, rest + 1);

	return rpc_notification("notifications/progress", all);
}

#define WHOLE_MAX 9e18 /* of doubles, within 64 bits */

static uint64_t
rounded_up(double v)
{
	uint64_t whole = v > WHOLE_MAX ? (uint64_t)WHOLE_MAX :
	    v > 0                      ? (uint64_t)v :
					 0;

	return (double)whole < v && v <= WHOLE_MAX ? whole + 1 : whole;
}

/* Whoever takes the answer up again is told of nothing below (offer.h). */
static void
note_for_resume(struct mcp_call *c, double done)
{
	uint64_t at = rounded_up(done);

	if (c->resume == NULL)
		return;
	c->resume->progressed = true;
	c->resume->progress = at;
	if (c->request->exchange->ids != NULL)
		event_ids_progress(c->request->exchange->ids, at);
}

/* Progress is left out when the client does not read; answers are not. */
static void
call_tell(struct mcp_call *c, const struct told *p)
{
	AUTO(auto_free) char *text = NULL;

	/* It must grow with each notification (MCP 2025-11-25, progress). */
	if (!(fabs(p->done) < 9e18) || (c->progressed && p->done <= c->last) ||
	    !exchange_has_room(c->request->exchange))
		return;
	c->progressed = true;
	c->last = p->done;
	note_for_resume(c, p->done);
	text = progress_text(c, p);
	exchange_send(c->request->exchange, text);
}

static void
call_on_progress(struct call *base, const struct call_progress *p)
{
	call_tell((struct mcp_call *)base,
	    &(struct told){(double)p->done, NAN, p->text});
}

void
mcp_call_progress(
    struct mcp_call *c, double done, double total, const char *text)
{
	if (call_wants_progress(&c->base))
		call_tell(c, &(struct told){done, total, text});
}

/* ---- log messages */

static int
level_of(const struct mcp_call *c)
{
	return era_has(c->rev, ERA_STATELESS) ?
	    c->log_level :
	    listeners_level(c->m, c->session);
}

static char *
log_text(enum mcp_level level, const char *logger, json_t *data)
{
	AUTO(auto_json)
	json_t *params = json_pack("{s:s, s:s*, s:O}", "level",
	    level_word(level), "logger", logger, "data", data);
	AUTO(auto_free) char *said = js_dump(params);

	return rpc_notification("notifications/message", said);
}

void
mcp_call_log(
    struct mcp_call *c, enum mcp_level level, const char *logger, json_t *data)
{
	/* Without a server (mcp_free) there is no request either. */
	int wanted = c->request == NULL ? LEVEL_NONE : level_of(c);

	if (wanted != LEVEL_NONE && (int)level >= wanted &&
	    exchange_has_room(c->request->exchange)) {
		AUTO(auto_free) char *text = log_text(level, logger, data);

		exchange_send(c->request->exchange, text);
	}
	json_decref(data);
}

/*
 * subscriptions.c - subscriptions/listen (MCP 2026-07-28)
 *
 *	the request --> each address and task is asked for, one after another:
 *	may this principal see it? --> acknowledged, with what it may --> told
 *	of that --> its result, when the server ends; or the client leaves
 *
 * What is told of a task is its state, asked for anew: one question at a time,
 * the others wait in due.
 */
#include "supervisor/mcp/provider.h"

#include <stdio.h>

#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/accept.h"
#include "supervisor/mcp/can.h"
#include "supervisor/mcp/inner_call.h"
#include "supervisor/mcp/level.h"
#include "supervisor/mcp/listeners.h"
#include "supervisor/mcp/methods_tasks.h"
#include "supervisor/mcp/offer.h"

#define SINCE_STATELESS 20260728
#define SUBSCRIPTION_ID "io.modelcontextprotocol/subscriptionId"

struct subscription {
	struct watcher watcher; /* first */
	struct listen_member member;
	struct mcp_request *request; /* NULL: its client left */
	struct mcp *m;
	struct session session; /* of its request */
	const struct era_revision *rev;
	unsigned int client_can;
	struct principal *who;
	char request_id[CALL_REQUEST_ID_MAX + 1];
	char *id;        /* JSON text */
	json_t *subject; /* that, as a value */
	struct inner_call *question;
	/* Asked for, in order; arrays, and NULL once acknowledged */
	json_t *uris, *tasks;
	size_t nuris, ntasks; /* of them, those that were looked at */
	json_t *agreed;       /* NULL: acknowledged */
	json_t *due;          /* ids of tasks to be told of: an object */
	json_t *state;        /* of one of them, to be told; or NULL */
	bool is_asking;       /* an answer comes inside */
	bool is_member;
};

static void
subscription_free(struct subscription *s)
{
	inner_call_drop(s->question);
	watches_drop_all(listeners_watches(s->m), &s->watcher);
	if (s->is_member)
		listeners_remove(&s->member);
	principal_unref(s->who);
	free(s->id);
	json_decref(s->subject);
	json_decref(s->uris);
	json_decref(s->tasks);
	json_decref(s->agreed);
	json_decref(s->due);
	json_decref(s->state);
	free(s);
}

/* Inside a question s is still in use: ask frees it. */
static void
on_lost(void *arg)
{
	struct subscription *s = arg;

	s->request = NULL;
	if (!s->is_asking)
		subscription_free(s);
}

/* ---- what it is told */

/* params is taken over.  s may be gone then. */
static void
subscription_send(struct subscription *s, const char *method, json_t *params)
{
	AUTO(auto_free) char *said = NULL, *text = NULL;
	json_t *meta = json_object();

	json_object_set(meta, SUBSCRIPTION_ID, s->subject);
	json_object_set_new(params, "_meta", meta);
	said = js_dump(params);
	json_decref(params);
	text = rpc_notification(method, said);
	if (exchange_has_room(s->request->exchange))
		exchange_send(s->request->exchange, text);
}

static void
tell_list(struct listen_member *l, enum listen_list what)
{
	struct subscription *s = CONTAINER_OF(l, struct subscription, member);

	if (s->agreed == NULL)
		subscription_send(s, listeners_notice(what), json_object());
}

static void
end_cb(struct listen_member *l)
{
	struct subscription *s = CONTAINER_OF(l, struct subscription, member);
	struct mcp_request *r = s->request;
	json_t *meta = json_object();

	json_object_set(meta, SUBSCRIPTION_ID, s->subject);
	subscription_free(s);
	request_answer(r, json_pack("{s:o}", "_meta", meta));
}

/* ---- questions to the offer */

struct asked_thing {
	struct subscription *s;
	const char *text;
};

static void
ask_resource(struct mcp_call *call, void *arg)
{
	const struct asked_thing *q = arg;
	const struct mcp *m = q->s->m;

	m->resource_ops->watch(call, q->text, m->resource_arg);
}

static void
ask_task(struct mcp_call *call, void *arg)
{
	const struct asked_thing *q = arg;
	const struct mcp *m = q->s->m;
	const struct call_task task = {.way = CALL_TASK_GET};

	mcp_call_set_task(call, &task);
	m->task_ops->get(call, q->text, m->task_arg);
}

/* s may be gone then, with its exchange. */
static void
ask(struct subscription *s, const char *text, mcp_call_run_cb run,
    inner_call_cb cb)
{
	const struct mcp_context c = {.m = s->m,
	    .session = &s->session,
	    .rev = s->rev,
	    .client_can = s->client_can,
	    .who = s->who,
	    .request_id = s->request_id,
	    .log_level = LEVEL_NONE};
	struct asked_thing q = {s, text};

	s->is_asking = true;
	s->question = inner_call_start(&c, s->id, run, &q, cb, s);
	s->is_asking = false;
	if (s->request == NULL)
		subscription_free(s);
}

static void
agree(struct subscription *s, const char *member, json_t *text,
    enum watch_kind kind)
{
	json_t *all = json_object_get(s->agreed, member);
	struct err e;

	if (watches_add(listeners_watches(s->m), &s->watcher, kind,
		json_string_value(text), &e) != 0)
		return; /* it has too many: this one is not agreed to */
	if (all == NULL) {
		all = json_array();
		json_object_set_new(s->agreed, member, all);
	}
	json_array_append(all, text);
}

static void go_on(struct subscription *s);

static void
answered(struct subscription *s)
{
	s->question = NULL;
	if (!s->is_asking)
		go_on(s);
}

static void
resource_cb(const json_t *answer, void *arg)
{
	struct subscription *s = arg;
	json_t *uri = json_array_get(s->uris, s->nuris++);

	if (json_object_get(answer, "result") != NULL)
		agree(s, "resourceSubscriptions", uri, WATCH_RESOURCE);
	answered(s);
}

static void
task_cb(const json_t *answer, void *arg)
{
	struct subscription *s = arg;
	json_t *id = json_array_get(s->tasks, s->ntasks++);

	if (json_object_get(answer, "result") != NULL)
		agree(s, "taskIds", id, WATCH_TASK);
	answered(s);
}

/* A task that is there no more says nothing. */
static void
state_cb(const json_t *answer, void *arg)
{
	struct subscription *s = arg;

	s->state = json_deep_copy(json_object_get(answer, "result"));
	answered(s);
}

static void
ask_state(struct subscription *s)
{
	AUTO(auto_free)
	char *id = xstrdup(json_object_iter_key(json_object_iter(s->due)));

	json_object_del(s->due, id);
	ask(s, id, ask_task, state_cb);
}

static void
acknowledge(struct subscription *s)
{
	json_t *params = json_pack("{s:o}", "notifications", s->agreed);

	s->agreed = NULL;
	json_decref(s->uris);
	json_decref(s->tasks);
	s->uris = s->tasks = NULL;
	subscription_send(
	    s, "notifications/subscriptions/acknowledged", params);
}

static void
tell_state(struct subscription *s)
{
	json_t *state = s->state;

	s->state = NULL;
	subscription_send(s, "notifications/tasks", state);
}

/* The next step; false: there is none now. */
static bool
step(struct subscription *s)
{
	if (s->question != NULL)
		return false;
	if (s->nuris < json_array_size(s->uris))
		ask(s, json_string_value(json_array_get(s->uris, s->nuris)),
		    ask_resource, resource_cb);
	else if (s->ntasks < json_array_size(s->tasks))
		ask(s, json_string_value(json_array_get(s->tasks, s->ntasks)),
		    ask_task, task_cb);
	else if (s->agreed != NULL)
		acknowledge(s);
	else if (s->state != NULL)
		tell_state(s);
	else if (json_object_size(s->due) > 0)
		ask_state(s);
	else
		return false;
	return true;
}

/* With its exchange s is gone. */
static void
go_on(struct subscription *s)
{
	struct mcp_exchange *x = s->request->exchange;

	exchange_pin(x);
	while (!x->ended && step(s))
		;
	(void)exchange_unpin(x);
}

static void
tell_watched(struct watcher *w, enum watch_kind kind, const char *text)
{
	struct subscription *s = (struct subscription *)w;

	if (kind == WATCH_TASK) {
		json_object_set_new(s->due, text, json_true());
		go_on(s);
	} else if (s->agreed == NULL) {
		subscription_send(s, "notifications/resources/updated",
		    json_pack("{s:s}", "uri", text));
	}
}

/* ---- the request */

/* An array of texts that can be watched, or nothing. */
static bool
is_texts(const json_t *list)
{
	const json_t *v;
	size_t i;

	if (list == NULL)
		return true;
	if (!json_is_array(list) || json_array_size(list) > WATCHES_MAX)
		return false;
	json_array_foreach (list, i, v)
		if (js_plain(v) == NULL ||
		    json_string_length(v) > WATCH_TEXT_MAX)
			return false;
	return true;
}

/* false: r is answered */
static bool
check_wish(
    struct mcp_request *r, const struct mcp_context *c, const json_t *wish)
{
	const json_t *tasks = json_object_get(wish, "taskIds");

	if (!json_is_object(wish)) {
		request_error(r, MCP_INVALID_PARAMS,
		    "params.notifications must be an object: what to be told "
		    "of",
		    NULL);
	} else if (!is_texts(json_object_get(wish, "resourceSubscriptions")) ||
	    !is_texts(tasks)) {
		request_error(r, MCP_INVALID_PARAMS,
		    "resourceSubscriptions and taskIds must be arrays of at "
		    "most 256 texts",
		    NULL);
	} else if (tasks != NULL &&
	    (c->client_can & can_bit(MCP_CAN_TASKS)) == 0) {
		tasks_need_extension(r);
	} else {
		return true;
	}
	return false;
}

/* false: r is answered.  Every answer of this method is a stream. */
static bool
check_stream(struct mcp_request *r)
{
	struct err e;

	if (!exchange_takes_stream(r->exchange)) {
		request_refuse(r, 406, MCP_SERVER_ERROR,
		    "Accept must list text/event-stream for "
		    "subscriptions/listen");
		return false;
	}
	if (exchange_set_forms(r->exchange, ACCEPT_STREAM, &e) != 0) {
		request_refuse(r, 429, MCP_SERVER_ERROR, e.msg);
		return false;
	}
	return true;
}

static void
take_lists(struct subscription *s, const json_t *wish)
{
	static const char *const members[LISTEN_LISTS] = {
	    [LISTEN_TOOLS] = "toolsListChanged",
	    [LISTEN_PROMPTS] = "promptsListChanged"};

	for (unsigned int i = 0; i < LISTEN_LISTS; i++) {
		if (!s->m->list_changes ||
		    !json_is_true(json_object_get(wish, members[i])))
			continue;
		s->member.wants |= 1u << i;
		json_object_set_new(s->agreed, members[i], json_true());
	}
}

static json_t *
texts_of(const json_t *wish, const char *member, bool is_offered)
{
	const json_t *list = json_object_get(wish, member);

	return list == NULL || !is_offered ? json_array() :
					     json_deep_copy(list);
}

static struct subscription *
subscription_new(struct mcp_request *r, const struct mcp_context *c)
{
	struct subscription *s = xcalloc(1, sizeof(*s));

	s->request = r;
	s->m = c->m;
	s->session = *c->session;
	s->rev = c->rev;
	s->client_can = c->client_can;
	s->who = principal_ref(c->who);
	(void)snprintf(
	    s->request_id, sizeof(s->request_id), "%s", c->request_id);
	s->id = xstrdup(r->id);
	s->subject = json_loads(r->id, JSON_DECODE_ANY, NULL);
	s->watcher.tenant = c->who->tenant;
	s->watcher.tell = tell_watched;
	s->member.tell = tell_list;
	s->member.end = end_cb;
	s->agreed = json_object();
	s->due = json_object();
	return s;
}

static void
on_listen(struct mcp_request *r, const struct mcp_context *c)
{
	const json_t *wish =
	    json_object_get(c->message->params, "notifications");
	const struct mcp *m = c->m;
	struct subscription *s;

	if (!check_wish(r, c, wish) || !check_stream(r))
		return;
	s = subscription_new(r, c);
	s->uris = texts_of(wish, "resourceSubscriptions",
	    m->resource_ops != NULL && m->resource_ops->watch != NULL);
	s->tasks = texts_of(wish, "taskIds", m->task_ops != NULL);
	take_lists(s, wish);
	request_hold(r, on_lost, s);
	listeners_add(c->m, &s->member);
	s->is_member = true;
	go_on(s);
}

static bool
is_offered(const struct mcp *m)
{
	return m->list_changes || m->task_ops != NULL ||
	    (m->resource_ops != NULL && m->resource_ops->watch != NULL);
}

static const struct mcp_method methods[] = {
    {"subscriptions/listen", SINCE_STATELESS, 0, on_listen},
};

const struct mcp_provider methods_subscriptions = {
    .is_offered = is_offered,
    .methods = methods,
    .nmethods = ARRAY_LEN(methods),
};

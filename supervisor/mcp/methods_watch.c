/*
 * methods_watch.c - resources/subscribe and unsubscribe, logging/setLevel:
 * what a session says once (until MCP 2025-11-25)
 */
#include "supervisor/mcp/provider.h"

#include <stdio.h>

#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/inner_call.h"
#include "supervisor/mcp/level.h"
#include "supervisor/mcp/listeners.h"

#define SINCE_FIRST 20241105
#define UNTIL_STATELESS 20251125

/* ---- resources/subscribe: when the offer has said that it may be seen */

struct subscribing {
	struct mcp_request *request; /* NULL: its client left */
	struct mcp *m;
	struct session session;
	struct principal *who;
	char *uri;
	struct inner_call *question; /* NULL: inside inner_call_start */
	json_t *answer;              /* that came inside, or NULL */
};

static void
subscribing_free(struct subscribing *s)
{
	inner_call_drop(s->question);
	principal_unref(s->who);
	free(s->uri);
	json_decref(s->answer);
	free(s);
}

/* Inside inner_call_start s is still in use: on_subscribe frees it. */
static void
subscribing_on_lost(void *arg)
{
	struct subscribing *s = arg;

	s->request = NULL;
	if (s->question != NULL)
		subscribing_free(s);
}

static void
run_watch(struct mcp_call *call, void *arg)
{
	const struct subscribing *s = arg;

	s->m->resource_ops->watch(call, s->uri, s->m->resource_arg);
}

static void
subscribing_end(struct subscribing *s)
{
	AUTO(auto_json) json_t *answer = json_incref(s->answer);
	const json_t *error = json_object_get(answer, "error");
	bool ended = session_has_ended(s->m->sessions, &s->session);
	bool may = !ended && s->request != NULL &&
	    json_object_get(answer, "result") != NULL;
	const struct mcp_context c = {
	    .m = s->m, .session = &s->session, .who = s->who};
	struct mcp_request *r = s->request;
	struct err e;
	int rc = may ? listeners_watch(s->m, &c, s->uri, &e) : 0;

	subscribing_free(s);
	if (r == NULL)
		return;
	if (ended)
		request_error(
		    r, MCP_SESSION_NOT_FOUND, "Session not found", NULL);
	else if (error != NULL)
		request_error(r,
		    (int)json_integer_value(json_object_get(error, "code")),
		    js_text(error, "message"), json_object_get(error, "data"));
	else if (rc != 0)
		request_error(r, MCP_INVALID_PARAMS, e.msg, NULL);
	else if (may)
		request_result(r, NULL, "{}");
	else /* its client cancelled it: no response */
		request_drop(r);
}

static void
watched_cb(const json_t *answer, void *arg)
{
	struct subscribing *s = arg;

	s->answer = json_incref((json_t *)(uintptr_t)answer);
	if (s->question == NULL) /* the offer may still read its address */
		return;
	s->question = NULL;
	subscribing_end(s);
}

/* params.uri; NULL: it is none, and r is refused */
static const char *
uri_of(struct mcp_request *r, const struct mcp_context *c)
{
	const char *uri = js_plain(json_object_get(c->message->params, "uri"));

	if (uri != NULL && *uri != '\0')
		return uri;
	request_error(r, MCP_INVALID_PARAMS,
	    "params.uri must be the address of a resource", NULL);
	return NULL;
}

static void
on_subscribe(struct mcp_request *r, const struct mcp_context *c)
{
	const char *uri = uri_of(r, c);
	AUTO(auto_free) char *id = NULL;
	struct subscribing *s;

	if (uri == NULL)
		return;
	s = xcalloc(1, sizeof(*s));
	s->request = r;
	s->m = c->m;
	s->session = *c->session;
	s->who = principal_ref(c->who);
	s->uri = xstrdup(uri);
	id = xstrdup(r->id); /* r may be gone before its end */
	request_hold(r, subscribing_on_lost, s);
	s->question = inner_call_start(c, id, run_watch, s, watched_cb, s);
	if (s->question == NULL)
		subscribing_end(s);
	else if (s->request == NULL)
		subscribing_free(s);
}

static void
on_unsubscribe(struct mcp_request *r, const struct mcp_context *c)
{
	const char *uri = uri_of(r, c);

	if (uri == NULL)
		return;
	listeners_unwatch(c->m, c, uri);
	request_result(r, NULL, "{}");
}

static bool
watch_is_offered(const struct mcp *m)
{
	return m->resource_ops != NULL && m->resource_ops->watch != NULL;
}

static void
announce_watch(
    const struct mcp *m, const struct era_revision *rev, json_t *capabilities)
{
	(void)m;
	(void)rev;
	json_object_set_new(json_object_get(capabilities, "resources"),
	    "subscribe", json_true());
}

static const struct mcp_method watch_methods[] = {
    {"resources/subscribe", SINCE_FIRST, UNTIL_STATELESS, on_subscribe},
    {"resources/unsubscribe", SINCE_FIRST, UNTIL_STATELESS, on_unsubscribe},
};

const struct mcp_provider methods_watch = {
    .is_offered = watch_is_offered,
    .announce = announce_watch,
    .methods = watch_methods,
    .nmethods = ARRAY_LEN(watch_methods),
};

/* ---- logging */

static void
on_set_level(struct mcp_request *r, const struct mcp_context *c)
{
	int level = level_find(json_object_get(c->message->params, "level"));

	if (level == LEVEL_NONE) {
		request_error(r, MCP_INVALID_PARAMS,
		    "params.level must be debug, info, notice, warning, error, "
		    "critical, alert or emergency",
		    NULL);
		return;
	}
	listeners_set_level(c->m, c, (enum mcp_level)level);
	request_result(r, NULL, "{}");
}

static void
announce_logging(
    const struct mcp *m, const struct era_revision *rev, json_t *capabilities)
{
	(void)m;
	(void)rev;
	json_object_set_new(capabilities, "logging", json_object());
}

static const struct mcp_method logging_methods[] = {
    {"logging/setLevel", SINCE_FIRST, UNTIL_STATELESS, on_set_level},
};

const struct mcp_provider methods_logging = {
    .announce = announce_logging,
    .methods = logging_methods,
    .nmethods = ARRAY_LEN(logging_methods),
};

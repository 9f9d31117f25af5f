/*
 * mcp_call.c - tool calls in flight: started, told of, cancelled, ended
 *
 * A call is found by its session and request id (inflight.h) as long as its
 * tool did not end it.  Its request is only there while somebody waits: what
 * takes the request away (call_on_lost, a cancel) also takes the progress, so
 * that a tool which asks call_wants_progress() does nothing for nobody.
 */
#include "supervisor/mcp/mcp_call.h"

#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/content.h"

struct mcp_call {
	struct call base; /* first: what is given back is found by it */
	struct inflight_entry entry;
	struct mcp *m;               /* NULL after mcp_free */
	struct mcp_request *request; /* NULL: nobody to answer */
	const struct era_revision *rev;
	char *progress_token; /* JSON text; NULL: not asked for */
	bool progressed;      /* and last was sent */
	uint64_t last;
};

static void call_on_progress(struct call *base, const struct call_progress *p);

static const struct call_ops call_ops_telling = {.progress = call_on_progress};
static const struct call_ops call_ops_silent = {.progress = NULL};

static struct mcp_call *
call_of_entry(struct inflight_entry *entry)
{
	return (struct mcp_call *)(void *)((char *)entry -
	    offsetof(struct mcp_call, entry));
}

static void
call_free(struct mcp_call *c)
{
	if (c->m != NULL && c->entry.owner != NULL)
		inflight_remove(c->m->inflight, &c->entry);
	call_clear(&c->base);
	free(c->entry.id);
	free(c->progress_token);
	free(c);
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
	memcpy(c->base.session, with->session->name, sizeof(c->base.session));
	call_set_client(&c->base, with->session->client);
	call_set_trace(&c->base, with->message->traceparent, with->traceparent);
	c->m = with->m;
	c->request = r;
	c->rev = with->session->rev;
	c->entry.id = xstrdup(r->id);
	memcpy(c->entry.session, with->session->id, SESSION_ID_LEN);
	if (telling)
		c->progress_token = xstrdup(with->message->progress_token);
	return c;
}

/* Nobody is left to be answered; the tool hears nothing of it. */
static void
call_on_lost(void *arg)
{
	struct mcp_call *c = arg;

	c->request = NULL;
	c->base.up = &call_ops_silent;
}

void
mcp_call_start(struct mcp_request *r, const struct registry_tool *tool,
    json_t *arguments, const struct mcp_context *with)
{
	struct mcp_exchange *x = r->exchange;
	struct mcp_call *c = call_new(r, with);
	bool telling = c->progress_token != NULL;
	struct err e;
	int rc;

	rc = inflight_add(with->m->inflight, &c->entry, with->who, &e);
	if (rc != 0) {
		call_free(c);
		request_refuse(r, rc == ERR_LIMIT ? 429 : 400,
		    rc == ERR_LIMIT ? MCP_SERVER_ERROR : MCP_INVALID_REQUEST,
		    e.msg);
		return;
	}
	request_hold(r, call_on_lost, c);
	tool->on_call(c, arguments, tool->arg);
	/* c may be gone.  What ends at once is answered as plain JSON; who
	 * waits and asked for progress gets its stream now. */
	if (telling && !x->ended)
		exchange_stream_open(x);
}

void
mcp_call_cancel(
    struct mcp *m, const struct session *session, const char *request_id)
{
	struct inflight_entry *entry =
	    inflight_find(m->inflight, session->id, request_id);
	struct mcp_request *r;
	struct mcp_call *c;

	if (entry == NULL)
		return;
	c = call_of_entry(entry);
	entry->canceled = true;
	r = c->request;
	call_on_lost(c);
	if (r != NULL) /* no response, says the cancellation page */
		request_drop(r);
	call_cancel(&c->base); /* may end the call */
}

void
mcp_call_orphan_all(struct mcp *m)
{
	struct inflight_entry *entry;

	while ((entry = inflight_any(m->inflight)) != NULL) {
		inflight_remove(m->inflight, entry);
		call_of_entry(entry)->m = NULL;
	}
}

/* ---- what a tool says */

struct call *
mcp_call_base(struct mcp_call *c)
{
	return &c->base;
}

void
mcp_call_result(
    struct mcp_call *c, struct mcp_content *content, enum mcp_outcome outcome)
{
	AUTO(auto_free) char *result = NULL;
	struct mcp_request *r = c->request;

	if (r != NULL)
		result = content_tool_result(c->rev, content, outcome);
	mcp_content_free(content);
	call_free(c);
	if (r != NULL)
		request_result(r, NULL, result);
}

static char *
progress_text(const struct mcp_call *c, const struct call_progress *p)
{
	AUTO(auto_json) json_t *params = json_object();
	AUTO(auto_free) char *rest = NULL;
	AUTO(auto_free) char *all = NULL;

	json_object_set_new(
	    params, "progress", json_integer((json_int_t)p->done));
	if (p->text != NULL && era_has(c->rev, ERA_PROGRESS_TEXT))
		json_object_set_new(params, "message",
		    js_string_bytes(p->text, strlen(p->text), NULL));
	rest = js_dump(params);
	/* The token goes in as the text it came in. */
	all =
	    xasprintf("{\"progressToken\":%s,%s", c->progress_token, rest + 1);
	return rpc_notification("notifications/progress", all);
}

/* Progress may be left out, an answer may not: so it is what gives way when
 * the client does not read. */
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
	text = progress_text(c, p);
	exchange_send(c->request->exchange, text);
}

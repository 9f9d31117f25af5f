#include "supervisor/mcp/call.h"

#include <math.h>

#include "common/js.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/content.h"

struct mcp_call {
	struct inflight_entry entry; /* first: found through it */
	struct mcp *m;               /* NULL after mcp_free */
	struct mcp_request *request; /* NULL: nobody to answer */
	const struct era_revision *rev;
	const void *principal_ref;
	char *progress_token; /* JSON text; NULL: not asked for */
	double progress;      /* the last one sent */
	void (*on_cancel)(void *);
	void *on_cancel_arg;
};

static void
call_free(struct mcp_call *c)
{
	if (c->m != NULL && c->entry.owner != NULL)
		inflight_remove(c->m->inflight, &c->entry);
	if (c->request != NULL)
		c->request->call = NULL;
	free(c->entry.id);
	free(c->progress_token);
	free(c);
}

static struct mcp_call *
call_new(struct mcp_request *r, const struct call_start *with)
{
	struct mcp_call *c = xcalloc(1, sizeof(*c));

	c->m = r->m;
	c->request = r;
	c->rev = with->session->rev;
	c->principal_ref = with->principal_ref;
	c->progress = -INFINITY;
	c->entry.id = xstrdup(r->id);
	memcpy(c->entry.session, with->session->id, SESSION_ID_LEN);
	if (with->progress_token != NULL)
		c->progress_token = xstrdup(with->progress_token);
	return c;
}

void
call_start(struct mcp_request *r, const struct tool *tool, json_t *arguments,
    const struct call_start *with)
{
	struct mcp_call *c = call_new(r, with);
	struct err e;
	int rc;

	rc = inflight_add(r->m->inflight, &c->entry, with->principal, &e);
	if (rc != 0) {
		call_free(c);
		exchange_refuse(r, rc == ERR_LIMIT ? 429 : 400,
		    rc == ERR_LIMIT ? MCP_SERVER_ERROR : MCP_INVALID_REQUEST,
		    e.msg, NULL);
		return;
	}
	r->call = c;
	r->m->stats.tool_calls++;
	tool->on_call(c, arguments, tool->arg);
	/* c may be gone.  What ends at once is answered as plain JSON; who
	 * waits and asked for progress gets its stream now. */
	if (r->call != NULL && with->progress_token != NULL)
		exchange_stream_open(r);
}

void
call_lose_client(struct mcp_call *c)
{
	c->request = NULL;
}

void
call_cancel(
    struct mcp *m, const struct session *session, const char *request_id)
{
	struct inflight_entry *entry =
	    inflight_find(m->inflight, session->id, request_id);
	struct mcp_call *c = (struct mcp_call *)entry;
	void (*cb)(void *);

	if (c == NULL)
		return;
	entry->cancelled = true;
	if (c->request != NULL) /* no response, says the cancellation page */
		exchange_drop(c->request);
	cb = c->on_cancel;
	c->on_cancel = NULL;
	if (cb != NULL)
		cb(c->on_cancel_arg); /* may end the call */
}

void
call_orphan_all(struct mcp *m)
{
	struct inflight_entry *entry;

	while ((entry = inflight_any(m->inflight)) != NULL) {
		struct mcp_call *c = (struct mcp_call *)entry;

		inflight_remove(m->inflight, entry);
		c->m = NULL;
	}
}

/* ---- for tools */

void
mcp_call_result(
    struct mcp_call *c, const char *text, json_t *structured, bool is_error)
{
	AUTO(auto_json) json_t *own = structured;
	AUTO(auto_free) char *result = NULL;
	struct mcp_request *r = c->request;

	if (r != NULL)
		result = content_tool_result(c->rev, text, own, is_error);
	call_free(c);
	if (r != NULL)
		exchange_result(r, NULL, result);
}

void
mcp_call_error(struct mcp_call *c, int code, const char *message, json_t *data)
{
	AUTO(auto_json) json_t *own = data;
	struct mcp_request *r = c->request;

	call_free(c);
	if (r != NULL)
		exchange_error(r, code, message, own);
}

static char *
progress_text(const struct mcp_call *c, double progress, const char *message)
{
	AUTO(auto_json) json_t *params = json_object();
	AUTO(auto_free) char *rest = NULL;
	AUTO(auto_free) char *all = NULL;
	/* 3, not 3.0; the bound keeps the cast defined. */
	bool whole =
	    fabs(progress) < 9e15 && (double)(json_int_t)progress == progress;

	json_object_set_new(params, "progress",
	    whole ? json_integer((json_int_t)progress) : json_real(progress));
	if (message != NULL && era_has(c->rev, ERA_PROGRESS_TEXT))
		json_object_set_new(params, "message",
		    js_string_bytes(message, strlen(message), NULL));
	rest = js_dump(params);
	/* The token goes in as the text it came in. */
	all =
	    xasprintf("{\"progressToken\":%s,%s", c->progress_token, rest + 1);
	return rpc_notification("notifications/progress", all);
}

void
mcp_call_progress(struct mcp_call *c, double progress, const char *message)
{
	AUTO(auto_free) char *text = NULL;

	if (c->request == NULL || c->progress_token == NULL)
		return;
	/* It must grow with each notification (MCP 2025-11-25, progress). */
	if (!isfinite(progress) || !(progress > c->progress))
		return;
	c->progress = progress;
	text = progress_text(c, progress, message);
	exchange_stream_send(c->request, text);
}

void
mcp_call_on_cancel(struct mcp_call *c, void (*cb)(void *), void *arg)
{
	if (c->entry.cancelled) { /* it came before the tool was ready */
		if (cb != NULL)
			cb(arg);
		return;
	}
	c->on_cancel = cb;
	c->on_cancel_arg = arg;
}

const void *
mcp_call_principal(const struct mcp_call *c)
{
	return c->principal_ref;
}

bool
mcp_call_has_client(const struct mcp_call *c)
{
	return c->request != NULL;
}

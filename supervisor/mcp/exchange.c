#include "supervisor/mcp/exchange.h"

#include "common/clock.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/accept.h"
#include "supervisor/mcp/mcp_call.h"
#include "supervisor/mcp/rpc.h"

struct mcp_request *
exchange_new(struct mcp *m, const struct mcp_reply_ops *ops, void *handle)
{
	struct mcp_request *r = xcalloc(1, sizeof(*r));

	r->m = m;
	r->ops = ops;
	r->handle = handle;
	r->forms = ACCEPT_JSON;
	r->since_ms = clock_mono_ms();
	TAILQ_INSERT_TAIL(&m->exchanges, r, link);
	return r;
}

void
exchange_pin(struct mcp_request *r)
{
	r->pins++;
}

bool
exchange_unpin(struct mcp_request *r)
{
	if (--r->pins > 0 || !r->ended)
		return !r->ended;
	free(r->id);
	free(r);
	return false;
}

/* From here on ops are not called any more, and the call has no client. */
static void
end(struct mcp_request *r)
{
	r->ended = true;
	TAILQ_REMOVE(&r->m->exchanges, r, link);
	if (r->call != NULL)
		mcp_call_lose_client(r->call);
	r->call = NULL;
}

/* The last thing ops are asked for; r is pinned by the caller. */
static void
reply(
    struct mcp_request *r, int status, const char *session_id, const char *text)
{
	end(r);
	r->ops->reply(r->handle, status, session_id, text,
	    text == NULL ? 0 : strlen(text));
}

/* Open the stream unless it is; the client may leave meanwhile, as with all
 * ops: look at r->ended before the next.  r is pinned by the caller. */
static void
start(struct mcp_request *r, const char *session_id)
{
	if (r->streaming)
		return;
	r->streaming = true;
	r->ops->stream_start(r->handle, session_id);
}

static void
stream_last(struct mcp_request *r, const char *session_id, const char *text)
{
	start(r, session_id);
	if (!r->ended && text != NULL)
		r->ops->stream_send(r->handle, text, strlen(text));
	if (r->ended)
		return;
	end(r);
	r->ops->stream_end(r->handle);
}

static void
answer(struct mcp_request *r, const char *session_id, const char *text)
{
	if (r->ended)
		return;
	exchange_pin(r);
	if (r->streaming || (r->forms & ACCEPT_JSON) == 0)
		stream_last(r, session_id, text);
	else
		reply(r, 200, session_id, text);
	(void)exchange_unpin(r);
}

void
exchange_result(
    struct mcp_request *r, const char *session_id, const char *result)
{
	AUTO(auto_free) char *text = rpc_result(r->id, result);

	answer(r, session_id, text);
}

void
exchange_error(
    struct mcp_request *r, int code, const char *message, const json_t *data)
{
	AUTO(auto_free) char *text = rpc_error(r->id, code, message, data);

	r->m->stats.errors++;
	answer(r, NULL, text);
}

void
exchange_refuse(struct mcp_request *r, int status, int code,
    const char *message, const json_t *data)
{
	AUTO(auto_free) char *text = rpc_error(r->id, code, message, data);

	r->m->stats.errors++;
	exchange_pin(r);
	reply(r, status, NULL, text);
	(void)exchange_unpin(r);
}

void
exchange_accept(struct mcp_request *r, int status)
{
	exchange_pin(r);
	reply(r, status, NULL, NULL);
	(void)exchange_unpin(r);
}

void
exchange_drop(struct mcp_request *r)
{
	exchange_pin(r);
	if (r->streaming || (r->forms & ACCEPT_STREAM) != 0)
		stream_last(r, NULL, NULL);
	else
		reply(r, 202, NULL, NULL);
	(void)exchange_unpin(r);
}

void
exchange_stream_open(struct mcp_request *r)
{
	if (r->ended || r->streaming || (r->forms & ACCEPT_STREAM) == 0)
		return;
	exchange_pin(r);
	start(r, NULL);
	(void)exchange_unpin(r);
}

void
exchange_stream_send(struct mcp_request *r, const char *text)
{
	if (r->ended || (r->forms & ACCEPT_STREAM) == 0)
		return;
	exchange_pin(r);
	start(r, NULL);
	if (!r->ended)
		r->ops->stream_send(r->handle, text, strlen(text));
	(void)exchange_unpin(r);
}

bool
exchange_stream_has_room(const struct mcp_request *r)
{
	return !r->ended &&
	    (!r->streaming ||
		r->ops->stream_pending(r->handle) <= MCP_PROGRESS_PENDING_MAX);
}

void
exchange_abandon(struct mcp_request *r)
{
	exchange_pin(r);
	end(r);
	(void)exchange_unpin(r);
}

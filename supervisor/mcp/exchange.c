#include "supervisor/mcp/exchange.h"

#include "common/clock.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/accept.h"

struct mcp_exchange *
exchange_new(struct mcp *m, const struct mcp_transport_ops *ops, void *handle)
{
	struct mcp_exchange *x = xcalloc(1, sizeof(*x));

	x->m = m;
	x->ops = ops;
	x->handle = handle;
	x->forms = ACCEPT_JSON;
	x->since_ms = clock_mono_ms();
	TAILQ_INSERT_TAIL(&m->exchanges, x, link);
	return x;
}

void
exchange_pin(struct mcp_exchange *x)
{
	x->pins++;
}

bool
exchange_unpin(struct mcp_exchange *x)
{
	if (--x->pins > 0 || !x->ended)
		return !x->ended;
	free(x);
	return false;
}

/* ---- the end */

/* From here on ops are not called any more. */
static void
end(struct mcp_exchange *x)
{
	struct exchange_waiter *w = x->waiter;

	x->ended = true;
	x->waiter = NULL;
	TAILQ_REMOVE(&x->m->exchanges, x, link);
	if (w != NULL)
		w->on_end(w);
}

/* The last thing ops are asked for; x is pinned by the caller. */
static void
send_reply(struct mcp_exchange *x, int status, const char *session_id,
    const char *text)
{
	end(x);
	x->ops->reply(x->handle, status, session_id, text,
	    text == NULL ? 0 : strlen(text));
}

/* x is pinned by the caller. */
static void
open_stream(struct mcp_exchange *x, const char *session_id)
{
	if (!stream_is_open(&x->stream))
		stream_open(
		    &x->stream, &x->m->streams, x->ops, x->handle, session_id);
}

static void
stream_last(struct mcp_exchange *x, const char *session_id, const char *text)
{
	open_stream(x, session_id);
	if (!x->ended && text != NULL)
		stream_send(&x->stream, text);
	if (x->ended)
		return;
	end(x);
	stream_end(&x->stream);
}

void
exchange_wait(struct mcp_exchange *x, struct exchange_waiter *w)
{
	x->waiter = w;
}

void
exchange_answer(
    struct mcp_exchange *x, const char *session_id, const char *text)
{
	x->waiter = NULL;
	exchange_pin(x);
	if (stream_is_open(&x->stream) || (x->forms & ACCEPT_JSON) == 0 ||
	    (text == NULL && exchange_takes_stream(x)))
		stream_last(x, session_id, text);
	else
		send_reply(x, text == NULL ? 202 : 200, session_id, text);
	(void)exchange_unpin(x);
}

void
exchange_reply(struct mcp_exchange *x, int status, const char *text)
{
	x->waiter = NULL;
	exchange_pin(x);
	send_reply(x, status, NULL, text);
	(void)exchange_unpin(x);
}

void
exchange_abandon(struct mcp_exchange *x)
{
	exchange_pin(x);
	end(x);
	stream_forget(&x->stream);
	(void)exchange_unpin(x);
}

/* ---- before the end */

static int
take_place(struct mcp_exchange *x, struct err *e)
{
	if (x->has_place)
		return 0;
	if (x->ops->stream_take != NULL &&
	    x->ops->stream_take(x->handle, e) != 0)
		return e->code;
	x->has_place = true;
	return 0;
}

int
exchange_set_forms(struct mcp_exchange *x, unsigned int forms, struct err *e)
{
	if (forms == ACCEPT_STREAM && take_place(x, e) != 0)
		return e->code;
	x->forms = forms;
	return 0;
}

bool
exchange_takes_stream(const struct mcp_exchange *x)
{
	return (x->forms & ACCEPT_STREAM) != 0;
}

void
exchange_stream_open(struct mcp_exchange *x)
{
	struct err e;

	if (!exchange_takes_stream(x))
		return;
	if (take_place(x, &e) != 0) {
		x->forms &= ~(unsigned int)ACCEPT_STREAM;
		return;
	}
	exchange_pin(x);
	open_stream(x, NULL);
	(void)exchange_unpin(x);
}

bool
exchange_has_room(const struct mcp_exchange *x)
{
	return !stream_is_open(&x->stream) || stream_has_room(&x->stream);
}

void
exchange_send(struct mcp_exchange *x, const char *text)
{
	exchange_pin(x);
	exchange_stream_open(x);
	if (!x->ended && stream_is_open(&x->stream))
		stream_send(&x->stream, text);
	(void)exchange_unpin(x);
}

#include "supervisor/mcp/exchange.h"

#include <stdio.h>
#include <sys/uio.h>

#include "common/clock.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/accept.h"

#define STREAM_AFTER_MS 1000 /* a call that takes longer gets its stream */
#define RETRY_MS 1000        /* a client that lost it waits so long */

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
	if (x->ids != NULL)
		x->ids->free(x->ids);
	free(x);
	return false;
}

/* ---- the event stream */

#define PIECE(text)                                                            \
	{                                                                      \
		(char *)(uintptr_t)(text), strlen(text)                        \
	}

/* session_id for the header, or NULL */
static void
stream_open(struct mcp_exchange *x, const char *session_id)
{
	x->is_streaming = true;
	x->last_ms = clock_mono_ms();
	LIST_INSERT_HEAD(&x->m->streams, x, stream_link);
	x->ops->stream_start(x->handle, session_id);
}

static void
write_event(struct mcp_exchange *x, const struct iovec *pieces, int n)
{
	x->last_ms = clock_mono_ms();
	x->ops->stream_write(x->handle, pieces, n);
}

/* One message: JSON text without a line break. */
static void
stream_send(struct mcp_exchange *x, const char *text, enum exchange_event what)
{
	char id[EXCHANGE_EVENT_ID_MAX + 1];
	const struct iovec plain[] = {
	    PIECE("event: message\ndata: "), PIECE(text), PIECE("\n\n")};

	if (x->ids == NULL) {
		write_event(x, plain, ARRAY_LEN(plain));
	} else {
		x->ids->next(x->ids, what, id);
		write_event(x,
		    (const struct iovec[]){PIECE("event: message\nid: "),
			PIECE(id), PIECE("\ndata: "), PIECE(text),
			PIECE("\n\n")},
		    5);
	}
}

/* An id without a message. */
static void
stream_prime(struct mcp_exchange *x, uint32_t retry_ms)
{
	char id[EXCHANGE_EVENT_ID_MAX + 1], retry[40];

	(void)snprintf(
	    retry, sizeof(retry), "\nretry: %u\ndata: \n\n", retry_ms);
	x->ids->next(x->ids, EXCHANGE_EVENT, id);
	x->to_prime = false;
	x->is_primed = true;
	write_event(x,
	    (const struct iovec[]){PIECE("id: "), PIECE(id), PIECE(retry)}, 3);
}

static void
stream_forget(struct mcp_exchange *x)
{
	if (!x->is_streaming)
		return;
	if (x->m->next_stream == x)
		x->m->next_stream = LIST_NEXT(x, stream_link);
	LIST_REMOVE(x, stream_link);
	x->is_streaming = false;
}

/* From here on ops are not called any more. */
static void
end(struct mcp_exchange *x)
{
	struct exchange_waiter *w = x->waiter;

	x->ended = true;
	x->waiter = NULL;
	if (x->m->next_exchange == x)
		x->m->next_exchange = TAILQ_NEXT(x, link);
	TAILQ_REMOVE(&x->m->exchanges, x, link);
	stream_forget(x);
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
	if (!x->is_streaming)
		stream_open(x, session_id);
}

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

/* Whether the answer ends a stream, be it one that begins with it: who takes
 * one and gets no message has an empty one, if there may be one more. */
static bool
ends_stream(struct mcp_exchange *x, const char *text)
{
	struct err e;

	return x->is_streaming || (x->forms & ACCEPT_JSON) == 0 ||
	    (text == NULL && exchange_takes_stream(x) &&
		take_place(x, &e) == 0);
}

static void
stream_last(struct mcp_exchange *x, const char *session_id, const char *text)
{
	open_stream(x, session_id);
	if (!x->ended && text != NULL)
		stream_send(x, text, EXCHANGE_LAST_EVENT);
	if (x->ended)
		return;
	end(x);
	x->ops->stream_end(x->handle);
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
	if (ends_stream(x, text))
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
	(void)exchange_unpin(x);
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
	if (!x->ended && x->to_prime)
		stream_prime(x, RETRY_MS);
	(void)exchange_unpin(x);
}

bool
exchange_has_room(const struct mcp_exchange *x)
{
	return !x->is_streaming ||
	    x->ops->stream_pending(x->handle) <= MCP_PROGRESS_PENDING_MAX;
}

void
exchange_send(struct mcp_exchange *x, const char *text)
{
	exchange_pin(x);
	exchange_stream_open(x);
	if (!x->ended && x->is_streaming)
		stream_send(x, text, EXCHANGE_EVENT);
	(void)exchange_unpin(x);
}

void
exchange_send_as(struct mcp_exchange *x, const char *event, const char *text)
{
	exchange_pin(x);
	exchange_stream_open(x);
	if (!x->ended && x->is_streaming)
		write_event(x,
		    (const struct iovec[]){PIECE("event: "), PIECE(event),
			PIECE("\ndata: "), PIECE(text), PIECE("\n\n")},
		    5);
	(void)exchange_unpin(x);
}

void
exchange_set_ids(
    struct mcp_exchange *x, struct exchange_ids *ids, enum exchange_prime prime)
{
	if (x->ids != NULL)
		x->ids->free(x->ids);
	x->ids = ids;
	if (prime == EXCHANGE_NO_PRIME)
		return;
	x->to_prime = !x->is_streaming;
	if (!x->is_streaming)
		return;
	exchange_pin(x);
	stream_prime(x, RETRY_MS);
	(void)exchange_unpin(x);
}

bool
exchange_hang_up(struct mcp_exchange *x, uint32_t retry_ms)
{
	bool hangs_up;

	exchange_pin(x);
	if (x->to_prime)
		exchange_stream_open(x);
	hangs_up = !x->ended && x->is_streaming && x->is_primed;
	if (hangs_up)
		stream_prime(x, retry_ms);
	if (hangs_up && !x->ended) {
		end(x);
		x->ops->stream_end(x->handle);
	}
	(void)exchange_unpin(x);
	return hangs_up;
}

void
exchange_watch(struct mcp_exchange *x)
{
	if (x->ops->watch != NULL)
		x->ops->watch(x->handle);
}

/* An operation may find the client gone, and what ends then may be the next
 * one, too: end and stream_forget keep the walks below out of it. */
static void
beat(struct mcp *m, uint64_t now_ms)
{
	const struct iovec comment[] = {PIECE(": \n\n")};
	struct mcp_exchange *x = LIST_FIRST(&m->streams);

	for (; x != NULL; x = m->next_stream) {
		m->next_stream = LIST_NEXT(x, stream_link);
		if (now_ms < x->last_ms + m->heartbeat_ms)
			continue;
		x->last_ms = now_ms;
		/* Bytes that wait prove as much, and do not pile up. */
		if (x->ops->stream_pending(x->handle) == 0)
			x->ops->stream_write(
			    x->handle, comment, ARRAY_LEN(comment));
	}
}

void
exchange_tick(struct mcp *m, uint64_t mono_ms)
{
	struct mcp_exchange *x = TAILQ_FIRST(&m->exchanges);

	for (; x != NULL && x->since_ms + STREAM_AFTER_MS <= mono_ms;
	     x = m->next_exchange) {
		m->next_exchange = TAILQ_NEXT(x, link);
		exchange_stream_open(x);
	}
	m->next_exchange = NULL;
	beat(m, mono_ms);
}

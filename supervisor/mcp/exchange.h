/*
 * exchange.h - one HTTP request and its one answer
 *
 *	exchange_new
 *	     |
 *	   open --- exchange_wait: a request waits for its answer
 *	     |  \
 *	     |   exchange_stream_open: an event stream, then messages
 *	     |  /
 *	   ended    by the waiter's answer, a reply of another status, or
 *	            because the connection closed
 *
 * An exchange ends once; after that the transport's ops are not called for
 * it, and it is freed as soon as nobody on the stack uses it (exchange_pin).
 * It knows neither JSON-RPC nor what its waiter does: a request is one
 * (request.h), a batch of them another (batch.h), and so are streams that wait
 * for no answer (listeners.c, duplex.c).
 *
 * Each operation of the transport may find the client gone: then the transport
 * calls mcp_client_gone from inside.
 */
#ifndef MCP_EXCHANGE_H
#define MCP_EXCHANGE_H

#include "common/base.h"
#include "supervisor/mcp/mcp_int.h"

/* Who owes the answer; part of it. */
struct exchange_waiter {
	/* The exchange ended without its answer: it is not to be used. */
	void (*on_end)(struct exchange_waiter *w);
};

#define EXCHANGE_EVENT_ID_MAX 512

enum exchange_event {
	EXCHANGE_EVENT,
	EXCHANGE_LAST_EVENT /* the answer */
};

/* Ids for the events of a stream; its own from exchange_set_ids on. */
struct exchange_ids {
	void (*next)(struct exchange_ids *ids, enum exchange_event what,
	    char out[EXCHANGE_EVENT_ID_MAX + 1]);
	void (*free)(struct exchange_ids *ids);
};

struct mcp_exchange {
	TAILQ_ENTRY(mcp_exchange) link; /* struct mcp's, oldest first */
	struct mcp *m;
	const struct mcp_transport_ops *ops;
	void *handle;
	unsigned int forms; /* enum accept_form, OR-ed: what the client takes */
	unsigned int pins;
	bool ended;
	bool has_place;    /* one of the client's streams is its own */
	uint64_t since_ms; /* CLOCK_MONOTONIC */
	/* Its event stream (Server-Sent Events): */
	bool is_streaming;
	uint64_t last_ms; /* of its last bytes */
	LIST_ENTRY(mcp_exchange) stream_link;
	bool can_resume; /* its client can come back with the id of an event */
	bool is_primed;  /* it was sent one without a message */
	bool to_prime;   /* it is, as soon as there is a stream */
	struct exchange_ids *ids;       /* of its events; NULL: none */
	struct exchange_waiter *waiter; /* or NULL */
};

struct mcp_exchange *exchange_new(
    struct mcp *m, const struct mcp_transport_ops *ops, void *handle);
void exchange_pin(struct mcp_exchange *x);
/* exchange_unpin - false when it has ended, and then x is gone with the last
 * pin */
bool exchange_unpin(struct mcp_exchange *x);

/* exchange_wait - w owes the answer from now on; there is one per exchange */
void exchange_wait(struct mcp_exchange *x, struct exchange_waiter *w);
/* exchange_answer - the waiter's text, 200, in the form the client takes; w
 * is not told of the end.  session_id for the header, or NULL; text NULL: it
 * ends without a message (202, or an empty stream). */
void exchange_answer(
    struct mcp_exchange *x, const char *session_id, const char *text);
/* exchange_reply - any other answer: a status with a body, never as a stream;
 * text NULL: a status alone (202, 204) */
void exchange_reply(struct mcp_exchange *x, int status, const char *text);
/* exchange_abandon - the client is gone: no ops are called */
void exchange_abandon(struct mcp_exchange *x);

/* exchange_set_forms - what the client takes (accept.h); JSON before.
 * ERR_QUOTA: it takes streams alone, and may have no more of them */
int exchange_set_forms(
    struct mcp_exchange *x, unsigned int forms, struct err *e) MUSTCHECK;
/* exchange_takes_stream - the client would read events */
bool exchange_takes_stream(const struct mcp_exchange *x);
/* exchange_stream_open - if the client takes one and may have one more, else
 * it gets a plain answer; x may have ended then */
void exchange_stream_open(struct mcp_exchange *x);
/* exchange_send - a message before the answer, to who takes a stream; x may
 * have ended then.  What may be left out asks exchange_has_room before. */
bool exchange_has_room(const struct mcp_exchange *x);
void exchange_send(struct mcp_exchange *x, const char *text);
/* exchange_send_as - the same, as an event of another kind; of one line */
void exchange_send_as(
    struct mcp_exchange *x, const char *event, const char *text);

/* exchange_watch - that the client leaves is to be noticed at once */
void exchange_watch(struct mcp_exchange *x);
/* exchange_tick - mcp_tick's part: opens the streams of requests that wait for
 * long, and writes signs of life into silent ones */
void exchange_tick(struct mcp *m, uint64_t mono_ms);
/*
 * Ids of events (MCP 2025-11-25, transports, resumability)
 *
 * exchange_set_ids - events have ids from now on; ids are taken over.  With
 * EXCHANGE_PRIME a stream begins with one of its own, that has no message:
 * clients of older revisions would read that one as JSON.  x may have ended
 * then.  exchange_hang_up - its client, if it was primed, is to come back
 * after retry_ms: the stream ends without its answer, and the waiter is told;
 * false: there is none, or its client could not come back.
 */
enum exchange_prime {
	EXCHANGE_PRIME,
	EXCHANGE_NO_PRIME
};
void exchange_set_ids(struct mcp_exchange *x, struct exchange_ids *ids,
    enum exchange_prime prime);
bool exchange_hang_up(struct mcp_exchange *x, uint32_t retry_ms);

#endif

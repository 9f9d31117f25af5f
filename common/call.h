/*
 * call.h - one call of one principal, from the socket to its end
 *
 * Whoever takes a request from a client makes the call and owns it (MCP's is
 * part of its struct mcp_call); it lives until its owner has told the answer.
 * It carries what every layer below needs: who calls, until when, under which
 * ids.  Two things travel through it while it is worked on:
 *
 *	up	progress, to the client if it asked for it
 *	down	a cancel, to whoever works for the call now (its holder)
 *
 * The answer itself has a form of its own in each protocol and goes through
 * the owner's functions.
 */
#ifndef COMMON_CALL_H
#define COMMON_CALL_H

#include "common/base.h"
#include "common/principal.h"
#include "common/trace.h"

#define CALL_REQUEST_ID_MAX 64
#define CALL_ORIGIN_MAX 46
#define CALL_SERVER_URL_MAX 280
#define CALL_CLIENT_MAX 128
#define CALL_SESSION_LEN 32 /* hex digits */
#define CALL_TRACE_LEN TRACE_ID_LEN
#define CALL_SPAN_LEN TRACE_SPAN_LEN

struct call;

/* How far the work is.  done grows from one to the next: what does not is
 * left out.  text is UTF-8 for people and models, or NULL; borrowed. */
struct call_progress {
	uint64_t done;
	const char *text;
};

struct call_ops {
	/* May be NULL: the client did not ask for progress. */
	void (*progress)(struct call *c, const struct call_progress *p);
};

/* The holder stops the work soon and ends the call as always, now or later,
 * through its owner; nothing of it reaches the client any more. */
typedef void (*call_cancel_cb)(struct call *c, void *arg);

struct call {
	const struct call_ops *up;
	struct principal *who;
	char request_id[CALL_REQUEST_ID_MAX + 1]; /* for logs and errors */
	char origin[CALL_ORIGIN_MAX]; /* an address, "": not known */
	/* How the client reached this server, http://127.0.0.1:8080, for links
	 * to it; "": not known. */
	char server_url[CALL_SERVER_URL_MAX + 1];
	/* What the client says that it is, name/version: UTF-8 without control
	 * characters; "": it did not. */
	char client[CALL_CLIENT_MAX + 1];
	/* A digest of the session's id, which is no secret; "": none. */
	char session[CALL_SESSION_LEN + 1];
	/* W3C Trace Context: the trace, our span in it and the one above, in
	 * hex; "": not known. */
	char trace[CALL_TRACE_LEN + 1];
	char span[CALL_SPAN_LEN + 1];
	char parent_span[CALL_SPAN_LEN + 1];
	/* For programs that the call starts, where its client sent one; "":
	 * it did not. */
	char traceparent[TRACE_PARENT_LEN + 1];
	uint64_t deadline_ms; /* on the monotonic clock, 0: none */
	bool canceled;
	call_cancel_cb on_cancel;
	void *holder;
};

/* call_init - up is kept by pointer; who gets a reference; texts are copied
 * (a request id is cut at its limit) */
void call_init(struct call *c, const struct call_ops *up, struct principal *who,
    const char *request_id);
/* call_set_origin - copied, cut at its limit; may be NULL */
void call_set_origin(struct call *c, const char *origin);
/* call_set_server_url - copied; one that is too long, or NULL, is not known */
void call_set_server_url(struct call *c, const char *url);
/* call_set_client - copied, cut at its limit where a character ends, without
 * control characters; nothing of what is no UTF-8.  NULL: it said nothing */
void call_set_client(struct call *c, const char *client);
/* call_set_trace - a span below that of the first of these that is a good
 * traceparent (both may be NULL), else in a trace of our own */
void call_set_trace(struct call *c, const char *first, const char *second);
void call_clear(struct call *c);

/* call_hold - arg works for the call from now on.  A call that was canceled
 * before has its on_cancel called at once, inside. */
void call_hold(struct call *c, call_cancel_cb on_cancel, void *arg);
/* call_release - nobody does: a cancel is only remembered */
void call_release(struct call *c);
/* call_cancel - the client wants it no more; the second time does nothing */
void call_cancel(struct call *c);

/* call_wants_progress - somebody would see it */
bool call_wants_progress(const struct call *c);
void call_progress(struct call *c, const struct call_progress *p);

#endif

/*
 * relay.h - one message on its way to the server, until it is answered
 *
 * Streamable HTTP as MCP has it (2025-03-26 to 2026-07-28, transports): the
 * message is POSTed, its answer is JSON or a stream of events.  What goes
 * wrong:
 *
 *	nothing was sent	no connection, or HTTP 503: it is sent again,
 *				after RELAY_PAUSE_MIN_MS doubled up to
 *				RELAY_PAUSE_MAX_MS, for RELAY_PATIENCE_MS
 *	a stream broke		that had told an id: GET with Last-Event-ID, for
 *				RELAY_PATIENCE_MS since the last event
 *	anything else broke	RELAY_FAILED: it may have been received, so it
 *is never sent twice.  An initialize does nothing that matters twice, and is
 *sent again
 *
 * A relay without a message is the GET stream of a session: it comes back for
 * as long as the server has one.
 */
#ifndef STDIO_RELAY_H
#define STDIO_RELAY_H

#include "common/base.h"
#include "supervisor/stdio/message.h"

#define RELAY_ANSWER_MAX (16u << 20) /* bytes of one answer or event */
#define RELAY_PAUSE_MIN_MS 100
#define RELAY_PAUSE_MAX_MS 2000
#define RELAY_PATIENCE_MS 60000
#define RELAY_PATIENCE_VARIABLE "MCP_SANDBOXD_STDIO_PATIENCE_MS" /* tests' */

struct event_base;
struct relay;
struct web;

enum relay_over {
	RELAY_DONE,       /* answered, or taken by the server */
	RELAY_FAILED,     /* code and text say why */
	RELAY_NO_SESSION, /* the server knows the session no more: not done */
	RELAY_NO_STREAM   /* of a session's stream: the server has none */
};

struct relay_ops {
	/* JSON from the server; what it answers is not in the message's ids any
	 * more.  session: Mcp-Session-Id of the answer, or "" */
	void (*on_message)(
	    const char *text, size_t n, const char *session, void *arg);
	/* The server was reached, or nobody is there now. */
	void (*on_reached)(void *arg);
	void (*on_nobody)(void *arg);
	/* The relay is gone when it returns.  code and text for RELAY_FAILED */
	void (*on_over)(enum relay_over over, enum message_code code,
	    const char *text, void *arg);
};

struct relay_ask {
	const char *line; /* the message; kept until the end. NULL: a stream */
	size_t len;
	struct message *message; /* the same; kept.  With a stream, empty */
	const char *session;     /* NULL: none; copied */
	const char *revision;    /* NULL: none; copied */
	const struct relay_ops *ops;
	void *arg;
};

/* relay_start - on_over comes once, never inside this call */
struct relay *relay_start(
    struct event_base *base, struct web *web, const struct relay_ask *ask);
/* relay_drop - closes its connection; ops are called no more */
void relay_drop(struct relay *r);
/* relay_is_sent - the server has it, or may have it */
bool relay_is_sent(const struct relay *r);
/* relay_expect_no_answer - the client cancelled it: when the server ends it
 * without an answer, it is done */
void relay_expect_no_answer(struct relay *r);
/* relay_hurry - of one that waits to be sent again: now */
void relay_hurry(struct relay *r);

#endif

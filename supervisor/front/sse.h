/*
 * sse.h - event streams, each at the pace of its reader
 *
 * The next events are asked for only when fewer than HTTP_STREAM_HIGH bytes
 * wait for the client, and as many as make up the difference: what waits for a
 * client is bounded however much happens.
 *
 *	sse_open -> sse_start -> ops.next -> sse_answer -> ops.next ... sse_end
 *	                  \-> sse_leave: another answer
 */
#ifndef FRONT_SSE_H
#define FRONT_SSE_H

#include <sys/queue.h>

#include "supervisor/front/front.h"

struct evbuffer;
struct quota_use;
struct sse;
struct sse_streams; /* all of the front */

struct sse_ops {
	/* Ask for events of about so many bytes, for sse_answer, later. */
	void (*next)(struct sse *s, size_t appetite);
	/* It is over: frees what s is part of. */
	void (*free)(struct sse *s);
	/* It was silent; true: something was written.  NULL: a comment is. */
	bool (*beat)(struct sse *s);
};

/* Part of what its owner keeps; sse.c writes it. */
struct sse {
	struct sse_streams *all;
	struct http_exchange *x;
	const struct sse_ops *ops;
	struct quota_use *use; /* that counts it; NULL: none */
	uint64_t beat_ms;
	bool is_asked; /* events are on their way */
	bool is_started;
	TAILQ_ENTRY(sse) link; /* when started */
};

struct sse_streams *sse_streams_new(const struct front *f);
void sse_streams_free(struct sse_streams *all); /* none is open; NULL is fine */
/* sse_streams_drain - those that are started end now */
void sse_streams_drain(struct sse_streams *all);
size_t sse_streams_count(const struct sse_streams *all); /* open ones */

/* sse_open - holds x; use, which counts the stream already, counts it no more
 * when it is over */
void sse_open(struct sse_streams *all, struct sse *s, struct http_exchange *x,
    const struct sse_ops *ops, struct quota_use *use);
/* sse_start - text goes first, and beats begin */
void sse_start(struct sse *s, const char *text);
void sse_pump(struct sse *s); /* asks, if the client has read enough */
/* sse_answer - events that were asked for; out is taken */
void sse_answer(struct sse *s, struct evbuffer *out);
void sse_write(struct sse *s, struct evbuffer *out); /* likewise, unasked */
void sse_end(struct sse *s);
/* sse_leave - s is gone; the exchange is the caller's to answer */
struct http_exchange *sse_leave(struct sse *s);

/* sse_add - the lines before an event's data; id NULL: none */
void sse_add(struct evbuffer *out, const char *id, const char *event);
#define SSE_END "\n\n" /* behind the data */

#endif

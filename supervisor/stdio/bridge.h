/*
 * bridge.h - between a client's lines and the server's HTTP
 *
 * What the client says goes to the server as it is, each message in a request
 * of its own (relay.h), and what the server says goes to the client.  The
 * bridge knows what the transport needs, and no method's meaning:
 *
 *	initialize	its answer has the session and the revision that
 *			later messages name.  It is kept: a server that knows
 *			the session no more (404) is given it again, and the
 *			message after it
 *	notifications/initialized
 *			after it the session's own stream is asked for
 *	notifications/cancelled
 *			of a message of MCP 2026-07-28 closes its connection;
 *			of one that was not sent, drops it
 *
 * At most BRIDGE_FLYING_MAX requests are under way, and as many others: a
 * notification does not wait for a call that takes its time.  Further ones wait
 * in their order.
 */
#ifndef STDIO_BRIDGE_H
#define STDIO_BRIDGE_H

#include "common/base.h"
#include "supervisor/stdio/glimpse.h"

#define BRIDGE_FLYING_MAX 64
#define BRIDGE_LINE_MAX (16u << 20) /* the most MAX_BODY_BYTES can be */
#define BRIDGE_WAITING_MAX 4096     /* messages */
#define BRIDGE_BYTES_MAX (64u << 20)

struct bridge;
struct event_base;
struct outlet;
struct web;

struct bridge_ops {
	void (*on_room)(void *arg);   /* bridge_is_full may have changed */
	void (*on_nobody)(void *arg); /* no server listens, and one is wanted */
	void (*on_done)(void *arg);   /* after bridge_end_input: all is said */
};

/* bridge_new - web and output are kept, and outlive it */
struct bridge *bridge_new(struct event_base *base, struct web *web,
    struct outlet *output, const struct bridge_ops *ops, void *arg);
void bridge_free(struct bridge *b); /* what is under way is dropped */
void bridge_take_line(struct bridge *b, const char *line, size_t n);
void bridge_take_too_long(struct bridge *b, const struct glimpse *what);
/* bridge_is_full - no more is to be read from the client now */
bool bridge_is_full(const struct bridge *b);
/* bridge_output_has_room - of struct outlet_ops */
void bridge_output_has_room(struct bridge *b);
/* bridge_end_input - on_done comes when all is answered, at once if it is */
void bridge_end_input(struct bridge *b);
/* bridge_left - messages that are not answered */
size_t bridge_left(const struct bridge *b);
/* bridge_moves - since it was last asked: was something answered, or does the
 * client take what waits for it? */
bool bridge_moves(struct bridge *b);
/* bridge_was_reached - has the server ever answered? */
bool bridge_was_reached(const struct bridge *b);
/* bridge_give_up - no server can be had: what waits for one is told so */
void bridge_give_up(struct bridge *b, const char *why);

#endif

/*
 * outlet.h - messages to the client, one a line on a descriptor
 *
 * MCP, transports, stdio: nothing else is on stdout.  What the client has not
 * taken waits in memory; outlet_is_full says when no more is to be made, so
 * what waits is OUTLET_HIGH and what is said in the turn that reaches it.
 */
#ifndef STDIO_OUTLET_H
#define STDIO_OUTLET_H

#include "common/base.h"

#define OUTLET_HIGH (1u << 20) /* bytes */

struct event_base;
struct outlet;

struct outlet_ops {
	void (*on_room)(void *arg); /* it was full and is not, or is empty */
	void (*on_gone)(void *arg); /* nobody reads; called once */
};

/* outlet_new - fd becomes non-blocking until outlet_free, and stays the
 * caller's; ops are called from the loop only */
struct outlet *outlet_new(
    struct event_base *base, int fd, const struct outlet_ops *ops, void *arg);
void outlet_free(struct outlet *o); /* NULL is fine */
/* outlet_put - JSON; newlines in it, which are between its tokens, become
 * blanks */
void outlet_put(struct outlet *o, const char *message, size_t n);
bool outlet_is_full(const struct outlet *o);
bool outlet_is_empty(const struct outlet *o);
/* outlet_taken - bytes that the client has taken */
uint64_t outlet_taken(const struct outlet *o);

#endif

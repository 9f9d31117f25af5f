/*
 * bodies.h - large MCP messages, read off the loop
 *
 * JSON of 1.8 MB costs the loop some 20 ms, in which nobody else is served.
 * A body above BODIES_FROM is read on the threads that read logs, one tenant's
 * in the order in which they came and the tenants in turns, and the request
 * goes on when that is done: in a later turn.  Of what was read and not taken
 * yet there is little, as texts may grow when they are read: BODIES_AT_ONCE are
 * under way, the others wait as bytes.  Under way is a message until it is
 * freed, which a thread does, too.
 *
 * What waits or is read is bounded per tenant and over all of them; a tenant of
 * whom there is nothing may have one body read beyond the latter, up to
 * BODIES_FIRSTS_MAX.
 */
#ifndef FRONT_BODIES_H
#define FRONT_BODIES_H

#include "common/base.h"
#include "common/principal.h"
#include "supervisor/mcp/mcp.h"

#define BODIES_FROM 65536 /* bytes; what is not above is read at once */
#define BODIES_AT_ONCE 4
#define BODIES_TOTAL_MAX (64u << 20) /* bytes that wait or are read */
#define BODIES_TENANT_MAX (BODIES_TOTAL_MAX / 2)
/* With the first ones of tenants that had none: many tenants are no way around
 * the bound. */
#define BODIES_FIRSTS_MAX (2 * BODIES_TOTAL_MAX)

struct bodies;
struct body_reading;
struct evbuffer;
struct threads;

struct bodies *bodies_new(struct threads *threads);
/* bodies_free - after every reading was answered or canceled; before the
 * threads are freed.  NULL is fine */
void bodies_free(struct bodies *b);

enum bodies_room {
	BODIES_ROOM,
	BODIES_TENANT_FULL, /* the tenant's own have to be read first */
	BODIES_FULL
};

/* bodies_have_room - may so many bytes of the tenant be read? */
enum bodies_room bodies_have_room(
    const struct bodies *b, struct tenant_id tenant, size_t bytes);

/* On the loop; the message is lent until it returns, bytes those of its
 * body. */
typedef void (*bodies_cb)(struct mcp_message *message, size_t bytes, void *arg);

/* bodies_read - takes the body over; cb comes in a later turn.  What it
 * returns is for body_reading_cancel, and gone when cb is called */
struct body_reading *bodies_read(struct bodies *b, struct tenant_id tenant,
    struct evbuffer *body, bodies_cb cb, void *arg);
void body_reading_cancel(struct body_reading *r); /* cb is not called */

#endif

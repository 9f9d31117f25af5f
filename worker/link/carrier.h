/*
 * carrier.h - how the bytes of agents come to this worker
 *
 * A carrier knows what a box must be given so that its agent can be reached
 * (prepare), how it is reached (listen), and what is left on this host when
 * the box is gone (forget, sweep).  How the agent's program gets into the box
 * is its delivery's (delivery.h).  door.h is the carrier for an engine on
 * this host, bridge_door.h for any other; ways.h says which a box has.
 *
 * In the life of a box: prepare, listen, the backend makes it with what was
 * wished, expect when it runs; for one that runs already, listen and expect;
 * at the end close and forget.  Each but close may be repeated.
 */
#ifndef WORKER_LINK_CARRIER_H
#define WORKER_LINK_CARRIER_H

#include "worker/backend.h"
#include "worker/link/link.h"

struct carrier {
	const struct carrier_ops *ops;
};

/* One box's, by which its agent comes in. */
struct door {
	const struct carrier_ops *ops;
};

struct carrier_ops {
	const char *name;   /* a word of CARRIER, and the box's label */
	unsigned int needs; /* of the backend, enum backend_can */
	/* A connection may stay open when the other side is gone, so that the
	 * agent is asked at least so often, and one that is silent is given
	 * up and made anew; 0: it ends with its agent. */
	uint32_t heartbeat_ms;
	/* For the same reason: one on which the agent has not greeted after
	 * so long is given up; 0: it has the time that its box has. */
	uint32_t greet_ms;
	int (*prepare)(struct carrier *c, const struct uuid *box,
	    struct backend_wishes *out, struct err *e);
	/* *out calls link_begin for each connection of the agent, and lets
	 * nobody in before expect. */
	int (*listen)(struct carrier *c, const struct uuid *box,
	    struct link *link, struct door **out, struct err *e);
	/* The box runs, and this is how the backend showed it: its agent is
	 * let in from now on, and nobody else. */
	void (*expect)(struct door *d, const struct backend_container *c);
	/* Before the link is freed. */
	void (*close)(struct door *d);
	/* Why the agent cannot be reached now, for a person; "": not known.
	 * NULL: it never is. */
	const char *(*trouble)(const struct door *d);
	void (*forget)(struct carrier *c, const struct uuid *box);
	/* Forgets boxes of which something is left that is older than
	 * before_ms (wall clock) and that keep does not know; how many. */
	uint32_t (*sweep)(struct carrier *c, int64_t before_ms,
	    bool (*keep)(const struct uuid *box, void *arg), void *arg);
};

#endif

/*
 * carrier.h - the ways to an agent, as those see them who provide one
 *
 * A carrier knows three things about a box: what the box must be given so that
 * its agent can be reached (prepare), how it is reached (listen), and what is
 * left on this host when the box is gone (forget, sweep).  unix.h is the one
 * for an engine on this host.
 *
 * In the life of a box: prepare, listen, the backend makes it with what was
 * wished, link_expect with its handle; for one that runs already, listen and
 * link_expect; at the end forget.  Each may be repeated.
 */
#ifndef WORKER_LINK_CARRIER_H
#define WORKER_LINK_CARRIER_H

#include "worker/link/link.h"

struct carrier {
	const struct carrier_ops *ops;
};

struct carrier_ops {
	const char *name;
	unsigned int needs; /* of the backend, enum backend_can */
	void (*free)(struct carrier *c);
	int (*prepare)(struct carrier *c, const struct uuid *box,
	    struct backend_wishes *out, struct err *e);
	/* *out lets nobody in before link_expect. */
	int (*listen)(struct carrier *c, const struct uuid *box,
	    struct link **out, struct err *e);
	void (*forget)(struct carrier *c, const struct uuid *box);
	/* Forgets boxes of which something is left that is older than
	 * before_ms (wall clock) and that keep does not know; how many. */
	uint32_t (*sweep)(struct carrier *c, int64_t before_ms,
	    bool (*keep)(const struct uuid *box, void *arg), void *arg);
};

/* A link as its carrier makes it.  ops and out are the carrier's, user and arg
 * were set by link_set_user. */
struct link {
	const struct link_ops *ops;
	const struct link_user *user;
	void *arg;
	struct buf out; /* at most LINK_OUT_MAX */
};

struct link_ops { /* as link.h says */
	void (*expect)(struct link *l, const struct backend_container *c);
	void (*send)(struct link *l);
	void (*send_soon)(struct link *l);
	void (*drop)(struct link *l);
	void (*hang_up)(struct link *l);
	void (*set_reading)(struct link *l, bool on);
	void (*pace)(struct link *l, uint64_t bytes_per_s);
	void (*free)(struct link *l);
};

#endif

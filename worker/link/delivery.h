/*
 * delivery.h - how the agent's program gets into a box
 *
 * A carrier (carrier.h) moves the bytes of an agent that is there; a delivery
 * says where in the box the program is, and what the box must be given for
 * that.  One mounts the box's link directory, whose end is the carrier's to see
 * to (forget, sweep); delivery_image.h has the other.
 */
#ifndef WORKER_LINK_DELIVERY_H
#define WORKER_LINK_DELIVERY_H

#include "common/base.h"
#include "common/err.h"
#include "worker/backend.h"

struct linkdirs;

struct agent_delivery {
	const struct agent_delivery_ops *ops;
};

struct agent_delivery_ops {
	const char *name;
	unsigned int needs; /* of the backend, enum backend_can */
	/* Before the box is made: its command, and mounts. */
	int (*prepare)(struct agent_delivery *d, const struct uuid *box,
	    struct backend_wishes *out, struct err *e);
};

/* delivery_mount_new - by a read-only mount of this host; agent is the path of
 * the binary, dirs are kept */
int delivery_mount_new(struct linkdirs *dirs, const char *agent,
    struct agent_delivery **out, struct err *e) MUSTCHECK;

#endif

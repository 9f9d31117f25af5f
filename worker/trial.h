/*
 * trial.h - which way to the agents of boxes works: found out by trying
 *
 * Whether the engine sees a directory of this host, and whether this host sees
 * the engine's processes, is not to be seen from an address: an engine at a
 * TCP address may be here, one at a Unix socket elsewhere.  So a box is made
 * whose agent is to come through a directory, once for each start of a worker
 * (CARRIER=auto); it is removed before the answer is given.
 */
#ifndef WORKER_TRIAL_H
#define WORKER_TRIAL_H

#include "common/base.h"
#include "worker/backend.h"
#include "worker/link/ways.h"
#include "worker/policy.h"

/* For the agent to come, at least: it has four times what the engine took to
 * start it besides. */
#define TRIAL_COME_MS 5000

struct trial;

struct trial_of {
	struct event_base *base;
	struct backend *backend;
	const struct policy *policy;
	struct ways *ways;       /* its answer: ways_choose, or ways_fail */
	const struct way *first; /* is tried */
	const struct way *other; /* is chosen when that does not work */
	const char *name;        /* of the container; copied */
};

/* trial_new - of's pointers are kept */
struct trial *trial_new(const struct trial_of *of);
/* trial_free - the backend must be gone, or nothing of it asked */
void trial_free(struct trial *t);
/* trial_start - now, whatever it takes (an image is built); nothing while one
 * is under way */
void trial_start(struct trial *t);
/* trial_look - the engine is there: now, if it has the image */
void trial_look(struct trial *t);
/* trial_is_busy - there may be a container of it */
bool trial_is_busy(const struct trial *t);

#endif

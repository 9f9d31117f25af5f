/*
 * said.h - what a sandbox's agent says of itself, in the server's log
 *
 * Everything in a sandbox may have said it, so: what happened is one of a list
 * of words, and only detail is a text of its own, shown with its control
 * characters escaped (log.h); no line is worse than a warning, all bear
 * said_by=agent.  A run is named only if it is one of this sandbox's; whose it
 * is and which request asked for it the worker knows itself.
 *
 * A sandbox may have SAID_BURST lines, and then one in SAID_EVERY_MS; all
 * sandboxes of a worker together SAID_BURST_ALL and one in SAID_EVERY_ALL_MS.
 * What is too much is counted, and the next line that is shown has the number
 * (dropped), with what the agent says that it dropped itself.
 */
#ifndef WORKER_SAID_H
#define WORKER_SAID_H

#include "common/base.h"
#include "common/msg/frame_gen.h"

#define SAID_BURST 20u
#define SAID_EVERY_MS 1000u
#define SAID_BURST_ALL 200u
#define SAID_EVERY_ALL_MS 50u
#define SAID_SANDBOX_BYTES 64 /* longer identifiers are cut */

struct task_start;

struct said_allowance {
	uint64_t allowed_ms, asof_ms; /* 0: nothing was said yet */
};

/* Of one sandbox; said.c's. */
struct said {
	uint64_t tenant;
	char sandbox[SAID_SANDBOX_BYTES];
	struct said_allowance own;
	uint64_t dropped;
};

/* said_init - whose it is (the front's number), and its identifier */
void said_init(struct said *s, uint64_t tenant, const char *identifier);
/* said_take - run: the one that m names, NULL: this sandbox has none such */
void said_take(
    struct said *s, const struct frame_said *m, const struct task_start *run);

#endif

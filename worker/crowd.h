/*
 * crowd.h - whether many short runs are under way at once
 *
 * A worker that wakes interrupts who runs (common/slice.h), which is right
 * for the one run that somebody waits for.  Among many it is not: a turn is
 * begun for each frame and each job, and every one interrupts another part of
 * the same work.  So in a crowd the worker waits until who runs has done, and
 * takes what has come meanwhile in one turn (decision 80).
 *
 * How many are under way is what they took together, over the time that has
 * passed (Little's law), so a client that calls one after the other is never a
 * crowd.  Nor are programs that run for long: they would make it wait.
 */
#ifndef WORKER_CROWD_H
#define WORKER_CROWD_H

#include "common/base.h"

#define CROWD_SHORT_US 100000 /* what longer runs took does not count */
#define CROWD_WINDOW_US 20000
#define CROWD_FROM 4  /* at once, on average of a window */
#define CROWD_UNTIL 2 /* fewer: no crowd any more */

/* Zeroed memory is one without runs. */
struct crowd {
	uint64_t since_us; /* the window's begin */
	uint64_t took_us;  /* short runs that ended in it, together */
	bool is_on;
};

/* crowd_on_end - a run has ended that the agent was asked for at asked_us (of
 * CLOCK_MONOTONIC); changes how the calling thread is scheduled.  c NULL:
 * nothing. */
void crowd_on_end(struct crowd *c, uint64_t asked_us);

#endif

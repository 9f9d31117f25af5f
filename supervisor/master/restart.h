/*
 * restart.h - when a dead child is started again: pure rules
 *
 * Nothing here reads a clock, keeps a pointer or makes a process, so tests
 * call it with made-up times.  Times are CLOCK_MONOTONIC in milliseconds.
 */
#ifndef MASTER_RESTART_H
#define MASTER_RESTART_H

#include "common/base.h"

#define RESTART_BURST_MAX 64

struct restart_policy {
	uint32_t first_ms;   /* first wait of the back-off */
	uint32_t max_ms;     /* its end */
	uint32_t healthy_ms; /* READY for so long counts as useful work */
	uint32_t burst;      /* deaths of a role per window that are borne */
	uint32_t window_ms;
	uint32_t throttle_ms; /* then the role rests for so long */
};

/* How a child ended, read from its wait status. */
enum restart_end {
	RESTART_DIED,    /* a signal, or any status not named below */
	RESTART_LEFT,    /* exit 0: its peer or its drain told it to go */
	RESTART_REFUSED, /* exit 77 or 78: starting again cannot help */
};
enum restart_end restart_read_status(int wait_status);
/* restart_describe - "signal 9 (Killed)", "exit status 1" */
#define RESTART_TEXT_MAX 64
void restart_describe(int wait_status, char out[RESTART_TEXT_MAX]);

/* One child's history; zeroed at first. */
struct restart {
	uint32_t failures; /* deaths in a row without useful work */
	uint64_t ready_ms; /* when this life became READY, 0: not yet */
};
/*
 * restart_next - how long to wait before a dead child is started again
 *
 * A child that did useful work is started at once: that is a crash, not a
 * broken installation.  Useful is a finished piece of work, or having been
 * READY for healthy_ms.  Others back off: first_ms, then twice as long each
 * time, up to max_ms.
 *
 *	r	r->failures is updated and r->ready_ms cleared
 *	done	pieces of work it reported as finished in this life
 *
 * Returns milliseconds, 0..max_ms.
 */
uint32_t restart_next(const struct restart_policy *p, struct restart *r,
    uint64_t now_ms, uint32_t done);

/* A role's recent deaths; zeroed at first. */
struct restart_burst {
	uint64_t deaths[RESTART_BURST_MAX]; /* a ring, newest at next - 1 */
	uint32_t count;
	uint32_t next;
};
/*
 * restart_burst_add - note a death, whatever its cause
 *
 * Returns 0, or throttle_ms when there were more than p->burst deaths within
 * window_ms: the caller starts nobody of the role for so long.  The count
 * begins anew then.
 */
uint32_t restart_burst_add(
    const struct restart_policy *p, struct restart_burst *b, uint64_t now_ms);

#endif

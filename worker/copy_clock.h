/*
 * copy_clock.h - how long an agent lets the copies of its box be waited for
 *
 * The clock goes while the agent is waited for, and stands while the front or
 * a disk is.  What comes puts it back: a byte by so much as it may take at
 * COPY_CLOCK_BYTES_PER_MS, a file or the end of a walk by COPY_CLOCK_PIECE_MS,
 * never below 0.  An agent that trickles is late like one that is silent.
 *
 * It is one for all copies of a box that wait for each other: runs that end
 * together do not add up their patience.
 */
#ifndef WORKER_COPY_CLOCK_H
#define WORKER_COPY_CLOCK_H

#include "common/base.h"

#define COPY_CLOCK_BYTES_PER_MS 1024
#define COPY_CLOCK_PIECE_MS 10
/* It is looked at so often; more at once was this process's own time. */
#define COPY_CLOCK_LOOK_MS 200
#define COPY_CLOCK_LEAP_MS 1000

struct copy_clock {
	uint64_t allowed_us;
	uint64_t waited_us;
	uint64_t since_us; /* 0: it stands */
};

/* copy_clock_init - it stands at 0, and is late at allowed_ms */
void copy_clock_init(struct copy_clock *k, uint32_t allowed_ms);
/* copy_clock_go - also when it goes already */
void copy_clock_go(struct copy_clock *k);
void copy_clock_stand(struct copy_clock *k);
/* copy_clock_skip - what went by since it was looked at does not count */
void copy_clock_skip(struct copy_clock *k);
void copy_clock_earn_bytes(struct copy_clock *k, size_t n);
void copy_clock_earn_piece(struct copy_clock *k);
/* copy_clock_is_late - looks at it */
bool copy_clock_is_late(struct copy_clock *k);

#endif

/* run_clock.h - when a run was made and had its turn, to the microsecond. */
#ifndef CORE_RUN_CLOCK_H
#define CORE_RUN_CLOCK_H

#include "common/clock.h"

/* 0: before this front was started, or not yet. */
struct run_clock {
	uint64_t made_us;
	int64_t sent_wall_us;
};

static inline void
run_clock_make(struct run_clock *c)
{
	c->made_us = clock_mono_us();
}

/* The wall clock's milliseconds. */
static inline int64_t
run_clock_send(struct run_clock *c)
{
	c->sent_wall_us = clock_wall_us();
	return c->sent_wall_us / 1000;
}

#endif

/*
 * pace.h - how fast a link may be read
 *
 * Bytes that may be read come at a steady rate and are kept for at most a
 * second.  What was read beyond them is waited for afterwards.
 */
#ifndef WORKER_LINK_PACE_H
#define WORKER_LINK_PACE_H

#include "common/base.h"

struct pace {          /* pace.c's; times are of the monotonic clock */
	uint64_t most; /* bytes per second; 0: any */
	uint64_t rate; /* of them, for now; 0: any */
	int64_t budget;
	uint64_t at_ms; /* when that was */
};

/* pace_init - never more than most; 0: as much as there is */
void pace_init(struct pace *p, uint64_t most, uint64_t now_ms);
/* pace_set - from now on; 0: as pace_init said */
void pace_set(struct pace *p, uint64_t rate, uint64_t now_ms);
/* pace_charge - n bytes were read: how many ms until more may be */
uint64_t pace_charge(struct pace *p, size_t n, uint64_t now_ms);

#endif

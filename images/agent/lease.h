/*
 * lease.h - how long a sandbox outlives its servers
 *
 * Each server says how long it may be away (LEASE).  While the agent has no
 * link and nothing runs it counts that time by its own clock, and ends the
 * sandbox then: its server may be gone for good.
 */
#ifndef AGENT_LEASE_H
#define AGENT_LEASE_H

#include "common/base.h"

/* Before the first LEASE, which a server sends when it makes a sandbox. */
#define LEASE_FIRST_MS 7200000

enum lease_state {
	LEASE_HELD, /* there is a link, or something runs */
	LEASE_RUNS
};

struct lease { /* lease.c writes */
	uint64_t ms;
	uint64_t since_ms; /* 0: it is held */
};

void lease_init(struct lease *l);
void lease_set(struct lease *l, uint64_t ms);
/* lease_tick - false: it is over */
bool lease_tick(struct lease *l, uint64_t now_ms, enum lease_state state);
uint64_t lease_next_ms(const struct lease *l); /* UINT64_MAX: it is held */

#endif

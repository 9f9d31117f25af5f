/*
 * tuning.h - the supervisor's time limits
 *
 * They are no configuration: nobody should need to change them.  Tests set
 * MCP_SANDBOXD_... variables (the table in tuning.c) to see in milliseconds
 * what otherwise takes minutes.
 */
#ifndef MASTER_TUNING_H
#define MASTER_TUNING_H

#include "common/base.h"
#include "supervisor/master/restart.h"

struct tuning {
	uint32_t ready_ms;     /* start to READY */
	uint32_t going_on_ms;  /* STILL_STARTING to the next, or to READY */
	uint32_t ready_max_ms; /* start to the last that is believed */
	uint32_t ping_ms;      /* between two PINGs */
	uint32_t quiet_ms;     /* PING without PONG: said to the front */
	uint32_t silence_ms;   /* PING without PONG: hung */
	uint32_t abort_ms;     /* SIGABRT to SIGKILL */
	uint32_t leave_ms;     /* a child that should exit by itself */
	struct restart_policy front;
	struct restart_policy worker;
};

/* tuning_load - defaults, then the environment; a value out of bounds is
 * warned about and left out */
void tuning_load(struct tuning *t);

#endif

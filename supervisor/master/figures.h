/*
 * figures.h - the memory of the metrics' cells, and what is written there
 * about processes
 *
 * It is the supervisor's, so that counters go on when a front dies
 * (common/metric.h); the front may write every cell, and the supervisor reads
 * none.
 */
#ifndef MASTER_FIGURES_H
#define MASTER_FIGURES_H

#include <sys/types.h>

#include "common/base.h"
#include "common/err.h"
#include "common/msg/msg_gen.h"

struct event_base;

/* figures_open - once per process */
int figures_open(struct event_base *base, struct err *e) MUSTCHECK;
void figures_close(void);
/* figures_send - if it is a front */
void figures_send(struct ipc_chan *chan, enum msg_role role);
enum figures_start {
	FIGURES_FIRST,
	FIGURES_AGAIN
};
void figures_born(enum msg_role role, pid_t pid, enum figures_start how);
void figures_died(pid_t pid);

#endif

/*
 * process.h - the channel kind "process": one process tree, without a log
 *
 * Its stdout and stderr are two streams under credit, its end is EXITED, then
 * CLOSE when all output was sent.  It belongs to its channel: when that is
 * closed, or the link lost, the tree is killed and nobody hears of it.
 */
#ifndef AGENT_PROCESS_H
#define AGENT_PROCESS_H

#include <sys/queue.h>

#include "common/base.h"
#include "common/err.h"
#include "common/runlog.h"
#include "images/agent/mux.h"
#include "images/agent/procs.h"

#define PROCESSES_MAX 64
#define PROCESS_STREAM_OUT 1 /* stderr is the next */

struct process;

struct processes { /* process.c writes */
	struct mux *mux;
	struct procs *procs;
	uint32_t count;
	TAILQ_HEAD(, process) list;
};

void processes_init(struct processes *ps, struct mux *mux, struct procs *procs);
int process_on_open(struct processes *ps, const struct frame_open_process *m,
    struct err *e) MUSTCHECK;
/* processes_tick - closes the channels of those that have ended and whose
 * output was sent; processes_is_busy - there are such */
void processes_tick(struct processes *ps);
/* processes_cancel_all - all that live */
void processes_cancel_all(struct processes *ps, enum runlog_reason reason);
bool processes_is_busy(const struct processes *ps);

#endif

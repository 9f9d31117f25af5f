/*
 * sandbox_runs.h - the runs in a sandbox's queue, all at once
 *
 * What befalls a sandbox befalls its runs: those that were sent are in its
 * queue as running ones (sched.h), the others wait there.
 */
#ifndef CORE_SANDBOX_RUNS_H
#define CORE_SANDBOX_RUNS_H

#include "common/base.h"
#include "common/err.h"
#include "common/runlog.h"

struct sandbox;
struct sched_queue;

/* sandbox_runs_are_told - the worker was told of each that was sent */
bool sandbox_runs_are_told(const struct sched_queue *q);
/* sandbox_runs_resend - to the worker that came, those that were sent */
void sandbox_runs_resend(struct sched_queue *q);
/* sandbox_runs_begin - those that were sent are in this container now */
void sandbox_runs_begin(struct sched_queue *q, const char *container_id);
/* sandbox_runs_end - every one, for that reason and because of why */
void sandbox_runs_end(
    struct sched_queue *q, enum runlog_reason reason, const struct err *why);
/* sandbox_runs_end_doubtful - those that wait and that an earlier server may
 * have sent.  They may have begun, and with the sandbox the end of their logs
 * is lost: they must not begin again. */
void sandbox_runs_end_doubtful(struct sched_queue *q, const struct err *why);
/* sandbox_runs_spool_bytes - of the logs of those that go: the others have none
 * yet, or are about to end */
uint64_t sandbox_runs_spool_bytes(const struct sched_queue *q);
/* sandbox_runs_move - those that wait, to another sandbox of that name */
void sandbox_runs_move(struct sched_queue *from, struct sandbox *to);

#endif

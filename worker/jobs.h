/*
 * jobs.h - the job channel: what the front asks for
 *
 * A message that cannot be ends the channel and with it this process; what is
 * only not allowed or not possible is an answer.
 */
#ifndef WORKER_JOBS_H
#define WORKER_JOBS_H

#include "common/base.h"
#include "worker/worker.h"

/* jobs_attach - a channel to the front; fd is the worker's from now on.
 * on_close: it ended, why NULL or the reason. */
void jobs_attach(struct worker *w, int fd,
    void (*on_close)(struct worker *w, const struct err *why));
void jobs_detach(struct worker *w);

#endif

/*
 * sweep.h - nothing of ours on the engine that the database does not know
 *
 * The front lists all sandboxes that may be there (SWEEP, any number of
 * times), then says SWEEP_END with the time at which it made the list.
 * Containers of our instance and link directories that are not listed and
 * more than SWEEP_AGE_MS older than that are removed: younger ones may be on
 * their way.
 */
#ifndef WORKER_SWEEP_H
#define WORKER_SWEEP_H

#include "common/base.h"
#include "common/err.h"
#include "worker/worker.h"

#define SWEEP_AGE_MS 5000
#define SWEEP_LISTED_MAX 200000
#define SWEEP_WIDTH 4 /* removals at a time */

/* sweep_list - count uuids of 16 bytes each; ERR_PROTO when there are more
 * than SWEEP_LISTED_MAX */
int sweep_list(struct worker *w, const uint8_t *uuids, uint32_t count,
    struct err *e) MUSTCHECK;
/* sweep_run - begins with what was listed; SWEPT is told when it is done.  One
 * that comes while another is at work is dropped. */
void sweep_run(struct worker *w, int64_t asof_ms);
void sweep_free(struct worker *w);

#endif

/*
 * sweep.h - what is ours on the engine and not the database's
 *
 * The front lists all sandboxes that may be there (SWEEP, any number of
 * times), then says SWEEP_END with the time at which it made the list.
 *
 * A container of our instance that is not listed may be somebody's work: a
 * database may have been lost, or put back from a backup.  Each is told to the
 * front (SWEEP_FOUND), which may know it as ended and has it removed; it is
 * stopped, kept for as long as the front says, by the engine's own times, and
 * removed then; where the backend has not BACKEND_CAN_STOP it is left running.
 * One that never ran is removed at once.  Younger ones than
 * SWEEP_AGE_MS may be on their way.  Who only looks is told of all, young ones
 * too, and nothing is touched.
 *
 * Link directories of nobody go; those of containers that are kept stay.
 */
#ifndef WORKER_SWEEP_H
#define WORKER_SWEEP_H

#include "common/base.h"
#include "common/err.h"
#include "worker/worker.h"

#define SWEEP_AGE_MS 5000
#define SWEEP_LISTED_MAX 200000
#define SWEEP_WIDTH 4 /* containers at a time */

struct sweep_wish {
	int64_t asof_ms; /* wall clock: when the list was made */
	int64_t keep_ms;
	bool only_look;
};

/* sweep_list - count uuids of 16 bytes each; ERR_PROTO when there are more
 * than SWEEP_LISTED_MAX */
int sweep_list(struct worker *w, const uint8_t *uuids, uint32_t count,
    struct err *e) MUSTCHECK;
/* sweep_run - begins with what was listed; SWEPT is told when it is done.  One
 * that comes while another is at work is dropped, and not told. */
void sweep_run(struct worker *w, const struct sweep_wish *wish);
void sweep_free(struct worker *w);

#endif

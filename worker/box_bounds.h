/*
 * box_bounds.h - what of the host a running box may have beside others
 *
 * The front says it, the backend is asked to set it.  Of a box one request is
 * under way at a time; what is said meanwhile follows it, the last word only.
 * One that failed is asked again, ever more rarely, until it succeeds or the
 * box is gone; the log has the first failure of a box as a warning, so that an
 * engine that never does it is no line a second.  Of all boxes
 * BOX_BOUNDS_ASKED_MAX requests are under way, the others wait in line: the
 * front may say as much as it likes.  Where the backend has not
 * BACKEND_CAN_BOUND, a box keeps what it was made with.
 */
#ifndef WORKER_BOX_BOUNDS_H
#define WORKER_BOX_BOUNDS_H

#include <sys/queue.h>

#include "common/base.h"
#include "worker/backend.h"

#define BOX_BOUNDS_RETRY_MS 1000 /* then twice as long each time */
#define BOX_BOUNDS_RETRY_MAX_MS 60000
#define BOX_BOUNDS_ASKED_MAX 8

struct event_base;
struct box_bounds;

struct box_bounds_line { /* of all boxes; box_bounds.c writes */
	unsigned int asked;
	TAILQ_HEAD(, box_bounds) waiting;
};
void box_bounds_line_init(struct box_bounds_line *l);

/* box_bounds_new - all but name are kept by pointer; name is copied, for the
 * log */
struct box_bounds *box_bounds_new(struct event_base *base,
    struct backend *backend, struct box_bounds_line *line, const char *name);
/* box_bounds_free - nothing more is asked; an answer that is under way may
 * still come.  NULL is fine */
void box_bounds_free(struct box_bounds *b);
/* box_bounds_own - the processors that the box was made with, which it never
 * has more than; 0: not known */
void box_bounds_own(struct box_bounds *b, uint64_t nano_cpus);
/* box_bounds_set - from now on; nano_cpus 0: all of its own.  The handle is
 * copied. */
void box_bounds_set(struct box_bounds *b, const struct backend_handle *h,
    const struct backend_bounds *want);

#endif

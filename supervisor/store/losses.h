/*
 * losses.h - at a start: files of runs that ended last, held against their rows
 *
 * A log or an artifact that is shorter than its row says, or not there, is
 * marked as lost (lost_ms of kept, of blob) and said in the server's log: the
 * rows were written before their files, or a disk lied.  Files of runs that
 * ended more than LOSSES_YOUNG_MS before the newest run was made are not
 * looked at: what a disk had not written is younger.
 *
 * On a thread of its own, with a connection of its own: a statement at a time,
 * so that no checkpoint waits for it.  What looks lost is looked at once more
 * on the writer's thread, where rows and files are one.
 */
#ifndef STORE_LOSSES_H
#define STORE_LOSSES_H

#include "common/base.h"
#include "common/err.h"

#define LOSSES_YOUNG_MS (10 * 60 * 1000)

struct event_base;
struct losses;
struct store;

/* losses_start - once the writer is there; without a thread or a connection
 * nothing is looked at, which is logged: readers find out by themselves */
void losses_start(struct event_base *base, struct store *s);
/* losses_stop - on the loop's thread, while the writer is there.  NULL is
 * fine */
void losses_stop(struct losses *l);

#endif

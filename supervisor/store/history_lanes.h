/* history_lanes.h - the history's life with its store: history.h is for those
 * who ask */
#ifndef STORE_HISTORY_LANES_H
#define STORE_HISTORY_LANES_H

#include "common/base.h"
#include "common/err.h"

struct done;
struct feed;
struct history;
struct spool;

/* history_new - dir and the done queue must outlive it */
struct history *history_new(const char *dir, struct done *done);
/* history_feed - for who writes; good until history_free */
struct feed *history_feed(struct history *h);
/* history_start - when the database is open */
int history_start(
    struct history *h, struct spool *spool, struct err *e) MUSTCHECK;
/* history_stop - before the database closes; history_free - after.  NULL is
 * fine. */
void history_stop(struct history *h);
void history_free(struct history *h);

#endif

/*
 * history_shed.h - text leaves the index when there is too much of it
 *
 * Of the tenant that has most its oldest runs' text goes first, so that who
 * says much does not take from others what they can find.  Rows of these runs
 * stay: every other filter finds them.
 */
#ifndef STORE_HISTORY_SHED_H
#define STORE_HISTORY_SHED_H

#include "common/base.h"
#include "common/err.h"

struct history_take;

/* history_shed - while there are more than max bytes, about so many at most
 * go now; in a transaction */
int history_shed(struct history_take *t, uint64_t max, uint64_t at_most,
    struct err *e) MUSTCHECK;

#endif

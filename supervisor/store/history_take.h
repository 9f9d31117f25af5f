/*
 * history_take.h - one run of the database into the index, or out of it
 */
#ifndef STORE_HISTORY_TAKE_H
#define STORE_HISTORY_TAKE_H

#include "common/base.h"
#include "common/err.h"
#include "supervisor/store/history_corpus.h"

struct db;
struct spool;

struct history_take {
	struct db *from;     /* in a transaction, as is */
	struct db *to;       /* the index */
	struct spool *spool; /* of long logs */
	bool is_dirty;       /* words were taken out: FTS5 still has them */
	struct history_corpus corpus;
};

/* history_take_run - what the index says of a run becomes what the database
 * says, nothing if it has none; known: what the index says of its end is
 * right as it is, if it says that it ended */
enum history_trust {
	HISTORY_ANEW,
	HISTORY_KNOWN
};
int history_take_run(struct history_take *t, int64_t id,
    enum history_trust trust, struct err *e) MUSTCHECK;
/* history_take_text - out of the index; all else of the run stays in it */
int history_take_text(
    struct history_take *t, int64_t place, struct err *e) MUSTCHECK;
/*
 * history_shed - text leaves the index when there is too much of it: while
 * there are more than max bytes, about at_most go now; in a transaction
 *
 * Of the tenant that has most its oldest runs' text goes first, so that who
 * says much does not take from others what they can find.  Rows of these runs
 * stay: every other filter finds them.
 */
int history_shed(struct history_take *t, uint64_t max, uint64_t at_most,
    struct err *e) MUSTCHECK;

#endif

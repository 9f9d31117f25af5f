/*
 * history_take.h - one run of the database into the index, or out of it
 */
#ifndef STORE_HISTORY_TAKE_H
#define STORE_HISTORY_TAKE_H

#include "common/base.h"
#include "common/err.h"

struct db;
struct history_line;
struct spool;

/* How much text of runs the index has, of the connection that writes. */
struct history_corpus {
	uint64_t bytes; /* of all tenants */
	uint64_t put;   /* ever, since it was loaded */
	bool is_shed;   /* some tenant's oldest left */
	/* Not written yet: runs come in rows of one tenant. */
	uint64_t tenant;
	int64_t change;
};
int history_corpus_load(
    struct history_corpus *c, struct db *db, struct err *e) MUSTCHECK;
/* history_corpus_flush - before the end of a transaction */
int history_corpus_flush(
    struct history_corpus *c, struct db *db, struct err *e) MUSTCHECK;
/* history_corpus_reach - for who asks, on any connection: of the runs at these
 * places, those created before *since_ms have no text; 0: all have theirs */
int history_corpus_reach(struct db *db, uint64_t tenant, int64_t from,
    int64_t to, int64_t *since_ms, struct err *e) MUSTCHECK;

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
/* history_line_clear - frees its texts */
void history_line_clear(struct history_line *l);

#endif

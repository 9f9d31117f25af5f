/*
 * history_corpus.h - how much text of each tenant's runs the index has, and
 * how far back it goes
 *
 * A run whose place is below its tenant's first has no text: what it said left
 * (history_take.h), or came too late to be kept.  All others that ended have
 * theirs, so one number says what a search for words can find.
 */
#ifndef STORE_HISTORY_CORPUS_H
#define STORE_HISTORY_CORPUS_H

#include "common/base.h"
#include "common/err.h"

struct db;

/* Of the connection that writes; history_corpus_load makes it. */
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
/* history_corpus_add - so many bytes more, or less, in the transaction that
 * has them so; history_corpus_flush before its end */
int history_corpus_add(struct history_corpus *c, struct db *db, uint64_t tenant,
    int64_t change, struct err *e) MUSTCHECK;
int history_corpus_flush(
    struct history_corpus *c, struct db *db, struct err *e) MUSTCHECK;
/* history_corpus_takes - 1: a run at this place is to have its text, 0: not */
int history_corpus_takes(const struct history_corpus *c, struct db *db,
    uint64_t tenant, int64_t place, struct err *e) MUSTCHECK;
/* history_corpus_most - 1: of the tenant that has most, and its first place */
int history_corpus_most(struct history_corpus *c, struct db *db,
    uint64_t *tenant, int64_t *first, struct err *e) MUSTCHECK;
/* history_corpus_left - what is below that place has no text any more */
int history_corpus_left(struct history_corpus *c, struct db *db,
    uint64_t tenant, int64_t first, struct err *e) MUSTCHECK;

/* history_corpus_reach - for who asks, on any connection: of the runs at these
 * places, those created before *since_ms have no text; 0: all have theirs */
int history_corpus_reach(struct db *db, uint64_t tenant, int64_t from,
    int64_t to, int64_t *since_ms, struct err *e) MUSTCHECK;

#endif

/*
 * tally.h - what runs that end add to their tenants' totals and days
 *
 * The sums of one transaction are kept here and written once, right before
 * its commit: a crowd of ends is a statement for each tenant, not one for each
 * run.  Totals and the newest day stand in one row, the tenant's; a day that is
 * over goes to the table of days (usage_parts has both).
 */
#ifndef STORE_TALLY_H
#define STORE_TALLY_H

#include "supervisor/store/store.h"

#define TALLY_MAX 32

struct db;

struct tally_sum {
	struct store_day day;
	struct store_counts counts;
	uint64_t row_bytes;
};

struct tally { /* of one connection: db_tally */
	struct tally_sum sums[TALLY_MAX];
	size_t n;
};

/* tally_add - r has ended; in the transaction of its end
 *
 *	artifact_bytes	of all its artifacts: r's may be the last of them */
int tally_add(struct db *db, const struct store_run *r, uint64_t artifact_bytes,
    struct err *e) MUSTCHECK;
/* tally_flush - before a commit, and before somebody reads the totals in the
 * same transaction */
int tally_flush(struct db *db, struct err *e) MUSTCHECK;
/* tally_drop - what it was of is undone */
void tally_drop(struct db *db);

#endif

/*
 * vacuum.h - the file of the database becomes smaller again, in small steps
 *
 * What is deleted leaves free pages, which new rows use.  When more than an
 * eighth of the file is free (and more than a few MiB) and nothing was written
 * for a while, pages from its end are moved into the gaps, VACUUM_PAGES at a
 * time, until a sixteenth is: who writes meanwhile waits for one step at most.
 * When the disk is short of room (vacuum_hurry) all of them go, at once and
 * between two commits.
 * Only of a database that keeps account of its pages (auto_vacuum), as all do
 * that were made by this version or a later one; docs/operations.md says how an
 * older one is brought to it.
 */
#ifndef STORE_VACUUM_H
#define STORE_VACUUM_H

#include "common/base.h"
#include "common/err.h"

struct db;

#define VACUUM_PAGES 64
#define VACUUM_IDLE_MS 1000   /* since the last write */
#define VACUUM_PAUSE_MS 20    /* between two steps */
#define VACUUM_RETRY_MS 60000 /* after one that failed */
#define VACUUM_FREE_MIN 1024  /* pages: 4 MiB */
#define VACUUM_NEVER UINT64_MAX

struct vacuum {
	bool is_due;     /* something was written since it was looked */
	bool is_at_work; /* between the two thresholds */
	bool is_hurried; /* until no page is free */
	uint64_t at_ms;  /* the next look or step */
};

void vacuum_on_write(struct vacuum *v, uint64_t now_ms);
/* vacuum_hurry - the disk is short: all free pages go now */
void vacuum_hurry(struct vacuum *v, uint64_t now_ms);
/* vacuum_file_bytes - of the database's file, as it is on the disk */
uint64_t vacuum_file_bytes(const struct db *db);
/* vacuum_given_back - what the file has less than before, in bytes, when its
 * free pages are given back and the WAL is in it, be that over by now or still
 * on its way.  (A file that keeps no account never gives it back; it is room
 * for new rows.) */
int vacuum_given_back(
    struct db *db, uint64_t before, uint64_t *bytes, struct err *e) MUSTCHECK;
/* vacuum_wait_ms - until vacuum_turn; VACUUM_NEVER: nothing to do */
uint64_t vacuum_wait_ms(const struct vacuum *v, uint64_t now_ms);
/* vacuum_turn - look, and do a step when there is reason to; *moved: something
 * was written */
int vacuum_turn(struct vacuum *v, struct db *db, uint64_t now_ms, bool *moved,
    struct err *e) MUSTCHECK;

#endif

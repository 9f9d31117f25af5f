/*
 * forget.h - what goes with the rows of ended runs: their logs and blobs
 *
 * On the writer's thread: the transaction collects what lost its row in a
 * struct forget; when it is on disk the files go (forget_files).
 */
#ifndef STORE_FORGET_H
#define STORE_FORGET_H

#include "common/base.h"
#include "common/err.h"
#include "common/uuid.h"

struct db;
struct store;

struct forget_blob {
	uint64_t tenant;
	uint8_t sha256[32];
};

struct forget { /* zeroed at first */
	struct uuid *logs;
	size_t nlogs;
	struct forget_blob *blobs;
	size_t nblobs;
	size_t nartifacts;   /* rows gone through: a measure of the work */
	uint64_t bytes;      /* of the files */
	uint64_t blob_bytes; /* of these */
	uint64_t row_bytes;  /* of the rows of runs */
};
void forget_clear(struct forget *f); /* frees, and zeroes it */

void forget_add_log(struct forget *f, const struct uuid *run, uint64_t bytes);
/* forget_artifacts - those of a run refer to their blobs no more */
int forget_artifacts(struct db *db, struct forget *f, uint64_t tenant,
    uint64_t run, struct err *e) MUSTCHECK;
/* forget_mark - the run gave up its files; the last of it: before the mark its
 * artifacts count */
int forget_mark(struct db *db, uint64_t run, struct err *e) MUSTCHECK;
/* forget_run - the row of a run with all that hangs on it */
int forget_run(struct db *db, struct forget *f, uint64_t tenant, uint64_t run,
    struct err *e) MUSTCHECK;
/* forget_blobs - of that tenant, to which nobody refers any more */
int forget_blobs(
    struct db *db, struct forget *f, uint64_t tenant, struct err *e) MUSTCHECK;
/* forget_sandboxes - some of those that ended before its oldest run */
int forget_sandboxes(struct db *db, uint64_t tenant, struct err *e) MUSTCHECK;
/* forget_count - so many ended runs less, and what their rows took */
int forget_count(struct db *db, const struct forget *f, uint64_t tenant,
    uint64_t runs, struct err *e) MUSTCHECK;

/* forget_files - the rows are gone from the disk.  A run that ended in the same
 * batch may count a blob again, one that has not ended may have brought it. */
void forget_files(struct store *s, struct db *db, const struct forget *f);

#endif

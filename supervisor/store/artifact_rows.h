/* artifact_rows.h - the rows of a run's artifacts, and their blobs' counts */
#ifndef STORE_ARTIFACT_ROWS_H
#define STORE_ARTIFACT_ROWS_H

#include "common/err.h"
#include "supervisor/store/rows_gen.h"

struct db;

/* artifact_rows_put - those that row has; the same path again takes the place
 * of what was there.  A blob that was lost is good again by that.
 *	lost	which of them the disk did not take; NULL: it has all */
int artifact_rows_put(struct db *db, const struct store_run *row,
    const bool *lost, struct err *e) MUSTCHECK;
/* artifact_rows_unref - one row less refers to that blob */
int artifact_rows_unref(struct db *db, uint64_t tenant,
    const uint8_t sha256[32], struct err *e) MUSTCHECK;
/* artifact_rows_lose - the file of that blob is not what its rows say */
int artifact_rows_lose(struct db *db, uint64_t tenant, const uint8_t sha256[32],
    struct err *e) MUSTCHECK;

#endif

/*
 * wanted.h - files that an unfinished run needs although no row says so
 *
 * A log may be there before its row, a blob is: whoever removes a file because
 * no row wants it asks here.  The loop's thread adds and drops, the writer's
 * asks; the lock is held over question and removal, and a name is added before
 * its file appears, so that none goes that somebody just brought.
 */
#ifndef STORE_WANTED_H
#define STORE_WANTED_H

#include "common/hashmap.h"
#include "common/uuid.h"

struct spool;
struct wanted;

struct wanted *wanted_new(void);
void wanted_free(struct wanted *w); /* NULL is fine */

/* A log, by an entry of its owner's. */
struct wanted_log {
	struct hash_entry by_run;
	struct uuid run;
};
void wanted_add_log(struct wanted *w, struct wanted_log *log);
void wanted_drop_log(struct wanted *w, struct wanted_log *log);

/* A blob, counted. */
void wanted_add_blob(
    struct wanted *w, uint64_t tenant, const uint8_t sha256[32]);
void wanted_drop_blob(
    struct wanted *w, uint64_t tenant, const uint8_t sha256[32]);

/* wanted_remove_log, wanted_remove_blob - the file, unless it is wanted */
void wanted_remove_log(
    struct wanted *w, struct spool *spool, const struct uuid *run);
void wanted_remove_blob(struct wanted *w, struct spool *spool, uint64_t tenant,
    const uint8_t sha256[32]);

#endif

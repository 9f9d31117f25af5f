/*
 * checkpoint.h - when the writer copies the WAL into the database; pure rules
 *
 * A sync of a file that grew costs about twice one of a file that was written
 * over.  So when nothing was written for a second, or the WAL is large, it is
 * copied into the database and written from its beginning again
 * (SQLITE_CHECKPOINT_RESTART).  Old frames in it may hold environment values
 * that are wiped from the database itself already: a minute after the first
 * frame was written the WAL is truncated.
 *
 * On a disk with less room than the WAL has frames neither file can give any
 * back: not the database, which grows when they are copied, nor the WAL, which
 * is kept until they are.  So when the disk is short the WAL is truncated at
 * once (checkpoint_hurry), however many write.
 */
#ifndef STORE_CHECKPOINT_H
#define STORE_CHECKPOINT_H

#include "common/base.h"

#define CHECKPOINT_WAL_BYTES (16u << 20)
#define CHECKPOINT_IDLE_MS 1000
#define CHECKPOINT_TRUNCATE_MS 60000
#define CHECKPOINT_RETRY_MS 1000 /* after one that failed */
#define CHECKPOINT_NEVER UINT64_MAX

enum checkpoint_kind {
	CHECKPOINT_REUSE,
	CHECKPOINT_TRUNCATE
};

struct checkpoint {
	bool has_frames;     /* since the last truncation, of since_ms on */
	bool has_new_frames; /* that are not in the database yet */
	bool is_hurried;     /* until it is truncated */
	uint64_t since_ms;
	uint64_t last_write_ms;
	uint64_t not_before_ms;
};

/* checkpoint_init - the WAL may hold frames of the last process */
void checkpoint_init(struct checkpoint *c, uint64_t now_ms);
void checkpoint_on_write(struct checkpoint *c, uint64_t now_ms);
/* checkpoint_hurry - the disk is short: the next truncates the WAL, now; one
 * that a reader is in the way of is tried again as others are */
void checkpoint_hurry(struct checkpoint *c);
void checkpoint_on_done(struct checkpoint *c, enum checkpoint_kind kind);
void checkpoint_on_failure(struct checkpoint *c, uint64_t now_ms);
/* checkpoint_wait_ms - 0: now, of that kind; CHECKPOINT_NEVER: nothing to do */
uint64_t checkpoint_wait_ms(const struct checkpoint *c, uint64_t wal_bytes,
    uint64_t now_ms, enum checkpoint_kind *kind);

#endif

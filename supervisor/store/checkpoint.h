/*
 * checkpoint.h - when the writer empties the WAL, and makes room in it; pure
 * rules
 *
 * To grow a file makes each sync about twice as dear as to write over it.  So
 * a large WAL is only written from its beginning again, and one that is nearly
 * used up gets more, as zeros, while nobody waits.  When nothing was
 * written for a while, and at the latest some time after it began to fill, it
 * is truncated: old frames in it may hold environment values that are wiped
 * from the database itself already.
 */
#ifndef STORE_CHECKPOINT_H
#define STORE_CHECKPOINT_H

#include "common/base.h"

#define CHECKPOINT_WAL_BYTES (16u << 20)
#define CHECKPOINT_IDLE_MS 1000
#define CHECKPOINT_AGE_MS 30000
#define CHECKPOINT_RETRY_MS 1000        /* after one that failed */
#define CHECKPOINT_ROOM_MIN (32u << 10) /* a few small commits */
#define CHECKPOINT_ROOM_MORE (128u << 10)
#define CHECKPOINT_ROOM_STEP (1u << 20) /* at once: the next op may come */
#define CHECKPOINT_NEVER UINT64_MAX

enum checkpoint_kind {
	CHECKPOINT_REUSE,
	CHECKPOINT_TRUNCATE
};

struct checkpoint {
	bool dirty; /* the WAL's file may hold something */
	uint64_t since_ms;
	uint64_t last_write_ms;
	uint64_t not_before_ms;
};

/* checkpoint_init - what the last process left in the WAL counts, too */
void checkpoint_init(struct checkpoint *c, uint64_t now_ms);
void checkpoint_on_write(struct checkpoint *c, uint64_t now_ms);
void checkpoint_on_done(struct checkpoint *c, enum checkpoint_kind kind);
void checkpoint_on_failure(struct checkpoint *c, uint64_t now_ms);
/* checkpoint_wait_ms - 0: now, of that kind; CHECKPOINT_NEVER: nothing to do */
uint64_t checkpoint_wait_ms(const struct checkpoint *c, uint64_t wal_bytes,
    uint64_t now_ms, enum checkpoint_kind *kind);
/* checkpoint_room - how large to make the WAL's file of that size, of which so
 * much is used; not more than size: leave it */
uint64_t checkpoint_room(uint64_t wal_bytes, uint64_t size);

#endif

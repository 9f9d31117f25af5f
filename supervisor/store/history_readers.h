/*
 * history_readers.h - who reads the index, and the gap between two readers in
 * which its WAL is written from the beginning again
 *
 * SQLite does that only when nobody reads what is in the WAL, and two lanes
 * that have work never rest at the same moment: the WAL grew with all that was
 * indexed meanwhile.  So when it is large (READERS_WAL_BYTES) the index says
 * so, and
 *
 *	- the slow lane begins no other read until the WAL is small again, or
 *	  READERS_WISH_MS are over.  What it reads at the moment ends by itself,
 *	  a slice of statistics or a page; when that takes so long that the WAL
 *	  has READERS_WAL_MAX bytes, it is interrupted, and begun again later;
 *	- when it has, the quick lane waits as well, as long as a page may take,
 *	  and the checkpoint comes.
 *
 * A reader of another program's is not waited for: then the WAL grows on.
 */
#ifndef STORE_HISTORY_READERS_H
#define STORE_HISTORY_READERS_H

#include <stdatomic.h>

#include "common/base.h"
#include "common/err.h"

#define READERS_WAL_BYTES (16u << 20)
#define READERS_WAL_MAX (64u << 20)
#define READERS_WISH_MS 2000
#define READERS_GAP_MS 500    /* more than a list's page takes */
#define READERS_AGAIN_MS 1000 /* behind another program's reader */

struct db;
struct history_readers;

enum history_lane {
	LANE_QUICK,
	LANE_SLOW,
	NLANE
};

struct history_readers *readers_new(void);
void readers_free(struct history_readers *r); /* NULL is fine */
/* readers_begin - from that lane: may wait, see above; a readers_end follows
 * when its transaction is over.  *is_stopped becomes true when it is to be so
 * at once. */
void readers_begin(
    struct history_readers *r, enum history_lane lane, atomic_bool *is_stopped);
void readers_end(struct history_readers *r, enum history_lane lane);
/* readers_seek_gap - from the index: true: nobody reads, and nobody begins
 * before readers_close_gap, which must follow; false: another time, and the
 * slow lane waits until then */
bool readers_seek_gap(struct history_readers *r) MUSTCHECK;
void readers_close_gap(struct history_readers *r);
/* readers_interrupt - what the slow lane reads */
void readers_interrupt(struct history_readers *r);

/* readers_bound_wal - behind a commit to db, which is the index's: its WAL from
 * the beginning when it has become large; *is_due becomes true when it has and
 * somebody reads, and else stays as it is */
int readers_bound_wal(struct history_readers *r, struct db *db, bool *is_due,
    struct err *e) MUSTCHECK;
/* readers_empty_wal - the WAL has no bytes any more; *is_due: somebody reads */
int readers_empty_wal(struct history_readers *r, struct db *db, bool *is_due,
    struct err *e) MUSTCHECK;

#endif

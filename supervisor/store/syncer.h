/*
 * syncer.h - files are on the disk before the rows that count them
 *
 * A thread of its own: a large file takes the disk a while, and neither the
 * loop nor the commits of others wait for it.  What waits is taken together:
 * few files are synced each, with the directories that name them; of more than
 * SYNCER_EACH_MAX all that the disk has not written yet is, at once.
 *
 * A file that the disk does not take (EIO, a full disk behind a late
 * allocation) is not tried again: the kernel has dropped its pages, and a
 * second sync would say that all is well.  It is said to be lost.
 *
 * Ops come back on the loop's thread, in the order in which they came.
 */
#ifndef STORE_SYNCER_H
#define STORE_SYNCER_H

#include "supervisor/store/op.h"
#include "supervisor/store/rows_gen.h"

#define SYNCER_BATCH_MAX 64 /* ops taken together */
#define SYNCER_EACH_MAX 16  /* files of them that are synced one by one */

struct event_base;
struct spool;
struct store_log;
struct syncer;

/* The caller's, until op is released: its deliver and release are the
 * caller's.  rc is not 0 when a log cannot have its name, or a file not be
 * opened: another try may help. */
struct syncing {
	struct op op;
	/* A run's log, which gets its name first; NULL: none is to be. */
	struct store_log *log;
	int (*name_log)(struct store_log *log, struct err *e);
	int log_fd;
	struct uuid run;
	uint64_t tenant; /* of the blobs */
	const struct store_artifact *blobs;
	uint32_t nblobs;
	/* Set by the thread; op.why says why something is lost. */
	bool log_is_lost;
	bool *lost; /* of each blob; NULL: none is */
};

int syncer_start(struct event_base *base, struct spool *spool,
    struct syncer **out, struct err *e) MUSTCHECK;
void syncer_submit(struct syncer *y, struct syncing *s);
/* syncer_is_full - more waits than a queue should hold (STORE_QUEUE_MAX) */
bool syncer_is_full(struct syncer *y);
/* syncer_stop - on the loop's thread: what was submitted is synced and
 * delivered, then all is freed.  NULL is fine */
void syncer_stop(struct syncer *y);

#endif

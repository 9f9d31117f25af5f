/*
 * writer.h - the thread that writes: group commit
 *
 * All ops that wait, up to WRITER_BATCH_MAX, make one transaction; one alone
 * is committed at once.  When one fails, it alone is undone.  What concerns the
 * transaction as a whole (disk full, input/output, a commit that fails) fails
 * every op of it.  Then each op's after is called, and they are delivered, in
 * the order of submission, each exactly once.  When the database turns out to
 * be removed or replaced (identity.h), ops fail with ERR_DAMAGED, those of the
 * last commit too.
 *
 * While WRITER_MANY or more are held and wait, their ends are to be expected:
 * the thread waits until three quarters of them have come along, so that more
 * share a sync, but no longer than WRITER_GATHER_US.
 *
 * An op can be held on the loop's thread until another one takes it with it
 * (op.h, covers), until it is told to go, or for WRITER_SOON_MS.  A held op
 * waits for no other and no other for it: who submits what depends on it lets
 * it go first.
 */
#ifndef STORE_WRITER_H
#define STORE_WRITER_H

#include "supervisor/store/op.h"
#include "supervisor/store/store.h"

#define WRITER_BATCH_MAX 1024
#define WRITER_SOON_MS 100
#define WRITER_MANY 12
#define WRITER_GATHER_US 8000

struct db;
struct done;
struct event_base;
struct identity;
struct writer;

/* writer_start - takes db; the done queue and the identity, which may be NULL,
 * must outlive it */
int writer_start(struct event_base *base, struct db *db,
    const struct identity *id, struct done *done, struct writer **out,
    struct err *e) MUSTCHECK;
/* writer_stop - commits what is queued, empties the WAL, frees all */
void writer_stop(struct writer *w);
void writer_submit(struct writer *w, struct op *op);
void writer_hold(struct writer *w, struct op *op);
/* writer_take - takes back an op that is still held, the first for which is_it
 * says so; NULL when there is none */
struct op *writer_take(struct writer *w,
    bool (*is_it)(const struct op *op, const void *arg), const void *arg);
/* writer_find - the same, and it stays held */
struct op *writer_find(struct writer *w,
    bool (*is_it)(const struct op *op, const void *arg), const void *arg);
/* writer_ride - op goes with the next that is submitted, right before it, or
 * after WRITER_SOON_MS; there is one at a time in each seat.  writer_rider is
 * it, or NULL: it may be added to.  writer_send_riders: they go now. */
enum writer_seat {
	WRITER_SEAT_AUDIT,
	WRITER_SEAT_EVENTS,
	WRITER_NSEATS
};
void writer_ride(struct writer *w, enum writer_seat seat, struct op *op);
struct op *writer_rider(struct writer *w, enum writer_seat seat);
void writer_send_riders(struct writer *w);
void writer_let_go(struct writer *w); /* submits all that is held */
/* writer_shrink - on the writer's thread: the disk is short, and the file gives
 * back what it can (vacuum.h) */
void writer_shrink(struct writer *w);
/* writer_is_full - more waits than a queue should hold */
bool writer_is_full(struct writer *w);
/* writer_wal_bytes - of the WAL that are not in the database's file yet */
uint64_t writer_wal_bytes(const struct writer *w);
void writer_stats(struct writer *w, struct store_stats *out);

#endif

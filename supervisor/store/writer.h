/*
 * writer.h - the thread that writes: group commit
 *
 * All ops that wait, up to WRITER_BATCH_MAX, make one transaction; one alone
 * is committed at once.  Each runs in a savepoint: when it fails, it alone is
 * undone.  What concerns the transaction as a whole (disk full, input/output,
 * a commit that fails) fails every op of it.  Ops are delivered in the order
 * of submission, after the commit, and each exactly once.
 */
#ifndef STORE_WRITER_H
#define STORE_WRITER_H

#include "supervisor/store/op.h"
#include "supervisor/store/store.h"

#define WRITER_BATCH_MAX 1024
#define WRITER_SOON_MS 30

struct db;
struct done;
struct event_base;
struct writer;

/* writer_start - takes db; the done queue must outlive it */
int writer_start(struct event_base *base, struct db *db, struct done *done,
    struct writer **out, struct err *e) MUSTCHECK;
/* writer_stop - commits what is queued, empties the WAL, frees all */
void writer_stop(struct writer *w);
void writer_submit(struct writer *w, struct op *op);
/* writer_submit_soon - with the next writer_submit, in the same transaction,
 * or after WRITER_SOON_MS without one; order is kept */
void writer_submit_soon(struct writer *w, struct op *op);
/* writer_take_soon - takes back an op that was submitted so and not passed on
 * yet, the first for which is_it says so; NULL when there is none */
struct op *writer_take_soon(struct writer *w,
    bool (*is_it)(const struct op *op, const void *arg), const void *arg);
/* writer_is_full - more waits than a queue should hold */
bool writer_is_full(struct writer *w);
void writer_stats(struct writer *w, struct store_stats *out);

#endif

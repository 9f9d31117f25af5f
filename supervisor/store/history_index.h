/*
 * history_index.h - the index of runs, DATA_DIR/front/history.db, and the
 * thread that keeps it
 *
 * It is made of the database alone and can be made anew at any time.  What it
 * knows of is in it: the number up to which it has looked (state.upto), which
 * of these had not ended (run.state) or were not there yet (gap: a row of a
 * run may be written after one with a higher number).  With these, what a
 * kill -9 keeps from it is found at the next start; what was deleted
 * meanwhile by counting (tenant.runs_kept), and when the counts differ by
 * comparing all.
 *
 *	closed  -> open, or made anew: no database, damaged, another version,
 *		   another database's
 *	open    -> catching up: behind upto, the unfinished, the gaps
 *	        -> following: what the feed says, some milliseconds later, at
 *		   once when somebody asks
 *	closed again after any failure, for a while that grows
 *
 * What was taken out of FTS5 is in its file until its pieces are merged; that
 * is done when there is nothing else to do, at most a hundredth of the time,
 * and then the WAL is emptied.
 *
 * When there is more text than its bound, the oldest leaves (history_take.h):
 * with each step that brings some, up to twice as much, and when there is
 * nothing else to do, at most a tenth of the time.
 */
#ifndef STORE_HISTORY_INDEX_H
#define STORE_HISTORY_INDEX_H

#include "common/base.h"
#include "common/err.h"

struct feed;
struct history_index;
struct history_readers;
struct spool;

/* history_index_start - dir and all else must outlive it */
int history_index_start(const char *dir, struct spool *spool, struct feed *feed,
    struct history_readers *readers, struct history_index **out,
    struct err *e) MUSTCHECK;
/* history_index_stop - after feed_stop, when nothing is written any more; what
 * is not in it yet is so at the next start */
void history_index_stop(struct history_index *x);
uint64_t history_index_made_anew(const struct history_index *x);
/* history_index_bound - of the text in it, from now on; without one there is
 * none */
void history_index_bound(struct history_index *x, uint64_t text_bytes);
uint64_t history_index_text_bytes(const struct history_index *x);

#endif

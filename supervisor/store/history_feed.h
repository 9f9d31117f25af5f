/*
 * history_feed.h - which rows of runs were written, from the thread that
 * writes them to the one that keeps the index of them (history_index.h)
 *
 * Commits are counted: a mark that is taken when a question comes in says
 * which of them its answer must know of.
 *
 * Nothing here waits for the index.  When it is FEED_MAX rows behind, numbers
 * are dropped, and the index is told that it must look for itself.
 */
#ifndef STORE_HISTORY_FEED_H
#define STORE_HISTORY_FEED_H

#include "common/base.h"
#include "common/err.h"

#define FEED_MAX 65536
#define FEED_WHY_MAX (ERR_TEXT_MAX / 2)

/* Why there is no answer, where the reason is for the server's log alone. */
#define HISTORY_SEE_LOG                                                        \
	"its index cannot be used, the server's log says why; "                \
	"it is tried again by itself"

struct feed;

struct feed *feed_new(void);
void feed_free(struct feed *f);

/* From the writer's thread, as SQLite says it: a row, and the end of the
 * transaction. */
void feed_touched(struct feed *f, int64_t run);
void feed_committed(struct feed *f);
void feed_undone(struct feed *f);

/* What the index has to do next. */
struct feed_news {
	int64_t *runs; /* each once, in order; to be freed */
	size_t n;
	bool is_lost;  /* there were more */
	bool is_asked; /* somebody waits for the index */
	uint64_t mark; /* with these the index knows of all before it */
};
/* feed_wait - until there is something to take, or for ms; is_stopped: it is
 * over */
bool feed_wait(struct feed *f, uint64_t ms);
/* feed_gather - up to ms more, unless somebody asks or there is much to do */
void feed_gather(struct feed *f, uint64_t ms);
/* feed_pause - for ms, whatever comes */
void feed_pause(struct feed *f, uint64_t ms);
void feed_take(struct feed *f, struct feed_news *out);
/* feed_nudge - from any thread: who waits goes on without news, once */
void feed_nudge(struct feed *f);
/* feed_applied - the index knows of all before this mark */
void feed_applied(struct feed *f, uint64_t mark);
/* feed_hold - the index cannot answer, and why: in words for everybody, and in
 * those for who administers; until feed_go.  Whoever waits is told now.
 * feed_go: it can, as the how manieth that was opened. */
void feed_hold(struct feed *f, const char *why, const char *in_full);
void feed_go(struct feed *f, uint64_t opened);

/* For those who ask. */
uint64_t feed_mark(struct feed *f);
/* feed_reach - wait until the index knows of all before the mark;
 * ERR_BACKEND after ms, or when it is held */
int feed_reach(struct feed *f, uint64_t mark, uint64_t ms, uint64_t *opened,
    struct err *e) MUSTCHECK;
/* feed_distrust - the index that was opened as that one is damaged */
void feed_distrust(struct feed *f, uint64_t opened);
bool feed_is_distrusted(struct feed *f, uint64_t opened);

/* For who administers. */
struct feed_lag {
	uint64_t rows;      /* written, and not in the index yet */
	uint64_t oldest_ms; /* how long the first of them has waited; 0: none */
	bool is_held;
	char why[FEED_WHY_MAX]; /* why it is held, in full; else "" */
};
void feed_lag(struct feed *f, struct feed_lag *out);

void feed_stop(struct feed *f);
bool feed_is_stopped(struct feed *f);

#endif

/*
 * sandbox_save.h - a sandbox's row, on its way to disk
 *
 * Writes come to disk in their order.  Without a row a sandbox can have no
 * runs: when none could be written, its owner is told, and that was all.  A
 * row that is there but behind is what a restart repairs; it is written again
 * until it is right.
 */
#ifndef CORE_SANDBOX_SAVE_H
#define CORE_SANDBOX_SAVE_H

#include "common/base.h"
#include "common/err.h"
#include "supervisor/store/store.h"

struct event_base;
struct timer;

struct sandbox_save_ops {
	void (*on_refused)(const struct err *why, void *arg); /* no row */
	/* Some write is over, good or not, and none is under way: the last
	 * call of that write, it may free the object. */
	void (*on_rest)(void *arg);
};

struct sandbox_save { /* part of a sandbox */
	struct event_base *base;
	struct store *store;
	const struct store_sandbox *row;
	const struct sandbox_save_ops *ops;
	void *arg;
	unsigned int nwrites; /* under way */
	bool is_recorded;     /* the database has a row of it */
	bool is_behind;       /* the last write failed: made again */
	int64_t expires_ms;   /* what the database has */
	struct timer *again;
};

/* sandbox_save_init - row is read at each write, and borrowed */
void sandbox_save_init(struct sandbox_save *s, struct event_base *base,
    struct store *store, const struct store_sandbox *row,
    const struct sandbox_save_ops *ops, void *arg);
void sandbox_save_clear(struct sandbox_save *s);
/* sandbox_save_restored - the row came from the database */
void sandbox_save_restored(struct sandbox_save *s);
/* sandbox_save_put - the row as it is now */
void sandbox_save_put(struct sandbox_save *s);
/* sandbox_save_is_known - the database has a row, or may get one */
bool sandbox_save_is_known(const struct sandbox_save *s);
/* sandbox_save_is_over - nothing is under way, nor to be made again */
bool sandbox_save_is_over(const struct sandbox_save *s);

#endif

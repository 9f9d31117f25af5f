/*
 * op.h - one piece of work for a store thread, and its way back to the loop
 *
 * Made on the loop's thread, run on the writer's or reader's, then delivered
 * and released on the loop's again.  It belongs to one of them at a time.
 */
#ifndef STORE_OP_H
#define STORE_OP_H

#include "common/base.h"
#include "common/err.h"

struct db;

struct op {
	struct op *next;
	/* On the store's thread, in a transaction.  A failure is undone by the
	 * caller.  NULL: this one has only an after. */
	int (*run)(struct db *db, struct op *op, struct err *e);
	/* On the writer's thread, when the transaction is on disk or lost: rc
	 * says which.  May read, outside of any transaction.  NULL: nothing. */
	void (*after)(struct db *db, struct op *op);
	/* On the loop's thread: rc and why say how it went. */
	void (*deliver)(struct op *op);
	void (*release)(struct op *op); /* frees all, op too */
	size_t bytes;                   /* roughly, for the queue's limit */
	uint64_t due_ms; /* of one that is held: when it goes by itself */
	int rc;          /* set before it is queued: not run, only delivered */
	/* run may be called once more, when all that it wrote is undone. */
	bool again;
	/* The insert this op replaces: never run, delivered just before it
	 * with the same result. */
	struct op *covers;
	/* Set by run: events of this tenant were put (event_put.h). */
	uint64_t events_of;
	bool has_events;
	struct err why;
};

/* op_release_list - without delivering */
static inline void
op_release_list(struct op *op)
{
	while (op != NULL) {
		struct op *next = op->next;

		if (op->covers != NULL)
			op->covers->release(op->covers);
		op->release(op);
		op = next;
	}
}

#endif

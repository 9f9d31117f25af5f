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

struct op;
typedef int op_run_cb(struct db *db, struct op *op, struct err *e);

struct op {
	struct op *next;
	/* On the store's thread, in a transaction.  A failure is undone by the
	 * caller.  NULL: this one has only an after. */
	op_run_cb *run;
	/* On the writer's thread, when the transaction is on disk or lost: rc
	 * says which.  May read, outside of any transaction.  NULL: nothing. */
	void (*after)(struct db *db, struct op *op);
	/* On the loop's thread: rc and why say how it went.  NULL: nothing. */
	void (*deliver)(struct op *op);
	/* Frees all, op too; NULL: there is no more than op. */
	void (*release)(struct op *op);
	size_t bytes;    /* roughly, for the queue's limit */
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

static inline void
op_release(struct op *op)
{
	if (op->release != NULL)
		op->release(op);
	else
		free(op);
}

/* op_why - for callbacks: NULL when rc is 0 */
static inline const struct err *
op_why(const struct op *op)
{
	return op->rc == 0 ? NULL : &op->why;
}

/* op_release_list - without delivering */
static inline void
op_release_list(struct op *op)
{
	while (op != NULL) {
		struct op *next = op->next;

		if (op->covers != NULL)
			op_release(op->covers);
		op_release(op);
		op = next;
	}
}

#endif

#include "supervisor/store/store_int.h"

#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/event_put.h"
#include "supervisor/store/rows_sql_gen.h"
#include "supervisor/store/writer.h"

struct sandbox_op {
	struct write_op w;
	struct store_sandbox row;
};

static int
sandbox_put_run(struct db *db, struct op *op, struct err *e)
{
	const struct store_sandbox *s = &((struct sandbox_op *)op)->row;
	struct db_call c;

	if (!id_is_good(s->id))
		return err_set(e, ERR_INVAL, "sandbox without a number");
	if (event_put_sandbox(db, op, s, e) != 0)
		return e->code;
	db_call_init(&c, db, DB_SANDBOX_PUT);
	rows_put_sandbox(&c, s);
	return db_call_run(&c, e);
}

static void
sandbox_op_release(struct op *op)
{
	store_sandbox_clear(&((struct sandbox_op *)op)->row);
	free(op);
}

void
store_sandbox_put(struct store *s, const struct store_sandbox *row,
    store_done_cb done, void *arg)
{
	struct sandbox_op *op;

	if (store_refuse(s, done, arg))
		return;
	op = xcalloc(1, sizeof(*op));
	op->w.op.run = sandbox_put_run;
	op->w.op.deliver = store_write_deliver;
	op->w.op.release = sandbox_op_release;
	op->w.op.again = true;
	op->w.op.bytes = sizeof(*op) + 256;
	op->w.done = done;
	op->w.arg = arg;
	store_sandbox_copy(&op->row, row);
	/* Who trims what has ended must find its runs. */
	if (row->state == SANDBOX_IS_REMOVED || row->state == SANDBOX_IS_LOST)
		runs_hurry(s, row->id);
	writer_submit(s->writer, &op->w.op);
}

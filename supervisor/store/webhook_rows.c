/* webhook_rows.c - tenants' webhooks: read once, then written through, as in
 * directory.c */
#include "supervisor/store/store_int.h"

#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/rows_sql_gen.h"
#include "supervisor/store/writer.h"

/* ---- reading all, before the loop runs */

void
store_webhooks_clear(struct store_webhooks *all)
{
	for (size_t i = 0; i < all->n; i++)
		store_webhook_clear(&all->rows[i]);
	free(all->rows);
	*all = (struct store_webhooks){0};
}

static int
read_webhooks(struct db *db, void *out, struct err *e)
{
	struct store_webhooks *all = out;
	struct db_call c;

	db_call_init(&c, db, DB_WEBHOOKS_GET);
	return rows_read_webhook(&c, &all->rows, &all->n, e);
}

int
store_webhooks_read(struct store *s, struct store_webhooks *out, struct err *e)
{
	int rc;

	*out = (struct store_webhooks){0};
	rc = store_read_now(s, read_webhooks, out, e);
	if (rc != 0)
		store_webhooks_clear(out);
	return rc;
}

/* ---- writing */

struct webhook_op {
	struct write_op w;
	struct store_webhook row;
};

static int
put_webhook(struct db *db, struct op *op, struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, DB_WEBHOOK_PUT);
	rows_put_webhook(&c, &((struct webhook_op *)op)->row);
	return db_call_run(&c, e);
}

static int
drop_webhook(struct db *db, struct op *op, struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, DB_WEBHOOK_DROP);
	db_put_blob(
	    &c, ((struct webhook_op *)op)->row.uuid.b, sizeof(struct uuid));
	return db_call_run(&c, e);
}

static void
release_webhook(struct op *op)
{
	store_webhook_clear(&((struct webhook_op *)op)->row);
	free(op);
}

static void
submit(struct store *s, op_run_cb *run, const struct store_webhook *row,
    store_done_cb done, void *arg)
{
	struct webhook_op *o = xcalloc(1, sizeof(*o));

	store_write_init(&o->w, run, sizeof(*o) + 1024, done, arg);
	o->w.op.release = release_webhook;
	store_webhook_copy(&o->row, row);
	writer_submit(s->writer, &o->w.op);
}

void
store_webhook_put(struct store *s, const struct store_webhook *row,
    store_done_cb done, void *arg)
{
	submit(s, put_webhook, row, done, arg);
}

void
store_webhook_drop(struct store *s, const struct store_webhook *row,
    store_done_cb done, void *arg)
{
	submit(s, drop_webhook, row, done, arg);
}

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
read_webhooks(struct db *db, struct store_webhooks *all, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_WEBHOOKS_GET);
	while ((rc = db_call_step(&c, e)) == 1) {
		all->rows = array_grow(all->rows, all->n, sizeof(*all->rows));
		rc = rows_get_webhook(&c, &all->rows[all->n], e);
		if (rc != 0)
			break;
		all->n++;
	}
	if (rc != 0)
		db_call_end(&c);
	return rc;
}

int
store_webhooks_read(struct store *s, struct store_webhooks *out, struct err *e)
{
	struct store_webhooks all = {0};
	struct err why = {0};
	struct db *db;
	int rc = db_open(s->dir, DB_READER, &db, &why);

	if (rc == 0) {
		rc = read_webhooks(db, &all, &why);
		db_close(db);
	}
	if (rc != 0) {
		store_webhooks_clear(&all);
		return err_set(e, rc, "%s", why.msg);
	}
	*out = all;
	return 0;
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
submit(struct store *s, int (*run)(struct db *, struct op *, struct err *),
    const struct store_webhook *row, store_done_cb done, void *arg)
{
	struct webhook_op *o = xcalloc(1, sizeof(*o));

	o->w.op.run = run;
	o->w.op.deliver = store_write_deliver;
	o->w.op.release = release_webhook;
	o->w.op.again = true;
	o->w.op.bytes = sizeof(*o) + 1024;
	o->w.done = done;
	o->w.arg = arg;
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

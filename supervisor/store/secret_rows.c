/* secret_rows.c - tenants' secrets as they are sealed: read once, then written
 * through, as in directory.c */
#include "supervisor/store/store_int.h"

#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/rows_sql_gen.h"
#include "supervisor/store/writer.h"

/* ---- reading all, before the loop runs */

void
store_secrets_clear(struct store_secrets *all)
{
	for (size_t i = 0; i < all->n; i++)
		store_secret_clear(&all->rows[i]);
	free(all->rows);
	*all = (struct store_secrets){0};
}

static int
read_secrets(struct db *db, void *out, struct err *e)
{
	struct store_secrets *all = out;
	struct db_call c;

	db_call_init(&c, db, DB_SECRETS_GET);
	return rows_read_secret(&c, &all->rows, &all->n, e);
}

int
store_secrets_read(struct store *s, struct store_secrets *out, struct err *e)
{
	int rc;

	*out = (struct store_secrets){0};
	rc = store_read_now(s, read_secrets, out, e);
	if (rc != 0)
		store_secrets_clear(out);
	return rc;
}

/* ---- writing */

struct secret_op {
	struct write_op w;
	struct store_secret row;
};

static const struct store_secret *
row_of(struct op *op)
{
	return &((struct secret_op *)op)->row;
}

static int
put_run(struct db *db, struct op *op, struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, DB_SECRET_PUT);
	rows_put_secret(&c, row_of(op));
	return db_call_run(&c, e);
}

static int
use_run(struct db *db, struct op *op, struct err *e)
{
	const struct store_secret *row = row_of(op);
	struct db_call c;

	db_call_init(&c, db, DB_SECRET_USE);
	db_put_uint(&c, row->tenant);
	db_put_text(&c, row->name);
	db_put_int(&c, row->used_ms);
	return db_call_run(&c, e);
}

static int
drop_run(struct db *db, struct op *op, struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, DB_SECRET_DROP);
	db_put_uint(&c, row_of(op)->tenant);
	db_put_text(&c, row_of(op)->name);
	return db_call_run(&c, e);
}

static void
secret_release(struct op *op)
{
	store_secret_clear(&((struct secret_op *)op)->row);
	free(op);
}

static void
submit(struct store *s, op_run_cb *run, const struct store_secret *row,
    store_done_cb done, void *arg)
{
	struct secret_op *o = xcalloc(1, sizeof(*o));

	store_write_init(
	    &o->w, run, sizeof(*o) + 256 + row->sealed_len, done, arg);
	o->w.op.release = secret_release;
	store_secret_copy(&o->row, row);
	writer_submit(s->writer, &o->w.op);
}

void
store_secret_put(struct store *s, const struct store_secret *row,
    store_done_cb done, void *arg)
{
	submit(s, put_run, row, done, arg);
}

/* What a row is found by, and when it was used. */
static struct store_secret
slim(const struct store_secret *row)
{
	return (struct store_secret){
	    .tenant = row->tenant, .name = row->name, .used_ms = row->used_ms};
}

void
store_secret_use(struct store *s, const struct store_secret *row)
{
	const struct store_secret key = slim(row);

	submit(s, use_run, &key, NULL, NULL);
}

void
store_secret_drop(struct store *s, const struct store_secret *row,
    store_done_cb done, void *arg)
{
	const struct store_secret key = slim(row);

	submit(s, drop_run, &key, done, arg);
}

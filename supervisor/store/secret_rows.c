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
read_secrets(struct db *db, struct store_secrets *all, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_SECRETS_GET);
	while ((rc = db_call_step(&c, e)) == 1) {
		all->rows = array_grow(all->rows, all->n, sizeof(*all->rows));
		rc = rows_get_secret(&c, &all->rows[all->n], e);
		if (rc != 0)
			break;
		all->n++;
	}
	if (rc != 0)
		db_call_end(&c);
	return rc;
}

int
store_secrets_read(struct store *s, struct store_secrets *out, struct err *e)
{
	struct store_secrets all = {0};
	struct err why = {0};
	struct db *db;
	int rc = db_open(s->dir, DB_READER, &db, &why);

	if (rc == 0) {
		rc = read_secrets(db, &all, &why);
		db_close(db);
	}
	if (rc != 0) {
		store_secrets_clear(&all);
		return err_set(e, rc, "%s", why.msg);
	}
	*out = all;
	return 0;
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
submit(struct store *s, int (*run)(struct db *, struct op *, struct err *),
    const struct store_secret *row, store_done_cb done, void *arg)
{
	struct secret_op *o = xcalloc(1, sizeof(*o));

	o->w.op.run = run;
	o->w.op.deliver = store_write_deliver;
	o->w.op.release = secret_release;
	o->w.op.again = true;
	o->w.op.bytes = sizeof(*o) + 256 + row->sealed_len;
	o->w.done = done;
	o->w.arg = arg;
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

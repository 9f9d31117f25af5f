#include "supervisor/store/usage.h"

#include "supervisor/store/db.h"
#include "supervisor/store/rows_sql_gen.h"
#include "supervisor/store/store_int.h"
#include "supervisor/store/writer.h"

/* ---- reading */

struct days_op {
	struct op op;
	uint64_t tenant;
	uint32_t from;
	struct store_days days;
	store_days_cb done;
	void *arg;
};

static int
days_run(struct db *db, struct op *op, struct err *e)
{
	struct days_op *o = (struct days_op *)op;
	struct db_call c;

	db_call_init(&c, db, DB_USAGE_OF_TENANT);
	db_put_uint(&c, o->tenant);
	db_put_uint(&c, o->from);
	return rows_read_day(&c, &o->days.rows, &o->days.n, e);
}

static void
days_deliver(struct op *op)
{
	const struct days_op *o = (const struct days_op *)op;

	o->done(op->rc, op->rc == 0 ? &o->days : NULL, op_why(op), o->arg);
}

static void
days_release(struct op *op)
{
	free(((struct days_op *)op)->days.rows);
	free(op);
}

void
store_usage_read(struct store *s, struct tenant_id tenant, uint32_t from,
    store_days_cb done, void *arg)
{
	struct days_op *o = xcalloc(1, sizeof(*o));

	o->tenant = tenant.n;
	o->from = from;
	o->done = done;
	o->arg = arg;
	store_read_submit(s, &o->op, days_run, days_deliver, days_release);
}

int
store_usage_of_day(
    struct store *s, uint32_t day, struct store_days *out, struct err *e)
{
	struct store_days days = {0};
	struct db_call c;
	struct db *db;
	int rc = db_open(s->dir, DB_READER, &db, e);

	if (rc != 0)
		return rc;
	db_call_init(&c, db, DB_USAGE_OF_DAY);
	db_put_uint(&c, day);
	rc = rows_read_day(&c, &days.rows, &days.n, e);
	db_close(db);
	if (rc != 0)
		free(days.rows);
	else
		*out = days;
	return rc;
}

/* ---- what is in files, and rows */

void
store_usage_get(struct db_call *c, struct store_usage *u)
{
	u->log_files = db_get_uint(c);
	u->log_bytes = db_get_uint(c);
	u->blob_files = db_get_uint(c);
	u->blob_bytes = db_get_uint(c);
	u->evicted = db_get_uint(c);
	u->runs = db_get_uint(c);
	u->row_bytes = db_get_uint(c);
}

/* ---- writing */

struct usage_write {
	struct write_op w;
	struct store_day row;
	uint32_t before;
};

static int
add_run(struct db *db, struct op *op, struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, DB_USAGE_ADD);
	rows_put_day(&c, &((struct usage_write *)op)->row);
	return db_call_run(&c, e);
}

static int
forget_days(struct db *db, struct op *op, struct err *e)
{
	static const enum db_query places[] = {
	    DB_USAGE_FORGET, DB_TENANT_DAY_FORGET};
	uint32_t before = ((struct usage_write *)op)->before;

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (db_exec_with(db, places[i], before, e) != 0)
			return e->code;
	return 0;
}

static struct usage_write *
new_write(op_run_cb *run)
{
	struct usage_write *o = xcalloc(1, sizeof(*o));

	store_write_init(&o->w, run, sizeof(*o), NULL, NULL);
	return o;
}

void
store_usage_add(struct store *s, const struct store_day *row)
{
	struct usage_write *o = new_write(add_run);

	o->row = *row;
	writer_submit(s->writer, &o->w.op);
}

void
store_usage_forget(struct store *s, uint32_t today)
{
	struct usage_write *o = new_write(forget_days);

	o->before = today < STORE_DAYS_MAX ? 0 : today - STORE_DAYS_MAX;
	writer_submit(s->writer, &o->w.op);
}

/*
 * task_rows.c - tasks of the protocol: written before their call is answered,
 * read by their principal alone
 */
#include "supervisor/store/store_int.h"

#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/rows_sql_gen.h"
#include "supervisor/store/writer.h"

#define EXPIRE_STEP 500 /* rows: it bounds the time that others wait */

/* ---- writing */

struct task_op {
	struct write_op w;
	struct store_task row;
	uint64_t max;
	int64_t now_ms;
	struct store *store;
	int64_t gone; /* of a step of store_tasks_expire */
};

static struct task_op *
op_of(struct op *op)
{
	return (struct task_op *)op;
}

static void
release(struct op *op)
{
	store_task_clear(&op_of(op)->row);
	free(op);
}

static int
check_room(struct db *db, const struct store_task *row, int64_t now_ms,
    uint64_t max, struct err *e)
{
	struct db_call c;
	uint64_t n = 0;
	int rc;

	db_call_init(&c, db, DB_TASK_COUNT);
	db_put_uint(&c, row->tenant);
	db_put_text(&c, row->subject);
	db_put_int(&c, now_ms);
	rc = db_call_step(&c, e);
	if (rc < 0)
		return rc;
	n = db_get_uint(&c);
	db_call_end(&c);
	if (n < max)
		return 0;
	return err_set(e, ERR_LIMIT,
	    "limit reached: %llu tasks of yours are kept: each goes when its "
	    "ttl is over; call without a task, or ask for a shorter ttl",
	    (unsigned long long)n);
}

static int
put_run(struct db *db, struct op *op, struct err *e)
{
	const struct task_op *o = op_of(op);
	struct db_call c;

	if (check_room(db, &o->row, o->row.created_ms, o->max, e) != 0)
		return e->code;
	db_call_init(&c, db, DB_TASK_PUT);
	rows_put_task(&c, &o->row);
	return db_call_run_one(&c, e) == 0 ?
	    0 :
	    err_wrap(e, "the task of a tenant");
}

static int
cancel_run(struct db *db, struct op *op, struct err *e)
{
	const struct task_op *o = op_of(op);
	struct db_call c;

	db_call_init(&c, db, DB_TASK_CANCEL);
	db_put_blob(&c, o->row.uuid.b, sizeof(o->row.uuid.b));
	db_put_uint(&c, o->row.tenant);
	db_put_text(&c, o->row.subject);
	db_put_int(&c, o->now_ms);
	return db_call_run(&c, e);
}

static struct task_op *
new_op(
    op_run_cb *run, const struct store_task *row, store_done_cb done, void *arg)
{
	struct task_op *o = xcalloc(1, sizeof(*o));

	store_write_init(&o->w, run, sizeof(*o) + 512, done, arg);
	o->w.op.release = release;
	store_task_copy(&o->row, row);
	return o;
}

void
store_task_put(struct store *s, const struct store_task *row, uint64_t max,
    store_done_cb done, void *arg)
{
	struct task_op *o;

	if (store_refuse(s, done, arg))
		return;
	o = new_op(put_run, row, done, arg);
	o->max = max;
	writer_submit(s->writer, &o->w.op);
}

void
store_task_cancel(struct store *s, const struct store_task *row, int64_t now_ms,
    store_done_cb done, void *arg)
{
	struct task_op *o = new_op(cancel_run, row, done, arg);

	o->now_ms = now_ms;
	writer_submit(s->writer, &o->w.op);
}

/* ---- those that are over */

static int
expire_run(struct db *db, struct op *op, struct err *e)
{
	struct task_op *o = op_of(op);
	int64_t before = db_changes(db);
	struct db_call c;

	db_call_init(&c, db, DB_TASK_EXPIRE);
	db_put_int(&c, o->now_ms);
	db_put_uint(&c, EXPIRE_STEP);
	if (db_call_run(&c, e) != 0)
		return e->code;
	o->gone = db_changes(db) - before;
	return 0;
}

static void
expire_deliver(struct op *op)
{
	const struct task_op *o = op_of(op);

	if (op->rc == 0 && o->gone >= EXPIRE_STEP)
		store_tasks_expire(o->store, o->now_ms);
	else
		store_write_deliver(op);
}

void
store_tasks_expire(struct store *s, int64_t now_ms)
{
	static const struct store_task none;
	struct task_op *o = new_op(expire_run, &none, NULL, NULL);

	o->w.op.deliver = expire_deliver;
	o->store = s;
	o->now_ms = now_ms;
	writer_submit(s->writer, &o->w.op);
}

/* ---- reading */

struct task_reading {
	struct op op;
	struct store_task who; /* tenant, subject, uuid */
	int64_t now_ms;
	uint64_t max;
	struct store_task_place after;
	size_t limit;
	store_done_cb on_check;
	store_task_cb on_row;
	store_task_page_cb on_page;
	void *arg;
	struct store_task_page page;
};

void
store_task_page_clear(struct store_task_page *all)
{
	for (size_t i = 0; i < all->n; i++)
		store_task_clear(&all->rows[i]);
	free(all->rows);
	*all = (struct store_task_page){0};
}

static int
check_run(struct db *db, struct op *op, struct err *e)
{
	const struct task_reading *r = (const struct task_reading *)op;

	return check_room(db, &r->who, r->now_ms, r->max, e);
}

static int
get_run(struct db *db, struct op *op, struct err *e)
{
	struct task_reading *r = (struct task_reading *)op;
	struct db_call c;

	db_call_init(&c, db, DB_TASK_GET);
	db_put_blob(&c, r->who.uuid.b, sizeof(r->who.uuid.b));
	db_put_uint(&c, r->who.tenant);
	db_put_text(&c, r->who.subject);
	db_put_int(&c, r->now_ms);
	if (rows_read_task(&c, &r->page.rows, &r->page.n, e) != 0)
		return e->code;
	return r->page.n == 0 ? err_set(e, ERR_NOTFOUND, "no such task") : 0;
}

static int
list_run(struct db *db, struct op *op, struct err *e)
{
	struct task_reading *r = (struct task_reading *)op;
	struct store_task_page *page = &r->page;
	struct db_call c;

	db_call_init(&c, db, DB_TASK_PAGE);
	db_put_uint(&c, r->who.tenant);
	db_put_text(&c, r->who.subject);
	db_put_int(&c, r->after.created_ms);
	db_put_blob(&c, r->after.uuid.b, sizeof(r->after.uuid.b));
	db_put_int(&c, r->now_ms);
	db_put_uint(&c, r->limit + 1);
	if (rows_read_task(&c, &page->rows, &page->n, e) != 0)
		return e->code;
	page->has_more = page->n > r->limit;
	if (page->has_more)
		store_task_clear(&page->rows[--page->n]);
	return 0;
}

static void
read_deliver(struct op *op)
{
	const struct task_reading *r = (const struct task_reading *)op;
	const struct store_task_page *page = op->rc == 0 ? &r->page : NULL;

	if (r->on_check != NULL)
		r->on_check(op->rc, op_why(op), r->arg);
	else if (r->on_row != NULL)
		r->on_row(op->rc, page == NULL ? NULL : page->rows, op_why(op),
		    r->arg);
	else
		r->on_page(op->rc, page, op_why(op), r->arg);
}

static void
read_release(struct op *op)
{
	struct task_reading *r = (struct task_reading *)op;

	store_task_page_clear(&r->page);
	store_task_clear(&r->who);
	free(r);
}

static struct task_reading *
new_reading(const struct principal *who, int64_t now_ms, void *arg)
{
	struct task_reading *r = xcalloc(1, sizeof(*r));

	r->who.tenant = who->tenant.n;
	r->who.subject = xstrdup(who->subject);
	r->now_ms = now_ms;
	r->arg = arg;
	return r;
}

void
store_task_check(struct store *s, const struct principal *who, int64_t now_ms,
    uint64_t max, store_done_cb done, void *arg)
{
	struct task_reading *r = new_reading(who, now_ms, arg);

	r->max = max;
	r->on_check = done;
	store_read_submit(s, &r->op, check_run, read_deliver, read_release);
}

void
store_task_get(struct store *s, const struct principal *who,
    const struct uuid *uuid, int64_t now_ms, store_task_cb done, void *arg)
{
	struct task_reading *r = new_reading(who, now_ms, arg);

	r->who.uuid = *uuid;
	r->on_row = done;
	store_read_submit(s, &r->op, get_run, read_deliver, read_release);
}

void
store_task_list(struct store *s, const struct principal *who,
    const struct store_task_place *after, int64_t now_ms, size_t limit,
    store_task_page_cb done, void *arg)
{
	struct task_reading *r = new_reading(who, now_ms, arg);

	r->after.created_ms = INT64_MAX;
	if (after != NULL)
		r->after = *after;
	r->limit = limit;
	r->on_page = done;
	store_read_submit(s, &r->op, list_run, read_deliver, read_release);
}

/* ---- before the loop runs */

static int
read_unfinished(struct db *db, void *out, struct err *e)
{
	struct store_task_page *all = out;
	struct db_call c;

	db_call_init(&c, db, DB_TASKS_UNFINISHED);
	return rows_read_task(&c, &all->rows, &all->n, e);
}

int
store_tasks_read(struct store *s, struct store_task_page *out, struct err *e)
{
	int rc;

	*out = (struct store_task_page){0};
	rc = store_read_now(s, read_unfinished, out, e);
	if (rc != 0)
		store_task_page_clear(out);
	return rc;
}

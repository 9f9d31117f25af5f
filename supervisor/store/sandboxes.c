/*
 * sandbox_list.c - the sandboxes of a tenant, newest first, a page at a time
 *
 * The cursor is a sandbox's UUID, looked for below the tenant, as every id that
 * comes from a client.  A page scans at most STORE_LIST_SCAN_MAX rows; what is
 * not full then still says where to go on.
 */
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
	store_write_init(&op->w, sandbox_put_run, sizeof(*op) + 256, done, arg);
	op->w.op.release = sandbox_op_release;
	store_sandbox_copy(&op->row, row);
	/* Who trims what has ended must find its runs. */
	if (row->state == SANDBOX_IS_REMOVED || row->state == SANDBOX_IS_LOST)
		runs_hurry(s, row->id);
	writer_submit(s->writer, &op->w.op);
}

struct sandbox_listing {
	struct op op;
	store_sandbox_list_cb done;
	void *arg;
	uint64_t tenant;
	struct store_sandbox_filter filter; /* its texts are the listing's */
	char *identifier;
	struct uuid after;
	struct store_sandbox_list list;
};

static int
find_place(
    struct db *db, const struct sandbox_listing *l, uint64_t *id, struct err *e)
{
	struct db_call c;
	int rc;

	*id = INT64_MAX;
	if (l->filter.after == NULL)
		return 0;
	db_call_init(&c, db, DB_SANDBOX_PLACE);
	db_put_blob(&c, l->after.b, sizeof(l->after.b));
	db_put_uint(&c, l->tenant);
	rc = db_call_step(&c, e);
	if (rc == 0)
		return err_set(e, ERR_INVAL,
		    "cursor: it is not known any more; list from the "
		    "beginning");
	if (rc < 0)
		return rc;
	*id = db_get_uint(&c);
	db_call_end(&c);
	return 0;
}

static bool
fits(const struct store_sandbox_filter *f, const struct store_sandbox *r)
{
	return (f->states == 0 || (f->states & (1u << r->state)) != 0) &&
	    (f->identifier == NULL ||
		strcmp(f->identifier, r->identifier) == 0) &&
	    (f->since_ms == 0 || r->created_ms >= f->since_ms) &&
	    (f->until_ms == 0 || r->created_ms < f->until_ms);
}

static int
take_row(struct sandbox_listing *l, struct db_call *c, struct err *e)
{
	struct store_sandbox_list *list = &l->list;
	struct store_sandbox row;

	if (rows_get_sandbox(c, &row, e) != 0)
		return e->code;
	list->next = row.uuid;
	if (!fits(&l->filter, &row)) {
		store_sandbox_clear(&row);
		return 0;
	}
	list->rows = array_grow(list->rows, list->n, sizeof(*list->rows));
	list->rows[list->n++] = row;
	return 0;
}

static int
sandbox_list_run(struct db *db, struct op *op, struct err *e)
{
	struct sandbox_listing *l = (struct sandbox_listing *)op;
	size_t scanned = 0;
	struct db_call c;
	uint64_t id;
	int rc;

	if (find_place(db, l, &id, e) != 0)
		return e->code;
	db_call_init(&c, db, DB_SANDBOX_PAGE);
	db_put_uint(&c, l->tenant);
	db_put_uint(&c, id);
	while ((rc = db_call_step(&c, e)) == 1) {
		/* Seen, not taken: there is more. */
		l->list.has_more = l->list.n == l->filter.limit ||
		    scanned++ == STORE_LIST_SCAN_MAX;
		if (!l->list.has_more)
			rc = take_row(l, &c, e);
		if (l->list.has_more || rc < 0)
			break;
	}
	if (rc != 0)
		db_call_end(&c);
	return rc < 0 ? rc : 0;
}

static void
sandbox_list_deliver(struct op *op)
{
	struct sandbox_listing *l = (struct sandbox_listing *)op;

	l->done(op->rc, op->rc == 0 ? &l->list : NULL, op_why(op), l->arg);
}

static void
sandbox_list_release(struct op *op)
{
	struct sandbox_listing *l = (struct sandbox_listing *)op;

	for (size_t i = 0; i < l->list.n; i++)
		store_sandbox_clear(&l->list.rows[i]);
	free(l->list.rows);
	free(l->identifier);
	free(l);
}

void
store_sandbox_list(struct store *s, struct tenant_id tenant,
    const struct store_sandbox_filter *f, store_sandbox_list_cb done, void *arg)
{
	struct sandbox_listing *l = xcalloc(1, sizeof(*l));

	l->done = done;
	l->arg = arg;
	l->tenant = tenant.n;
	l->filter = *f;
	if (f->identifier != NULL)
		l->identifier = xstrdup(f->identifier);
	l->filter.identifier = l->identifier;
	if (f->after != NULL)
		l->after = *f->after;
	l->filter.after = f->after == NULL ? NULL : &l->after;
	store_read_submit(s, &l->op, sandbox_list_run, sandbox_list_deliver,
	    sandbox_list_release);
}

/* ---- a sandbox that ended */

struct ended_op {
	struct op op;
	struct uuid uuid;
	store_ended_cb done;
	void *arg;
	bool has_ended;
};

static int
ended_run(struct db *db, struct op *op, struct err *e)
{
	struct ended_op *o = (struct ended_op *)op;
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_SANDBOX_ENDED);
	db_put_blob(&c, o->uuid.b, sizeof(o->uuid.b));
	rc = db_call_has_row(&c, e);
	o->has_ended = rc == 1;
	return rc < 0 ? rc : 0;
}

static void
ended_deliver(struct op *op)
{
	struct ended_op *o = (struct ended_op *)op;

	o->done(op->rc == 0 && o->has_ended, o->arg);
}

void
store_sandbox_ended(
    struct store *s, const struct uuid *uuid, store_ended_cb done, void *arg)
{
	struct ended_op *o = xcalloc(1, sizeof(*o));

	o->uuid = *uuid;
	o->done = done;
	o->arg = arg;
	store_read_submit(s, &o->op, ended_run, ended_deliver, NULL);
}

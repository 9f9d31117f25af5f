#include "supervisor/store/store_int.h"

#include "common/clock.h"
#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/event_put.h"
#include "supervisor/store/forget.h"
#include "supervisor/store/writer.h"

/* One run is forgotten because somebody said so. */

struct delete_op {
	struct write_op w;
	struct store *store;
	uint64_t tenant;
	struct uuid run;
	struct forget forget;
};

struct delete_row {
	uint64_t id;
	enum run_state state;
	bool has_file;
	uint64_t bytes;
	char *identifier;
};

static int
find_row(struct db *db, const struct delete_op *o, struct delete_row *row,
    struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_FORGET_FIND);
	db_put_blob(&c, o->run.b, sizeof(o->run.b));
	db_put_uint(&c, o->tenant);
	rc = db_call_step(&c, e);
	if (rc == 0)
		return err_set(e, ERR_NOTFOUND, "no such run");
	if (rc < 0)
		return rc;
	row->id = db_get_uint(&c);
	rc = run_state_parse(db_get_word(&c), &row->state);
	row->has_file = db_get_int(&c) != 0;
	row->bytes = db_get_uint(&c);
	row->identifier = db_get_text(&c);
	db_call_end(&c);
	return rc == 0 ?
	    0 :
	    err_set(e, ERR_DB, "database: a run of no known state");
}

static int
put_event(
    struct db *db, struct op *op, const struct delete_row *row, struct err *e)
{
	const struct delete_op *o = (const struct delete_op *)op;
	struct store_event event = {.tenant = o->tenant,
	    .at_ms = clock_wall_ms(),
	    .kind = EVENT_RUN_DELETED,
	    .identifier = row->identifier,
	    .run = o->run};

	return event_put(db, op, &event, e);
}

static int
delete_row(
    struct db *db, struct op *op, const struct delete_row *row, struct err *e)
{
	struct delete_op *o = (struct delete_op *)op;

	if (run_is_unfinished(row->state))
		return err_set(
		    e, ERR_CONFLICT, "the run has not ended: cancel it first");
	if (row->has_file)
		forget_add_log(&o->forget, &o->run, row->bytes);
	if (forget_run(db, &o->forget, o->tenant, row->id, e) != 0 ||
	    forget_blobs(db, &o->forget, o->tenant, e) != 0 ||
	    put_event(db, op, row, e) != 0)
		return e->code;
	return forget_count(db, &o->forget, o->tenant, 1, e);
}

static int
delete_run(struct db *db, struct op *op, struct err *e)
{
	struct delete_op *o = (struct delete_op *)op;
	struct delete_row row = {0};
	int rc = find_row(db, o, &row, e);

	forget_clear(&o->forget); /* of a first attempt */
	if (rc == 0)
		rc = delete_row(db, op, &row, e);
	free(row.identifier);
	return rc;
}

static void
delete_after(struct db *db, struct op *op)
{
	const struct delete_op *o = (const struct delete_op *)op;

	if (op->rc == 0)
		forget_files(o->store, db, &o->forget);
}

static void
delete_release(struct op *op)
{
	forget_clear(&((struct delete_op *)op)->forget);
	free(op);
}

void
store_run_delete(struct store *s, struct tenant_id tenant,
    const struct uuid *run, store_done_cb done, void *arg)
{
	struct delete_op *o = xcalloc(1, sizeof(*o));

	store_write_init(&o->w, delete_run, sizeof(*o), done, arg);
	o->w.op.after = delete_after;
	o->w.op.release = delete_release;
	o->store = s;
	o->tenant = tenant.n;
	o->run = *run;
	writer_submit(s->writer, &o->w.op);
}

/* owner.c - whose database it is, and what it knows of one sandbox */
#include "supervisor/store/store_int.h"

#include <stdio.h>

#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/reader.h"
#include "supervisor/store/writer.h"

/* ---- the instance */

int
store_instance(struct store *s, char out[STORE_INSTANCE_MAX + 1], struct err *e)
{
	AUTO(auto_free) char *text = NULL;
	struct db_call c;
	struct db *db;
	int rc = db_open(s->dir, DB_READER, &db, e);

	if (rc != 0)
		return rc;
	out[0] = '\0';
	db_call_init(&c, db, DB_INSTANCE_GET);
	rc = db_call_step(&c, e);
	if (rc == 1) {
		text = db_get_text(&c);
		db_call_end(&c);
		(void)snprintf(out, STORE_INSTANCE_MAX + 1, "%s", text);
	}
	db_close(db);
	return rc < 0 ? rc : 0;
}

struct instance_op {
	struct write_op w;
	char id[STORE_INSTANCE_MAX + 1];
};

static int
instance_put_run(struct db *db, struct op *op, struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, DB_INSTANCE_PUT);
	db_put_text(&c, ((struct instance_op *)op)->id);
	return db_call_run(&c, e);
}

static void
op_free(struct op *op)
{
	free(op);
}

void
store_instance_put(
    struct store *s, const char *id, store_done_cb done, void *arg)
{
	struct instance_op *op;

	if (store_refuse(s, done, arg))
		return;
	op = xcalloc(1, sizeof(*op));
	op->w.op.run = instance_put_run;
	op->w.op.deliver = store_write_deliver;
	op->w.op.release = op_free;
	op->w.op.bytes = sizeof(*op);
	op->w.done = done;
	op->w.arg = arg;
	(void)snprintf(op->id, sizeof(op->id), "%s", id);
	writer_submit(s->writer, &op->w.op);
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
	rc = db_call_step(&c, e);
	if (rc < 0)
		return rc;
	o->has_ended = rc == 1;
	if (rc == 1)
		db_call_end(&c);
	return 0;
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

	o->op.run = ended_run;
	o->op.deliver = ended_deliver;
	o->op.release = op_free;
	o->uuid = *uuid;
	o->done = done;
	o->arg = arg;
	reader_submit(s->reader, &o->op);
}

#include "supervisor/store/store_private.h"

#include "common/xmalloc.h"
#include "supervisor/store/db.h"
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
	db_call_init(&c, db, DB_SANDBOX_PUT);
	db_put_uint(&c, s->id);
	db_put_blob(&c, s->uuid.b, sizeof(s->uuid.b));
	db_put_uint(&c, s->tenant);
	db_put_text(&c, s->identifier);
	db_put_uint(&c, s->generation);
	db_put_text(&c, s->name);
	db_put_text(&c, s->container_id);
	db_put_text(&c, s->image);
	db_put_text(&c, s->state);
	db_put_text(&c, s->origin);
	db_put_uint(&c, s->memory_bytes);
	db_put_uint(&c, s->nano_cpus);
	db_put_uint(&c, s->pids);
	db_put_uint(&c, s->ttl_s);
	db_put_int(&c, s->created_ms);
	db_put_int(&c, s->expires_ms);
	db_put_int(&c, s->ended_ms);
	return db_call_run(&c, e);
}

void
sandbox_get(struct db_call *c, struct store_sandbox *s)
{
	memset(s, 0, sizeof(*s));
	s->id = db_get_uint(c);
	db_get_bytes(c, s->uuid.b, sizeof(s->uuid.b));
	s->tenant = db_get_uint(c);
	s->identifier = db_get_text(c);
	s->generation = db_get_u32(c);
	s->name = db_get_text(c);
	s->container_id = db_get_text(c);
	s->image = db_get_text(c);
	s->state = db_get_text(c);
	s->origin = db_get_text(c);
	s->memory_bytes = db_get_uint(c);
	s->nano_cpus = db_get_uint(c);
	s->pids = db_get_u32(c);
	s->ttl_s = db_get_u32(c);
	s->created_ms = db_get_int(c);
	s->expires_ms = db_get_int(c);
	s->ended_ms = db_get_int(c);
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
	op->w.op.bytes = sizeof(*op) + 256;
	op->w.done = done;
	op->w.arg = arg;
	store_sandbox_copy(&op->row, row);
	writer_submit(s->writer, &op->w.op);
}

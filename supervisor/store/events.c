#include "supervisor/store/store_private.h"

#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/writer.h"

struct event_op {
	struct write_op w;
	uint64_t tenant;
	int64_t at_ms;
	char *kind;
	char *subject;
	char *data;
};

static int
event_run(struct db *db, struct op *op, struct err *e)
{
	const struct event_op *v = (struct event_op *)op;
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_EVENT_INSERT);
	db_put_uint(&c, v->tenant);
	db_put_int(&c, v->at_ms);
	db_put_text(&c, v->kind);
	db_put_text(&c, v->subject);
	db_put_text(&c, v->data);
	rc = db_call_run(&c, e);
	if (rc != 0)
		return rc;
	db_call_init(&c, db, DB_EVENT_COUNT);
	db_put_uint(&c, v->tenant);
	return db_call_run(&c, e);
}

static void
event_release(struct op *op)
{
	struct event_op *v = (struct event_op *)op;

	free(v->kind);
	free(v->subject);
	free(v->data);
	free(v);
}

void
store_event(struct store *s, uint64_t tenant, const char *kind,
    const char *subject, const char *data_json, int64_t at_ms)
{
	struct event_op *v;

	if (store_refuse(s, NULL, NULL))
		return;
	v = xcalloc(1, sizeof(*v));
	v->w.op.run = event_run;
	v->w.op.deliver = store_write_deliver;
	v->w.op.release = event_release;
	v->w.op.bytes = sizeof(*v) + strlen(data_json) + 128;
	v->tenant = tenant;
	v->at_ms = at_ms;
	v->kind = xstrdup(kind);
	v->subject = xstrdup(subject);
	v->data = xstrdup(data_json);
	writer_submit(s->writer, &v->w.op);
}

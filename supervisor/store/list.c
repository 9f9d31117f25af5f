/*
 * list.c - the history of a tenant, newest first, a page at a time
 *
 * The cursor is a run's UUID: it is looked for below the tenant, as every id
 * that comes from a client.  A page scans at most STORE_LIST_SCAN_MAX rows, so
 * that a rare state costs no more than a common one; what is not full then
 * still says where to go on.
 */
#include "supervisor/store/store_int.h"

#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/reader.h"

struct store_listing {
	struct op op;
	store_run_list_cb done;
	void *arg;
	uint64_t tenant;
	char *identifier; /* NULL: of all */
	uint32_t states;
	bool has_after;
	struct uuid after;
	size_t limit;
	struct store_run_list list;
};

static int
find_start(struct db *db, const struct store_listing *l, int64_t *created_ms,
    uint64_t *id, struct err *e)
{
	struct db_call c;
	int rc;

	*created_ms = INT64_MAX;
	*id = INT64_MAX;
	if (!l->has_after)
		return 0;
	db_call_init(&c, db, DB_RUN_PLACE);
	db_put_blob(&c, l->after.b, sizeof(l->after.b));
	db_put_uint(&c, l->tenant);
	rc = db_call_step(&c, e);
	if (rc == 0)
		return err_set(e, ERR_NOTFOUND,
		    "cursor: it is not known any more; list from the "
		    "beginning");
	if (rc < 0)
		return rc;
	*created_ms = db_get_int(&c);
	*id = db_get_uint(&c);
	db_call_end(&c);
	return 0;
}

static int
get_line(struct db_call *c, struct store_run_line *r, struct err *e)
{
	const char *word;

	*r = (struct store_run_line){0};
	db_get_bytes(c, r->uuid.b, sizeof(r->uuid.b));
	word = db_get_word(c);
	if (run_state_parse(word, &r->state) != 0)
		return err_set(e, ERR_DB,
		    "database: \"%.20s\" is no state of a run", word);
	word = db_get_word(c);
	if (runlog_reason_parse(word, &r->end_reason) != 0)
		return err_set(e, ERR_DB,
		    "database: \"%.20s\" is no reason of a run", word);
	r->created_ms = db_get_int(c);
	r->started_ms = db_get_int(c);
	r->ended_ms = db_get_int(c);
	r->identifier = db_get_text(c);
	r->tool = db_get_text(c);
	r->error = db_get_text(c);
	return 0;
}

static void
clear_line(struct store_run_line *r)
{
	free(r->identifier);
	free(r->tool);
	free(r->error);
}

static int
take_line(struct store_listing *l, struct db_call *c, struct err *e)
{
	struct store_run_list *list = &l->list;
	struct store_run_line r;

	if (get_line(c, &r, e) != 0)
		return e->code;
	list->next = r.uuid;
	if ((l->states & (1u << r.state)) == 0) {
		clear_line(&r);
		return 0;
	}
	list->lines = array_grow(list->lines, list->n, sizeof(*list->lines));
	list->lines[list->n++] = r;
	return 0;
}

static int
list_run(struct db *db, struct op *op, struct err *e)
{
	struct store_listing *l = (struct store_listing *)op;
	size_t scanned = 0;
	int64_t created_ms;
	struct db_call c;
	uint64_t id;
	int rc;

	if (find_start(db, l, &created_ms, &id, e) != 0)
		return e->code;
	db_call_init(
	    &c, db, l->identifier == NULL ? DB_RUN_LIST : DB_RUN_LIST_NAMED);
	db_put_uint(&c, l->tenant);
	db_put_int(&c, created_ms);
	db_put_uint(&c, id);
	if (l->identifier != NULL)
		db_put_text(&c, l->identifier);
	while ((rc = db_call_step(&c, e)) == 1) {
		/* Seen, not taken: there is more. */
		l->list.has_more =
		    l->list.n == l->limit || scanned++ == STORE_LIST_SCAN_MAX;
		if (!l->list.has_more)
			rc = take_line(l, &c, e);
		if (l->list.has_more || rc < 0)
			break;
	}
	if (rc != 0)
		db_call_end(&c);
	return rc < 0 ? rc : 0;
}

static void
list_deliver(struct op *op)
{
	struct store_listing *l = (struct store_listing *)op;

	if (l->done == NULL)
		return;
	if (op->rc == 0)
		l->done(0, &l->list, NULL, l->arg);
	else
		l->done(op->rc, NULL, &op->why, l->arg);
}

static void
list_release(struct op *op)
{
	struct store_listing *l = (struct store_listing *)op;

	for (size_t i = 0; i < l->list.n; i++)
		clear_line(&l->list.lines[i]);
	free(l->list.lines);
	free(l->identifier);
	free(l);
}

void
store_listing_cancel(struct store_listing *l)
{
	l->done = NULL;
}

struct store_listing *
store_run_list(struct store *s, struct tenant_id tenant,
    const struct store_run_filter *f, store_run_list_cb done, void *arg)
{
	struct store_listing *l = xcalloc(1, sizeof(*l));

	l->op.run = list_run;
	l->op.deliver = list_deliver;
	l->op.release = list_release;
	l->done = done;
	l->arg = arg;
	l->tenant = tenant.n;
	l->states = f->states == 0 ? UINT32_MAX : f->states;
	l->limit = f->limit;
	if (f->identifier != NULL)
		l->identifier = xstrdup(f->identifier);
	l->has_after = f->after != NULL;
	if (f->after != NULL)
		l->after = *f->after;
	reader_submit(s->reader, &l->op);
	return l;
}

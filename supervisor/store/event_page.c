#include "supervisor/store/event_log.h"

#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/reader.h"
#include "supervisor/store/rows_sql_gen.h"
#include "supervisor/store/store_int.h"

struct store_paging {
	struct op op;
	store_events_cb done; /* NULL: canceled */
	void *arg;
	uint64_t tenant, after;
	struct store_events_filter filter; /* points into the next two */
	char *identifier;
	struct uuid run;
	size_t limit;
	size_t bytes;
	struct store_events_page page;
};

bool
store_event_fits(
    const struct store_events_filter *f, const struct store_event *row)
{
	return (f->kinds == 0 ||
		   (f->kinds & (UINT64_C(1) << row->kind)) != 0) &&
	    (f->identifier == NULL ||
		strcmp(f->identifier, row->identifier) == 0) &&
	    (f->run == NULL || uuid_is_equal(f->run, &row->run));
}

/* ---- on the reader's thread */

static int
get_end(struct db *db, enum db_query q, uint64_t tenant, uint64_t *out,
    struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, q);
	db_put_uint(&c, tenant);
	rc = db_call_step(&c, e);
	if (rc <= 0)
		return rc;
	*out = db_get_uint(&c); /* NULL is 0 */
	db_call_end(&c);
	return 0;
}

static int
get_after(struct db *db, struct store_paging *p, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_EVENT_KIND);
	db_put_uint(&c, p->tenant);
	db_put_uint(&c, p->after);
	rc = db_call_step(&c, e);
	if (rc <= 0)
		return rc;
	(void)db_get_word(&c);
	p->page.after_ms = p->page.scanned_ms = db_get_int(&c);
	db_call_end(&c);
	return 0;
}

/* 1: the page is full. */
static int
take_row(struct store_paging *p, struct db_call *c, struct err *e)
{
	struct store_events_page *page = &p->page;
	struct store_event row;
	bool is_full =
	    page->n == p->limit || p->bytes > STORE_EVENTS_PAGE_BYTES;

	page->has_more = is_full;
	if (is_full)
		return 1;
	if (rows_get_event(c, &row, e) != 0)
		return e->code;
	page->scanned = row.seq;
	page->scanned_ms = row.at_ms;
	if (!store_event_fits(&p->filter, &row)) {
		store_event_clear(&row);
		return 0;
	}
	p->bytes += strlen(row.data) + sizeof(row);
	page->rows = array_grow(page->rows, page->n, sizeof(*page->rows));
	page->rows[page->n++] = row;
	return 0;
}

static int
paging_run(struct db *db, struct op *op, struct err *e)
{
	struct store_paging *p = (struct store_paging *)op;
	size_t scanned = 0;
	struct db_call c;
	int rc;

	p->page.scanned = p->after;
	if (get_end(db, DB_EVENT_OLDEST, p->tenant, &p->page.oldest, e) != 0 ||
	    get_end(db, DB_EVENT_NEWEST, p->tenant, &p->page.newest, e) != 0 ||
	    get_after(db, p, e) != 0)
		return e->code;
	db_call_init(&c, db, DB_EVENTS_AFTER);
	db_put_uint(&c, p->tenant);
	db_put_uint(&c, p->after);
	while ((rc = db_call_step(&c, e)) == 1) {
		p->page.has_more = scanned++ == STORE_EVENTS_SCAN_MAX;
		rc = p->page.has_more ? 1 : take_row(p, &c, e);
		if (rc != 0)
			break;
	}
	if (rc != 0)
		db_call_end(&c);
	return rc < 0 ? rc : 0;
}

/* ---- on the loop's */

static void
paging_deliver(struct op *op)
{
	struct store_paging *p = (struct store_paging *)op;

	if (p->done == NULL)
		return;
	if (op->rc == 0)
		p->done(0, &p->page, NULL, p->arg);
	else
		p->done(op->rc, NULL, &op->why, p->arg);
}

static void
paging_release(struct op *op)
{
	struct store_paging *p = (struct store_paging *)op;

	for (size_t i = 0; i < p->page.n; i++)
		store_event_clear(&p->page.rows[i]);
	free(p->page.rows);
	free(p->identifier);
	free(p);
}

void
store_paging_cancel(struct store_paging *p)
{
	p->done = NULL;
}

struct store_paging *
store_events_read(struct store *s, uint64_t tenant, uint64_t after,
    const struct store_events_filter *f, size_t limit, store_events_cb done,
    void *arg)
{
	struct store_paging *p = xcalloc(1, sizeof(*p));

	p->op.run = paging_run;
	p->op.deliver = paging_deliver;
	p->op.release = paging_release;
	p->done = done;
	p->arg = arg;
	p->tenant = tenant;
	p->after = after > INT64_MAX ? INT64_MAX : after;
	p->limit = limit;
	if (f != NULL) {
		p->filter.kinds = f->kinds;
		if (f->identifier != NULL)
			p->filter.identifier = p->identifier =
			    xstrdup(f->identifier);
		if (f->run != NULL) {
			p->run = *f->run;
			p->filter.run = &p->run;
		}
	}
	reader_submit(s->reader, &p->op);
	return p;
}

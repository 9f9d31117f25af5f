/*
 * audit_check.c - the audit is read: as a list, newest first, and along its
 * chain, oldest first, a bounded piece at a time
 */
#include "supervisor/store/store_int.h"

#include <stdio.h>

#include "supervisor/store/audit_ends.h"
#include "supervisor/store/audit_walk.h"
#include "supervisor/store/db.h"
#include "supervisor/store/reader.h"
#include "supervisor/store/rows_sql_gen.h"

/* ---- along the chain */

struct check_op {
	struct op op;
	struct audit_walk walk;
	store_audit_check_cb done;
	void *arg;
};

static int
check_run(struct db *db, struct op *op, struct err *e)
{
	return audit_walk_piece(db, &((struct check_op *)op)->walk, e);
}

static void
check_deliver(struct op *op)
{
	const struct check_op *k = (const struct check_op *)op;

	k->done(op->rc, op->rc == 0 ? &k->walk.found : NULL,
	    op->rc == 0 ? NULL : &op->why, k->arg);
}

static void
check_release(struct op *op)
{
	free(op);
}

void
store_audit_check(struct store *s, const struct store_audit_mark *after,
    const uint8_t *known, store_audit_check_cb done, void *arg)
{
	struct check_op *k = xcalloc(1, sizeof(*k));

	k->op.run = check_run;
	k->op.deliver = check_deliver;
	k->op.release = check_release;
	audit_walk_init(&k->walk, after, known);
	k->done = done;
	k->arg = arg;
	reader_submit(s->reader, &k->op);
}

/* ---- as a list */

struct page_op {
	struct op op;
	struct store_audit_filter filter; /* its texts are copies */
	char *tenant, *what;
	struct store_audit_page page;
	store_audit_page_cb done;
	void *arg;
};

static int
take(struct page_op *p, struct db_call *c, struct err *e)
{
	struct store_audit_page *page = &p->page;

	page->rows = array_grow(page->rows, page->n, sizeof(*page->rows));
	if (rows_get_audit(c, &page->rows[page->n], e) != 0)
		return e->code;
	page->n++;
	return 0;
}

static int
page_rows(struct db *db, struct page_op *p, uint64_t before, uint64_t from,
    struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_AUDIT_LIST);
	db_put_uint(&c, before);
	db_put_uint(&c, from);
	db_put_int(&c, p->filter.since_ms);
	db_put_text(&c, p->tenant);
	db_put_text(&c, p->what);
	p->page.next = from;
	while ((rc = db_call_step(&c, e)) == 1) {
		if (p->page.n == p->filter.limit) {
			p->page.next = p->page.rows[p->page.n - 1].seq;
			break;
		}
		rc = take(p, &c, e);
		if (rc != 0)
			break;
	}
	if (rc != 0)
		db_call_end(&c);
	return rc < 0 ? rc : 0;
}

static int
page_run(struct db *db, struct op *op, struct err *e)
{
	struct page_op *p = (struct page_op *)op;
	uint64_t before = p->filter.before, from;
	struct audit_ends ends;
	int rc;

	if (audit_ends_get(db, &ends, e) != 0)
		return e->code;
	if (before == 0 || before > ends.head.seq)
		before = ends.head.seq + 1;
	from = before > STORE_LIST_SCAN_MAX ? before - STORE_LIST_SCAN_MAX : 0;
	rc = page_rows(db, p, before, from, e);
	if (p->page.next <= ends.base.seq + 1)
		p->page.next = 0;
	return rc;
}

static void
page_deliver(struct op *op)
{
	const struct page_op *p = (const struct page_op *)op;

	p->done(op->rc, op->rc == 0 ? &p->page : NULL,
	    op->rc == 0 ? NULL : &op->why, p->arg);
}

static void
page_release(struct op *op)
{
	struct page_op *p = (struct page_op *)op;

	for (size_t i = 0; i < p->page.n; i++)
		store_audit_clear(&p->page.rows[i]);
	free(p->page.rows);
	free(p->tenant);
	free(p->what);
	free(p);
}

void
store_audit_list(struct store *s, const struct store_audit_filter *f,
    store_audit_page_cb done, void *arg)
{
	struct page_op *p = xcalloc(1, sizeof(*p));

	p->op.run = page_run;
	p->op.deliver = page_deliver;
	p->op.release = page_release;
	p->filter = *f;
	p->tenant = xstrdup(f->tenant == NULL ? "" : f->tenant);
	p->what = xstrdup(f->what == NULL ? "" : f->what);
	p->done = done;
	p->arg = arg;
	reader_submit(s->reader, &p->op);
}

/*
 * audit_check.c - the audit is read: as a list, newest first, and along its
 * chain, oldest first, a bounded piece at a time
 *
 * To check it, columns are taken as bytes: a text may have been given a zero
 * byte and more behind it.
 */
#include "supervisor/store/store_int.h"

#include <stdio.h>

#include "supervisor/store/audit_chain.h"
#include "supervisor/store/audit_ends.h"
#include "supervisor/store/db.h"
#include "supervisor/store/reader.h"
#include "supervisor/store/rows_sql_gen.h"

/* ---- along the chain */

struct check_op {
	struct op op;
	bool is_first;
	struct store_audit_mark at; /* checked so far */
	struct store_audit_check found;
	store_audit_check_cb done;
	void *arg;
};

/* What is wrong is found, not a failure of the work. */
static int
bad(struct check_op *k, uint64_t seq, const char *what)
{
	k->found.is_bad = true;
	k->found.bad_seq = seq;
	k->found.what = what;
	return 1;
}

static void
content_get(struct db_call *c, struct audit_content *out, uint8_t hash[32])
{
	*out = (struct audit_content){.seq = db_get_uint(c)};
	out->at_ms = db_get_int(c);
	out->times = db_get_uint(c);
	for (size_t i = 0; i < AUDIT_CHAIN_TEXTS; i++)
		out->texts[i].p = db_get_blob(c, &out->texts[i].n);
	db_get_bytes(c, hash, 32);
}

static void
content_clear(struct audit_content *c)
{
	for (size_t i = 0; i < AUDIT_CHAIN_TEXTS; i++)
		free((void *)(uintptr_t)c->texts[i].p);
}

static int
check_row(struct check_op *k, struct db_call *c, const struct audit_ends *ends)
{
	struct audit_content row;
	uint8_t has[32], want[32];
	int rc = 0;

	content_get(c, &row, has);
	audit_chain_next(k->at.hash, &row, want);
	if (row.seq > ends->head.seq)
		rc = k->at.seq < ends->head.seq ?
		    bad(k, k->at.seq + 1, "the row is missing") :
		    bad(k, row.seq, "a row behind the newest");
	else if (row.seq != k->at.seq + 1)
		rc = bad(k, k->at.seq + 1, "the row is missing");
	else if (memcmp(has, want, sizeof(want)) != 0)
		rc = bad(k, row.seq, "the row is not as it was written");
	content_clear(&row);
	if (rc != 0)
		return rc;
	k->at.seq = row.seq;
	memcpy(k->at.hash, has, sizeof(has));
	k->found.rows++;
	return 0;
}

/* Nothing follows. */
static int
check_end(struct check_op *k, const struct audit_ends *ends)
{
	k->found.is_over = true;
	if (k->at.seq < ends->head.seq)
		return bad(k, k->at.seq + 1, "the row is missing");
	if (k->at.seq > ends->head.seq)
		return bad(k, ends->head.seq + 1, "a row behind the newest");
	if (memcmp(k->at.hash, ends->head.hash, sizeof(k->at.hash)) != 0)
		return bad(k, k->at.seq,
		    "the row is not the one that was written last");
	return 0;
}

/* Begins behind what was trimmed, where there must be nothing. */
static int
check_begin(struct db *db, struct check_op *k, const struct audit_ends *ends,
    struct err *e)
{
	struct db_call c;
	int64_t first;
	int rc;

	k->at = ends->base;
	db_call_init(&c, db, DB_AUDIT_FIRST);
	rc = db_call_step(&c, e);
	if (rc <= 0)
		return rc;
	/* NULL is 0, and there is none. */
	first = db_get_int(&c);
	db_call_end(&c);
	if (first < 0 || (first > 0 && (uint64_t)first <= ends->base.seq))
		return bad(k, (uint64_t)first, "a row that was trimmed");
	return 0;
}

static int
check_rows(struct db *db, struct check_op *k, const struct audit_ends *ends,
    struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_AUDIT_AFTER);
	db_put_uint(&c, k->at.seq);
	db_put_uint(&c, STORE_AUDIT_PIECE);
	while ((rc = db_call_step(&c, e)) == 1) {
		rc = check_row(k, &c, ends);
		if (rc != 0)
			break;
	}
	if (rc > 0)
		db_call_end(&c);
	return rc;
}

static int
check_run(struct db *db, struct op *op, struct err *e)
{
	struct check_op *k = (struct check_op *)op;
	struct audit_ends ends = {0};
	int rc = audit_ends_get(db, &ends, e);

	if (rc == ERR_NOTFOUND) {
		(void)bad(k, 0, "the row that says where it ends is missing");
		return 0;
	}
	if (rc != 0)
		return rc;
	k->found.base = ends.base;
	k->found.head = ends.head;
	/* Trimmed while it was checked: it goes on behind that. */
	if (k->is_first || k->at.seq < ends.base.seq)
		rc = check_begin(db, k, &ends, e);
	if (rc == 0)
		rc = check_rows(db, k, &ends, e);
	if (rc == 0 && k->found.rows < STORE_AUDIT_PIECE)
		rc = check_end(k, &ends);
	k->found.at = k->at;
	return rc < 0 ? rc : 0;
}

static void
check_deliver(struct op *op)
{
	const struct check_op *k = (const struct check_op *)op;

	k->done(op->rc, op->rc == 0 ? &k->found : NULL,
	    op->rc == 0 ? NULL : &op->why, k->arg);
}

static void
check_release(struct op *op)
{
	free(op);
}

void
store_audit_check(struct store *s, const struct store_audit_mark *after,
    store_audit_check_cb done, void *arg)
{
	struct check_op *k = xcalloc(1, sizeof(*k));

	k->op.run = check_run;
	k->op.deliver = check_deliver;
	k->op.release = check_release;
	k->is_first = after == NULL;
	if (after != NULL)
		k->at = *after;
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

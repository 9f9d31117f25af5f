/*
 * audit.c - rows of the audit are written
 *
 * Rows that come one after another are one op, which goes with the next write
 * (writer.h, rider): the row of a run's start costs no commit of its own, and
 * the two ends of the chain are read and written once for all of them.  The
 * ends are read from the database in each transaction, so a rollback needs no
 * undo here.
 *
 * A row that nobody waits for is tried again when it could not be written,
 * while fewer than BEHIND_MAX are on their way.
 */
#include "supervisor/store/store_int.h"

#include <stdio.h>

#include "common/hex.h"
#include "common/log.h"
#include "supervisor/store/audit_walk.h"
#include "supervisor/store/db.h"
#include "supervisor/store/rows_sql_gen.h"
#include "supervisor/store/writer.h"

#define OP_ROWS_MAX 512  /* more go in the next op */
#define BEHIND_MAX 10000 /* rows that could not be written yet */
#define TRIM_STEP 256    /* so many beyond the limit go at once */
#define TRIM_MAX 1024
#define MARK_EVERY 100

struct audit_entry {
	struct store_audit row;
	store_done_cb done; /* NULL: nobody waits */
	void *arg;
};

struct audit_op {
	struct op op;
	struct store *store;
	uint64_t keep;
	struct audit_entry *entries;
	size_t n;
	struct store_audit_mark first, head; /* as written */
};

/* ---- on the writer's thread */

static struct span
span_of(const char *text)
{
	return text == NULL ?
	    (struct span){(const uint8_t *)"", 0} :
	    (struct span){(const uint8_t *)text, strlen(text)};
}

static void
set_hash(struct store_audit *r, const uint8_t before[32])
{
	const struct audit_content c = {.seq = r->seq,
	    .at_ms = r->at_ms,
	    .times = r->times,
	    .texts = {span_of(r->what), span_of(r->actor_tenant),
		span_of(r->actor), span_of(r->origin), span_of(r->request_id),
		span_of(r->tenant), span_of(r->subject), span_of(r->detail),
		{r->digest, r->digest_len}}};

	audit_chain_next(before, &c, r->hash);
}

static int
insert(struct db *db, struct store_audit *r, struct audit_ends *ends,
    struct err *e)
{
	struct db_call c;

	r->seq = ++ends->head.seq;
	set_hash(r, ends->head.hash);
	memcpy(ends->head.hash, r->hash, sizeof(r->hash));
	db_call_init(&c, db, DB_AUDIT_INSERT);
	rows_put_audit(&c, r);
	return db_call_run(&c, e);
}

/* The oldest go; the hash of the last of them stays, so that the rest can be
 * followed from there. */
static int
trim(struct db *db, uint64_t keep, struct audit_ends *ends, struct err *e)
{
	uint64_t kept = ends->head.seq - ends->base.seq, n = kept - keep;
	uint64_t to = ends->base.seq + (n > TRIM_MAX ? TRIM_MAX : n);
	struct db_call c;
	int rc;

	if (kept < keep + TRIM_STEP)
		return 0;
	db_call_init(&c, db, DB_AUDIT_HASH);
	db_put_uint(&c, to);
	rc = db_call_step(&c, e);
	if (rc <= 0)
		return rc; /* somebody took it: that is to be found */
	ends->base.seq = to;
	db_get_bytes(&c, ends->base.hash, sizeof(ends->base.hash));
	db_call_end(&c);
	return db_exec_with(db, DB_AUDIT_TRIM, to, e);
}

static int
audit_run(struct db *db, struct op *op, struct err *e)
{
	struct audit_op *a = (struct audit_op *)op;
	struct audit_ends ends;

	if (audit_ends_get(db, &ends, e) != 0)
		return e->code;
	a->first = ends.head;
	for (size_t i = 0; i < a->n; i++)
		if (insert(db, &a->entries[i].row, &ends, e) != 0)
			return e->code;
	a->head = ends.head;
	if (trim(db, a->keep, &ends, e) != 0)
		return e->code;
	return audit_ends_put(db, &ends, e);
}

/* ---- on the loop's */

/* Where the log has it, too, whoever cuts the table's end is found out. */
static void
mark(struct store *s, const struct audit_op *a)
{
	char seq[24], hash[HEX_BYTES(32)];

	if (s->audit_is_marked &&
	    a->first.seq / MARK_EVERY == a->head.seq / MARK_EVERY)
		return;
	s->audit_is_marked = true;
	(void)snprintf(
	    seq, sizeof(seq), "%llu", (unsigned long long)a->head.seq);
	hex_encode(a->head.hash, sizeof(a->head.hash), hash);
	log_event(LOG_INFO, "audit head",
	    (const struct log_field[]){{"seq", seq}, {"hash", hash}}, 2);
}

static void put(struct store *s, struct audit_entry *from);

/* What somebody waits for is that one's to repeat. */
static void
try_again(struct audit_op *a)
{
	static struct log_limit limit;
	struct store *s = a->store;
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++) {
		if (a->entries[i].done != NULL)
			continue;
		if (s->audit_behind < BEHIND_MAX && a->op.rc != ERR_DAMAGED)
			put(s, &a->entries[i]);
		else
			n++;
	}
	log_warn_limited(&limit, "audit: not written: %s%s", a->op.why.msg,
	    n > 0 ? "; acts are lost" : "");
}

static void
audit_deliver(struct op *op)
{
	struct audit_op *a = (struct audit_op *)op;

	a->store->audit_behind -= a->n;
	if (op->rc == 0)
		mark(a->store, a);
	else
		try_again(a);
	for (size_t i = 0; i < a->n; i++)
		if (a->entries[i].done != NULL)
			a->entries[i].done(
			    op->rc, op_why(op), a->entries[i].arg);
}

static void
audit_release(struct op *op)
{
	struct audit_op *a = (struct audit_op *)op;

	for (size_t i = 0; i < a->n; i++)
		store_audit_clear(&a->entries[i].row);
	free(a->entries);
	free(a);
}

static struct audit_op *
new_op(struct store *s)
{
	struct audit_op *a = xcalloc(1, sizeof(*a));

	a->op.run = audit_run;
	a->op.deliver = audit_deliver;
	a->op.release = audit_release;
	a->op.again = true;
	a->op.bytes = sizeof(*a);
	a->store = s;
	a->keep = s->audit_keep;
	return a;
}

/* The row is taken. */
static void
put(struct store *s, struct audit_entry *from)
{
	struct audit_op *a =
	    (struct audit_op *)writer_rider(s->writer, WRITER_SEAT_AUDIT);

	if (a == NULL) {
		a = new_op(s);
		writer_ride(s->writer, WRITER_SEAT_AUDIT, &a->op);
	}
	a->entries = array_grow(a->entries, a->n, sizeof(*a->entries));
	a->entries[a->n++] = *from;
	a->op.bytes += sizeof(*from) + 256;
	from->row = (struct store_audit){0};
	s->audit_behind++;
	if (from->done != NULL || a->n == OP_ROWS_MAX)
		writer_send_riders(s->writer);
}

void
store_audit_put(struct store *s, const struct store_audit *row,
    store_done_cb done, void *arg)
{
	struct audit_entry entry = {.done = done, .arg = arg};

	store_audit_copy(&entry.row, row);
	put(s, &entry);
}

void
store_audit_keep(struct store *s, uint64_t rows)
{
	s->audit_keep = rows;
}

/* ---- reading: along the chain, oldest first, a bounded piece at a time */

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

	k->done(
	    op->rc, op->rc == 0 ? &k->walk.found : NULL, op_why(op), k->arg);
}

void
store_audit_check(struct store *s, const struct store_audit_mark *after,
    const uint8_t *known, store_audit_check_cb done, void *arg)
{
	struct check_op *k = xcalloc(1, sizeof(*k));

	audit_walk_init(&k->walk, after, known);
	k->done = done;
	k->arg = arg;
	store_read_submit(s, &k->op, check_run, check_deliver, NULL);
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

	p->done(op->rc, op->rc == 0 ? &p->page : NULL, op_why(op), p->arg);
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

	p->filter = *f;
	p->tenant = xstrdup(f->tenant == NULL ? "" : f->tenant);
	p->what = xstrdup(f->what == NULL ? "" : f->what);
	p->done = done;
	p->arg = arg;
	store_read_submit(s, &p->op, page_run, page_deliver, page_release);
}

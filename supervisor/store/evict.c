/*
 * evict.c - ended runs give up what they have in files
 *
 * A step is one op: while a bound is exceeded, or not enough was freed, the
 * oldest run of the tenant that is over, or has most, is marked, and its
 * artifacts refer to their blobs no more.  When that is on disk the files go;
 * then the next step is submitted, behind what others submitted meanwhile.
 *
 * When there is still too little room on the database's disk, or rows have more
 * than their bound, runs are forgotten in the same steps.  The free pages that
 * they leave count as room, before and after the writer gives them back to the
 * disk (vacuum.h).
 */
#include "supervisor/store/store_int.h"

#include "common/clock.h"
#include "common/quota.h"
#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/forget.h"
#include "supervisor/store/tally.h"
#include "supervisor/store/vacuum.h"
#include "supervisor/store/writer.h"

/* In one step: both bound the time that others wait. */
#define EVICT_RUNS_MAX 100
#define EVICT_ARTIFACTS_MAX 1000
#define EVICT_ROW_BYTES_MAX (4u << 20)

/* What is wanted: a disk may hold one of them alone. */
enum evict_kind {
	EVICT_LOGS = 1,
	EVICT_BLOBS = 2
};

/* Where a tenant was found: of each list those at its head that have nothing
 * to give, whatever their counters say, are passed over. */
enum evict_list {
	LIST_OVER,
	LIST_QUOTAS, /* and the kind */
	LIST_MOST = LIST_QUOTAS + EVICT_BLOBS,
	LIST_COUNT = LIST_MOST + (EVICT_LOGS | EVICT_BLOBS) + 1
};

struct evict_op {
	struct op op;
	store_evicted_cb done;
	void *arg;
	struct store *store;
	struct store_evict_wish wish;
	struct store_usage usage; /* behind this step */
	struct store_evicted sum; /* of all steps */
	size_t nruns;             /* of this one */
	uint64_t nforgotten;
	uint64_t rows_passed; /* of tenants, as below */
	uint64_t file_bytes;  /* of the database, before the first step */
	struct forget forget;
	unsigned int kinds; /* wanted now: enum evict_kind, OR-ed */
	unsigned int list;  /* whose turn it is was found in this one */
	uint64_t passed[LIST_COUNT];
	unsigned int none; /* kinds of which there is nothing left */
	bool more;
};

/* ---- who is next */

static int
read_usage(struct db *db, struct store_usage *u, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_EVICT_USAGE);
	rc = db_call_step(&c, e);
	if (rc != 1)
		return rc < 0 ? rc : err_set(e, ERR_DB, "database: no tenant");
	store_usage_get(&c, u);
	db_call_end(&c);
	return 0;
}

static int64_t
limit_of(uint64_t most)
{
	return most == 0 || most > INT64_MAX ? INT64_MAX : (int64_t)most;
}

/* 1: it is *tenant; 0: none. */
static int
read_tenant(struct db_call *c, struct evict_op *o, unsigned int list,
    uint64_t *tenant, struct err *e)
{
	int rc;

	o->list = list;
	db_put_uint(c, o->passed[list]);
	rc = db_call_step(c, e);
	if (rc != 1)
		return rc;
	*tenant = db_get_uint(c);
	db_call_end(c);
	return 1;
}

static int
tenant_over(struct db *db, struct evict_op *o, uint64_t *tenant, struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, DB_EVICT_TENANT_OVER);
	db_put_int(&c, limit_of(o->wish.tenant.bytes));
	db_put_int(&c, limit_of(o->wish.tenant.files));
	o->kinds = EVICT_LOGS | EVICT_BLOBS;
	return read_tenant(&c, o, LIST_OVER, tenant, e);
}

/* Over a quota of its own; where none is set it has no limit. */
static int
quota_over(struct db *db, struct evict_op *o, uint64_t *tenant, struct err *e)
{
	static const struct {
		enum evict_kind kind;
		enum quota_key key;
	} of[] = {
	    {EVICT_LOGS, QUOTA_SPOOL_MB}, {EVICT_BLOBS, QUOTA_ARTIFACT_MB}};
	struct db_call c;
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(of) && rc == 0; i++) {
		o->kinds = of[i].kind;
		db_call_init(&c, db, DB_EVICT_QUOTA_OVER);
		db_put_text(&c, quota_rule(of[i].key)->key);
		rc = read_tenant(&c, o, LIST_QUOTAS + of[i].kind, tenant, e);
	}
	return rc;
}

static bool
is_short(const struct store_quota *want, uint64_t bytes, uint64_t files)
{
	return bytes < want->bytes || files < want->files;
}

/* enum evict_kind, OR-ed. */
static unsigned int
wanted(const struct evict_op *o)
{
	const struct store_usage *u = &o->usage;
	const struct store_evict_wish *w = &o->wish;
	uint64_t freed_bytes = o->sum.bytes + o->forget.bytes;
	uint64_t freed_files =
	    o->sum.files + o->forget.nlogs + o->forget.nblobs;
	uint64_t blob_bytes = o->sum.blobs.bytes + o->forget.blob_bytes;
	uint64_t blob_files = o->sum.blobs.files + o->forget.nblobs;
	int64_t bytes = (int64_t)(u->log_bytes + u->blob_bytes);
	int64_t files = (int64_t)(u->log_files + u->blob_files);

	if (bytes > limit_of(w->all.bytes) || files > limit_of(w->all.files) ||
	    is_short(&w->free, freed_bytes, freed_files))
		return EVICT_LOGS | EVICT_BLOBS;
	if (is_short(&w->free_logs, freed_bytes - blob_bytes,
		freed_files - blob_files) &&
	    (o->none & EVICT_LOGS) == 0)
		return EVICT_LOGS;
	if (is_short(&w->free_blobs, blob_bytes, blob_files) &&
	    (o->none & EVICT_BLOBS) == 0)
		return EVICT_BLOBS;
	return 0;
}

static void
put_kinds(struct db_call *c, unsigned int kinds)
{
	db_put_int(c, (kinds & EVICT_LOGS) != 0);
	db_put_int(c, (kinds & EVICT_BLOBS) != 0);
}

/* 1: that tenant gives something up; 0: nobody need, or can. */
static int
next_tenant(struct db *db, struct evict_op *o, uint64_t *tenant, struct err *e)
{
	struct db_call c;
	int rc = tenant_over(db, o, tenant, e);

	if (rc == 0)
		rc = quota_over(db, o, tenant, e);
	if (rc != 0)
		return rc;
	rc = read_usage(db, &o->usage, e);
	if (rc != 0)
		return rc;
	while ((o->kinds = wanted(o)) != 0) {
		db_call_init(&c, db, DB_EVICT_TENANT_MOST);
		put_kinds(&c, o->kinds);
		rc = read_tenant(&c, o, LIST_MOST + o->kinds, tenant, e);
		if (rc != 0 || o->kinds == (EVICT_LOGS | EVICT_BLOBS))
			return rc;
		o->none |= o->kinds; /* the other may be wanted */
	}
	return 0;
}

/* ---- a step */

/* 1: one was evicted; 0: that tenant has none. */
static int
evict_oldest(struct db *db, struct evict_op *o, uint64_t tenant, struct err *e)
{
	struct db_call c;
	struct uuid uuid = {{0}};
	uint64_t run;
	int rc;

	db_call_init(&c, db, DB_EVICT_OLDEST);
	db_put_uint(&c, tenant);
	put_kinds(&c, o->kinds);
	rc = db_call_step(&c, e);
	if (rc != 1)
		return rc;
	run = db_get_uint(&c);
	db_get_bytes(&c, uuid.b, sizeof(uuid.b));
	if (db_get_int(&c) != 0)
		forget_add_log(&o->forget, &uuid, db_get_uint(&c));
	db_call_end(&c);
	if (forget_artifacts(db, &o->forget, tenant, run, e) != 0 ||
	    forget_mark(db, run, e) != 0 ||
	    forget_blobs(db, &o->forget, tenant, e) != 0)
		return e->code;
	o->nruns++;
	return 1;
}

/* ---- rows */

/* Freed by files, on the database's disk. */
static uint64_t
freed_beside(const struct evict_op *o)
{
	const uint64_t all = o->sum.bytes + o->forget.bytes;
	const uint64_t blobs = o->sum.blobs.bytes + o->forget.blob_bytes;
	const bool is_apart = o->wish.free.bytes == 0;

	return is_apart ? all - blobs : all;
}

/* 1: rows go. */
static int
rows_are_wanted(struct db *db, struct evict_op *o, struct err *e)
{
	const struct store_evict_wish *w = &o->wish;
	uint64_t given_back, want = w->free_rows;
	int rc = read_usage(db, &o->usage, e);

	if (rc != 0)
		return rc;
	if ((int64_t)o->usage.row_bytes > limit_of(w->rows))
		return 1;
	if (w->free_rows == 0 || o->usage.row_bytes <= w->least_rows)
		return 0;
	/* Once some go, then not a few again a moment later. */
	if (o->nforgotten + o->sum.forgotten > 0)
		want += w->least_rows / 4;
	rc = vacuum_given_back(db, o->file_bytes, &given_back, e);
	return rc != 0 ? rc : freed_beside(o) + given_back < want;
}

/* 1: that tenant has something to forget. */
static int
next_rows_tenant(
    struct db *db, struct evict_op *o, uint64_t *tenant, struct err *e)
{
	uint64_t found;
	int rc = rows_are_wanted(db, o, e);

	if (rc != 1)
		return rc;
	if (db_ask_with(db, DB_EVICT_ROWS_MOST, o->rows_passed, &found, e) != 0)
		return e->code;
	if (found != 0)
		*tenant = found;
	return found != 0;
}

static int
forget_one(struct db *db, struct evict_op *o, uint64_t tenant, uint64_t run,
    struct err *e)
{
	const uint64_t before = o->forget.row_bytes;
	struct forget one = {0};

	if (forget_run(db, &o->forget, tenant, run, e) != 0)
		return e->code;
	one.row_bytes = o->forget.row_bytes - before;
	if (forget_count(db, &one, tenant, 1, e) != 0 ||
	    forget_blobs(db, &o->forget, tenant, e) != 0)
		return e->code;
	o->nforgotten++;
	return 0;
}

/* 1: the oldest of it is forgotten; 0: it has none. */
static int
forget_oldest(struct db *db, struct evict_op *o, uint64_t tenant, struct err *e)
{
	struct uuid uuid = {{0}};
	struct db_call c;
	bool has_log;
	uint64_t run;
	int rc;

	db_call_init(&c, db, DB_TRIM_RUNS);
	db_put_uint(&c, tenant);
	db_put_uint(&c, 1);
	rc = db_call_step(&c, e);
	if (rc != 1)
		return rc;
	run = db_get_uint(&c);
	db_get_bytes(&c, uuid.b, sizeof(uuid.b));
	has_log = db_get_int(&c) != 0;
	db_call_end(&c);
	if (has_log)
		forget_add_log(&o->forget, &uuid, 0);
	rc = forget_one(db, o, tenant, run, e);
	return rc == 0 ? 1 : rc;
}

static bool
is_step_full(const struct evict_op *o)
{
	return o->nruns + o->nforgotten >= EVICT_RUNS_MAX ||
	    o->forget.nartifacts >= EVICT_ARTIFACTS_MAX ||
	    o->forget.row_bytes >= EVICT_ROW_BYTES_MAX;
}

static int
evict_rows(struct db *db, struct evict_op *o, struct err *e)
{
	uint64_t tenant = 0;
	int rc;

	while ((rc = next_rows_tenant(db, o, &tenant, e)) == 1) {
		if (is_step_full(o)) {
			o->more = true;
			rc = 0;
			break;
		}
		rc = forget_oldest(db, o, tenant, e);
		if (rc < 0)
			break;
		if (rc == 0)
			o->rows_passed++;
	}
	/* Those of another tenant of this step go with its next. */
	if (rc == 0 && o->nforgotten > 0)
		rc = forget_sandboxes(db, tenant, e);
	return rc;
}

static int
evict_run(struct db *db, struct op *op, struct err *e)
{
	struct evict_op *o = (struct evict_op *)op;
	uint64_t tenant = 0;
	int rc = tally_flush(db, e);

	if (rc != 0)
		return rc;
	if (o->file_bytes == 0)
		o->file_bytes = vacuum_file_bytes(db);
	while ((rc = next_tenant(db, o, &tenant, e)) == 1) {
		if (is_step_full(o)) {
			o->more = true;
			break;
		}
		rc = evict_oldest(db, o, tenant, e);
		if (rc < 0)
			break;
		if (rc == 0)
			o->passed[o->list]++;
	}
	if (rc == 0)
		rc = evict_rows(db, o, e);
	return rc < 0 ? rc : read_usage(db, &o->usage, e);
}

static void
evict_after(struct db *db, struct op *op)
{
	const struct evict_op *o = (const struct evict_op *)op;

	if (op->rc != 0)
		return;
	forget_files(o->store, db, &o->forget);
	if (o->wish.free_rows > 0)
		writer_shrink(o->store->writer);
}

/* ---- on the loop's thread */

static void
evict_release(struct op *op)
{
	forget_clear(&((struct evict_op *)op)->forget);
	free(op);
}

static void evict_deliver(struct op *op);

static void
evict_submit(const struct evict_op *from)
{
	struct evict_op *o = xcalloc(1, sizeof(*o));

	o->op.run = evict_run;
	o->op.after = evict_after;
	o->op.deliver = evict_deliver;
	o->op.release = evict_release;
	o->op.bytes = sizeof(*o);
	o->done = from->done;
	o->arg = from->arg;
	o->store = from->store;
	o->wish = from->wish;
	o->sum = from->sum;
	o->none = from->none;
	o->file_bytes = from->file_bytes;
	writer_submit(o->store->writer, &o->op);
}

static void
evict_deliver(struct op *op)
{
	struct evict_op *o = (struct evict_op *)op;

	if (op->rc == 0) {
		o->sum.runs += o->nruns;
		o->sum.files += o->forget.nlogs + o->forget.nblobs;
		o->sum.bytes += o->forget.bytes;
		o->sum.blobs.files += o->forget.nblobs;
		o->sum.blobs.bytes += o->forget.blob_bytes;
		o->sum.forgotten += o->nforgotten;
		o->sum.row_bytes += o->forget.row_bytes;
		o->sum.usage = o->usage;
		if (o->more) {
			evict_submit(o);
			return;
		}
	}
	o->done(op->rc, &o->sum, op_why(op), o->arg);
}

void
store_evict(struct store *s, const struct store_evict_wish *wish,
    store_evicted_cb done, void *arg)
{
	const struct evict_op first = {
	    .done = done, .arg = arg, .store = s, .wish = *wish};

	evict_submit(&first);
}

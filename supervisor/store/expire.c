/*
 * expire.c - what is too old goes: rows of ended runs, or only their files
 *
 * Steps as in trim.c and evict.c: first runs that ended before a time are
 * forgotten, then those that ended before another give up their files.
 *
 * Both are found without an index of their own: a run is created before it
 * ends, and numbers are given out in the order of creation, so what is too old
 * stands at the beginning of run_latest and of kept_here, and looking ends
 * with the first that was created too late.
 */
#include "supervisor/store/store_int.h"

#include "common/clock.h"
#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/event_log.h"
#include "supervisor/store/event_put.h"
#include "supervisor/store/forget.h"
#include "supervisor/store/tally.h"
#include "supervisor/store/writer.h"

/* In one step: both bound the time that others wait. */
#define EXPIRE_RUNS_MAX 50
#define EXPIRE_ARTIFACTS_MAX 200
/* Of these at most one event tells: one for each step would have a tenant's
 * other events trimmed. */
#define EXPIRE_TOLD_MAX 10000

struct expire_run {
	uint64_t id;
	struct uuid uuid;
	bool has_log; /* in a file */
	uint64_t log_bytes;
};

struct expire_op {
	struct op op;
	store_expired_cb done;
	void *arg;
	struct store *store;
	struct store_expiry wish;
	struct store_expired sum;  /* of the steps before */
	struct store_expired told; /* what events said of these */
	uint64_t nruns, nfiles;    /* of this one */
	bool is_told;              /* with this one */
	struct forget forget;
	bool more;
};

/* ---- runs */

/* The oldest that are due, at most EXPIRE_RUNS_MAX. */
static int
choose_due(struct db *db, const struct expire_op *o, struct expire_run *runs,
    size_t *n, struct err *e)
{
	struct db_call c;
	int rc;

	*n = 0;
	db_call_init(&c, db, DB_EXPIRE_RUNS);
	db_put_uint(&c, o->wish.tenant.n);
	db_put_int(&c, o->wish.runs_before_ms);
	db_put_uint(&c, EXPIRE_RUNS_MAX);
	while ((rc = db_call_step(&c, e)) == 1) {
		struct expire_run *r = &runs[(*n)++];

		r->id = db_get_uint(&c);
		db_get_bytes(&c, r->uuid.b, sizeof(r->uuid.b));
		r->has_log = db_get_int(&c) != 0;
		r->log_bytes = db_get_uint(&c);
	}
	return rc;
}

static int
expire_rows(struct db *db, struct expire_op *o, struct err *e)
{
	struct expire_run runs[EXPIRE_RUNS_MAX];
	uint64_t tenant = o->wish.tenant.n;
	size_t n, i = 0;

	if (o->wish.runs_before_ms <= 0)
		return 0;
	if (tally_flush(db, e) != 0 || choose_due(db, o, runs, &n, e) != 0)
		return e->code;
	for (; i < n && o->forget.nartifacts < EXPIRE_ARTIFACTS_MAX; i++) {
		if (forget_run(db, &o->forget, tenant, runs[i].id, e) != 0)
			return e->code;
		if (runs[i].has_log)
			forget_add_log(
			    &o->forget, &runs[i].uuid, runs[i].log_bytes);
	}
	o->nruns = i;
	o->more = i < n || n == EXPIRE_RUNS_MAX;
	if (i == 0 || forget_sandboxes(db, tenant, e) != 0)
		return i == 0 ? 0 : e->code;
	return forget_count(db, &o->forget, tenant, i, e);
}

/* ---- files */

/* Those of one kind (cut, or not) in the order of their numbers. */
static int
choose_files(struct db *db, const struct expire_op *o, bool is_cut,
    struct expire_run *runs, size_t *n, struct err *e)
{
	int64_t before = o->wish.files_before_ms;
	struct db_call c;
	int rc = 1;

	db_call_init(&c, db, DB_EXPIRE_FILES);
	db_put_uint(&c, o->wish.tenant.n);
	db_put_int(&c, is_cut);
	while (*n < EXPIRE_RUNS_MAX && (rc = db_call_step(&c, e)) == 1) {
		struct expire_run *r = &runs[*n];

		r->id = db_get_uint(&c);
		db_get_bytes(&c, r->uuid.b, sizeof(r->uuid.b));
		r->has_log = db_get_int(&c) != 0;
		r->log_bytes = db_get_uint(&c);
		if (db_get_int(&c) >= before)
			break; /* created too late, as all that follow */
		*n += db_get_int(&c) < before;
	}
	if (rc == 1 || *n == EXPIRE_RUNS_MAX)
		db_call_end(&c);
	return rc < 0 ? rc : 0;
}

static int
give_up(struct db *db, struct expire_op *o, const struct expire_run *r,
    struct err *e)
{
	if (forget_artifacts(db, &o->forget, o->wish.tenant.n, r->id, e) != 0)
		return e->code;
	if (r->has_log)
		forget_add_log(&o->forget, &r->uuid, r->log_bytes);
	return forget_mark(db, r->id, e);
}

static int
expire_files(struct db *db, struct expire_op *o, struct err *e)
{
	struct expire_run runs[EXPIRE_RUNS_MAX];
	size_t n = 0, i = 0;

	if (o->wish.files_before_ms <= 0 || o->more)
		return 0;
	if (choose_files(db, o, true, runs, &n, e) != 0 ||
	    choose_files(db, o, false, runs, &n, e) != 0)
		return e->code;
	for (; i < n && o->forget.nartifacts < EXPIRE_ARTIFACTS_MAX; i++)
		if (give_up(db, o, &runs[i], e) != 0)
			return e->code;
	o->nfiles = i;
	o->more = i < n || n == EXPIRE_RUNS_MAX;
	return 0;
}

/* ---- a step */

/* What no event has told yet, in the transaction of the step. */
static int
tell(struct db *db, struct expire_op *o, struct err *e)
{
	uint64_t runs = o->sum.runs + o->nruns - o->told.runs;
	uint64_t files_of = o->sum.files_of + o->nfiles - o->told.files_of;
	struct store_event row;
	int rc;

	if (runs + files_of == 0 ||
	    (o->more && runs + files_of < EXPIRE_TOLD_MAX))
		return 0;
	event_of_expired(o->wish.tenant.n, runs, files_of, &row);
	rc = event_put(db, &o->op, &row, e);
	store_event_clear(&row);
	o->is_told = rc == 0;
	return rc;
}

static int
expire_run(struct db *db, struct op *op, struct err *e)
{
	struct expire_op *o = (struct expire_op *)op;

	forget_clear(&o->forget); /* of a first attempt */
	o->nruns = o->nfiles = 0;
	o->more = o->is_told = false;
	if (expire_rows(db, o, e) != 0 || expire_files(db, o, e) != 0)
		return e->code;
	/* When there is nothing to write, the commit costs no sync. */
	if (o->nruns + o->nfiles > 0 &&
	    forget_blobs(db, &o->forget, o->wish.tenant.n, e) != 0)
		return e->code;
	return tell(db, o, e);
}

static void
expire_after(struct db *db, struct op *op)
{
	const struct expire_op *o = (const struct expire_op *)op;

	if (op->rc == 0)
		forget_files(o->store, db, &o->forget);
}

static void
expire_release(struct op *op)
{
	forget_clear(&((struct expire_op *)op)->forget);
	free(op);
}

/* On the loop's thread. */

static void expire_deliver(struct op *op);

static void
expire_submit(const struct expire_op *from)
{
	struct expire_op *o = xcalloc(1, sizeof(*o));

	o->op.run = expire_run;
	o->op.after = expire_after;
	o->op.deliver = expire_deliver;
	o->op.release = expire_release;
	o->op.again = true;
	o->op.bytes = sizeof(*o);
	o->done = from->done;
	o->arg = from->arg;
	o->store = from->store;
	o->wish = from->wish;
	o->sum = from->sum;
	o->told = from->told;
	writer_submit(o->store->writer, &o->op);
}

/* What went in the steps before one that failed. */
static void
tell_later(const struct expire_op *o)
{
	uint64_t runs = o->sum.runs - o->told.runs;
	uint64_t files_of = o->sum.files_of - o->told.files_of;
	struct store_event row;

	if (runs + files_of == 0)
		return;
	event_of_expired(o->wish.tenant.n, runs, files_of, &row);
	store_event_note(o->store, &row, STORE_EVENT_ALWAYS);
	store_event_clear(&row);
}

static void
expire_deliver(struct op *op)
{
	struct expire_op *o = (struct expire_op *)op;

	if (op->rc == 0) {
		o->sum.runs += o->nruns;
		o->sum.files_of += o->nfiles;
		o->sum.files += o->forget.nlogs + o->forget.nblobs;
		o->sum.bytes += o->forget.bytes;
		if (o->is_told)
			o->told = o->sum;
		if (o->more) {
			expire_submit(o);
			return;
		}
	} else {
		tell_later(o);
	}
	o->done(op->rc, &o->sum, op_why(op), o->arg);
}

void
store_expire(struct store *s, const struct store_expiry *wish,
    store_expired_cb done, void *arg)
{
	const struct expire_op first = {
	    .done = done, .arg = arg, .store = s, .wish = *wish};

	expire_submit(&first);
}

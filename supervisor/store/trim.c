/*
 * trim.c - old runs are forgotten
 *
 * A step is one op: the oldest ended runs beyond those to keep, with commands
 * and artifacts, blobs that lost their last reference by that, and sandboxes
 * that ended before the oldest run left.  When that is on disk the files go,
 * still on the writer's thread; then the next step is submitted, behind what
 * others submitted meanwhile.
 */
#include "supervisor/store/store_int.h"

#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/forget.h"
#include "supervisor/store/tally.h"
#include "supervisor/store/writer.h"

/* In one step: both bound the time that others wait. */
#define TRIM_RUNS_MAX 100
#define TRIM_ARTIFACTS_MAX 400
#define TRIM_BYTES_MAX (4u << 20)

struct trim_op {
	struct write_op w;
	struct store *store;
	uint64_t tenant;
	struct store_keep keep;
	bool more; /* another step is wanted */
	uint64_t ids[TRIM_RUNS_MAX];
	struct uuid runs[TRIM_RUNS_MAX];
	bool has_file[TRIM_RUNS_MAX]; /* its log is not in the row */
	size_t nruns;
	struct forget forget;
};

static int
read_kept(
    struct db *db, uint64_t tenant, struct store_keep *kept, struct err *e)
{
	struct db_call c;
	int64_t bytes;
	int rc = tally_flush(db, e);

	if (rc != 0)
		return rc;
	db_call_init(&c, db, DB_TRIM_KEPT);
	db_put_uint(&c, tenant);
	rc = db_call_step(&c, e);
	if (rc < 0)
		return rc;
	if (rc == 0)
		return err_set(e, ERR_NOTFOUND, "tenant %llu is not known",
		    (unsigned long long)tenant);
	kept->runs = db_get_uint(&c);
	bytes = db_get_int(&c);
	kept->bytes = bytes < 0 ? 0 : (uint64_t)bytes;
	db_call_end(&c);
	return 0;
}

static int
choose_runs(struct db *db, struct trim_op *t, uint64_t n, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_TRIM_RUNS);
	db_put_uint(&c, t->tenant);
	db_put_uint(&c, n);
	while ((rc = db_call_step(&c, e)) == 1) {
		if (t->nruns == TRIM_RUNS_MAX) {
			db_call_end(&c);
			return 0;
		}
		t->ids[t->nruns] = db_get_uint(&c);
		db_get_bytes(&c, t->runs[t->nruns].b, sizeof(t->runs[0].b));
		t->has_file[t->nruns] = db_get_int(&c) != 0;
		t->nruns++;
	}
	return rc;
}

static uint64_t
beyond(uint64_t is, uint64_t keep)
{
	return is > keep ? is - keep : 0;
}

static bool
is_enough(const struct trim_op *t, size_t n, const struct store_keep *excess)
{
	return n >= excess->runs && t->forget.row_bytes >= excess->bytes;
}

/* The oldest, as many as a step may have. */
static int
forget_runs(struct db *db, struct trim_op *t, const struct store_keep *excess,
    struct err *e)
{
	size_t n = 0;

	while (n < t->nruns && !is_enough(t, n, excess) &&
	    t->forget.nartifacts < TRIM_ARTIFACTS_MAX &&
	    t->forget.row_bytes < TRIM_BYTES_MAX) {
		if (forget_run(db, &t->forget, t->tenant, t->ids[n], e) != 0)
			return e->code;
		if (t->has_file[n])
			forget_add_log(&t->forget, &t->runs[n], 0);
		n++;
	}
	t->nruns = n;
	return 0;
}

static int
trim_run(struct db *db, struct op *op, struct err *e)
{
	struct trim_op *t = (struct trim_op *)op;
	struct store_keep kept = {0, 0}, excess;
	uint64_t most; /* that may go */
	int rc = read_kept(db, t->tenant, &kept, e);

	forget_clear(&t->forget); /* of a first attempt */
	t->nruns = 0;
	if (rc != 0)
		return rc;
	excess.runs = beyond(kept.runs, t->keep.runs);
	excess.bytes = beyond(kept.bytes, t->keep.bytes);
	most = excess.runs;
	if (excess.bytes > 0 && most < kept.runs)
		most = kept.runs - 1;
	if (most > 0)
		rc = choose_runs(db, t, most, e);
	if (rc == 0)
		rc = forget_runs(db, t, &excess, e);
	if (rc != 0)
		return rc;
	t->more =
	    t->nruns > 0 && t->nruns < most && !is_enough(t, t->nruns, &excess);
	if (forget_blobs(db, &t->forget, t->tenant, e) != 0 ||
	    forget_sandboxes(db, t->tenant, e) != 0)
		return e->code;
	/* Nothing to write: the commit costs no sync then. */
	return t->nruns == 0 ?
	    0 :
	    forget_count(db, &t->forget, t->tenant, t->nruns, e);
}

static void
trim_after(struct db *db, struct op *op)
{
	const struct trim_op *t = (struct trim_op *)op;

	if (op->rc == 0)
		forget_files(t->store, db, &t->forget);
}

/* On the loop's thread. */

static void
trim_deliver(struct op *op)
{
	struct trim_op *t = (struct trim_op *)op;

	if (op->rc == 0 && t->more)
		store_trim(t->store, (struct tenant_id){t->tenant}, t->keep,
		    t->w.done, t->w.arg);
	else
		store_write_deliver(op);
}

static void
trim_release(struct op *op)
{
	forget_clear(&((struct trim_op *)op)->forget);
	free(op);
}

void
store_trim(struct store *s, struct tenant_id tenant, struct store_keep keep,
    store_done_cb done, void *arg)
{
	struct trim_op *t = xcalloc(1, sizeof(*t));

	store_write_init(&t->w, trim_run, sizeof(*t), done, arg);
	t->w.op.after = trim_after;
	t->w.op.deliver = trim_deliver;
	t->w.op.release = trim_release;
	t->store = s;
	t->tenant = tenant.n;
	t->keep = keep;
	writer_submit(s->writer, &t->w.op);
}

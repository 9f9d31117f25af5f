#include "supervisor/store/store_private.h"

#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/writer.h"

#define TRIM_RUNS_MAX 500
#define TRIM_EVENTS_MAX 5000
#define TRIM_ARTIFACTS_MAX 10000 /* bounds the time that others wait */

struct trim_op {
	struct op op;
	struct store *store;
	store_trim_cb done;
	void *arg;
	uint64_t tenant;
	uint64_t keep;
	uint64_t ids[TRIM_RUNS_MAX];
	struct uuid runs[TRIM_RUNS_MAX];
	size_t nruns;
	uint8_t (*blobs)[32];
	size_t nblobs;
};

static int
read_kept(struct db *db, uint64_t tenant, uint64_t *runs, uint64_t *events,
    struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_TRIM_KEPT);
	db_put_uint(&c, tenant);
	rc = db_call_step(&c, e);
	if (rc < 0)
		return rc;
	if (rc == 0)
		return err_set(e, ERR_NOTFOUND, "tenant %llu is not known",
		    (unsigned long long)tenant);
	*runs = db_get_uint(&c);
	*events = db_get_uint(&c);
	db_call_end(&c);
	return 0;
}

/* What is beyond keep, at most max. */
static uint64_t
excess(uint64_t kept, uint64_t keep, uint64_t max)
{
	uint64_t n = kept > keep ? kept - keep : 0;

	return n < max ? n : max;
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
		t->nruns++;
	}
	return rc;
}

static int
unref_blob(
    struct db *db, uint64_t tenant, const uint8_t sha256[32], struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, DB_TRIM_BLOB_UNREF);
	db_put_uint(&c, tenant);
	db_put_blob(&c, sha256, 32);
	return db_call_run(&c, e);
}

/* A run with all that hangs on it; *artifacts is counted up. */
static int
forget_run(struct db *db, uint64_t tenant, uint64_t run, size_t *artifacts,
    struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_TRIM_DIGESTS);
	db_put_uint(&c, run);
	while ((rc = db_call_step(&c, e)) == 1) {
		uint8_t sha256[32];

		db_get_bytes(&c, sha256, sizeof(sha256));
		rc = unref_blob(db, tenant, sha256, e);
		if (rc != 0) {
			db_call_end(&c);
			return rc;
		}
		(*artifacts)++;
	}
	if (rc != 0)
		return rc;
	db_call_init(&c, db, DB_TRIM_RUN_DELETE);
	db_put_uint(&c, run);
	return db_call_run(&c, e);
}

static int
collect_blobs(struct db *db, struct trim_op *t, struct err *e)
{
	struct db_call c;
	size_t cap = 0;
	int rc;

	db_call_init(&c, db, DB_TRIM_BLOBS);
	db_put_uint(&c, t->tenant);
	while ((rc = db_call_step(&c, e)) == 1) {
		if (t->nblobs == cap) {
			cap = cap == 0 ? 64 : cap * 2;
			t->blobs =
			    xreallocarray(t->blobs, cap, sizeof(*t->blobs));
		}
		db_get_bytes(&c, t->blobs[t->nblobs++], sizeof(*t->blobs));
	}
	return rc;
}

static int
forget_sandboxes(struct db *db, uint64_t tenant, struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, DB_TRIM_SANDBOXES);
	db_put_uint(&c, tenant);
	return db_call_run(&c, e);
}

static int
forget_events(struct db *db, uint64_t tenant, uint64_t n, struct err *e)
{
	struct db_call c;

	if (n == 0)
		return 0;
	db_call_init(&c, db, DB_TRIM_EVENTS);
	db_put_uint(&c, tenant);
	db_put_uint(&c, n);
	return db_call_run(&c, e);
}

static int
count_down(
    struct db *db, const struct trim_op *t, uint64_t events, struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, DB_TRIM_COUNT);
	db_put_uint(&c, t->tenant);
	db_put_uint(&c, t->nruns);
	db_put_uint(&c, events);
	return db_call_run(&c, e);
}

static int
trim_run(struct db *db, struct op *op, struct err *e)
{
	struct trim_op *t = (struct trim_op *)op;
	uint64_t runs = 0, events = 0;
	size_t artifacts = 0, n = 0;
	int rc = read_kept(db, t->tenant, &runs, &events, e);

	if (rc != 0)
		return rc;
	runs = excess(runs, t->keep, TRIM_RUNS_MAX);
	events = excess(events, STORE_EVENTS_KEEP, TRIM_EVENTS_MAX);
	if (runs > 0)
		rc = choose_runs(db, t, runs, e);
	while (rc == 0 && n < t->nruns && artifacts < TRIM_ARTIFACTS_MAX)
		rc = forget_run(db, t->tenant, t->ids[n++], &artifacts, e);
	t->nruns = n;
	if (rc != 0 || collect_blobs(db, t, e) != 0 ||
	    forget_sandboxes(db, t->tenant, e) != 0 ||
	    forget_events(db, t->tenant, events, e) != 0)
		return e->code;
	return count_down(db, t, events, e);
}

/* On the loop's thread. */

static int
digest_compare(const void *a, const void *b)
{
	return memcmp(a, b, 32);
}

/*
 * A run that ends while the trim was under way may have brought the same bytes
 * again: its blob is there, its row is not yet.  Such a blob must stay.
 */
static void
spare_blobs(struct trim_op *t)
{
	AUTO(auto_free) bool *spare = xcalloc(t->nblobs, sizeof(*spare));
	const struct run_op *r;
	size_t kept = 0;

	qsort(t->blobs, t->nblobs, sizeof(*t->blobs), digest_compare);
	for (r = LIST_FIRST(&t->store->ending); r != NULL;
	     r = LIST_NEXT(r, ending)) {
		if (r->row.tenant != t->tenant)
			continue;
		for (uint32_t i = 0; i < r->row.nartifacts; i++) {
			uint8_t(*hit)[32] =
			    bsearch(r->row.artifacts[i].sha256, t->blobs,
				t->nblobs, sizeof(*t->blobs), digest_compare);

			if (hit != NULL)
				spare[hit - t->blobs] = true;
		}
	}
	for (size_t i = 0; i < t->nblobs; i++)
		if (!spare[i])
			memmove(t->blobs[kept++], t->blobs[i], 32);
	t->nblobs = kept;
}

static void
trim_deliver(struct op *op)
{
	struct trim_op *t = (struct trim_op *)op;

	if (op->rc != 0) {
		t->done(op->rc, NULL, 0, NULL, 0, t->tenant, t->arg);
		return;
	}
	if (t->nblobs > 0)
		spare_blobs(t);
	t->done(0, t->runs, t->nruns, (const uint8_t(*)[32])t->blobs, t->nblobs,
	    t->tenant, t->arg);
}

static void
trim_release(struct op *op)
{
	free(((struct trim_op *)op)->blobs);
	free(op);
}

void
store_trim(struct store *s, uint64_t tenant, uint64_t keep, store_trim_cb done,
    void *arg)
{
	struct trim_op *t = xcalloc(1, sizeof(*t));

	t->op.run = trim_run;
	t->op.deliver = trim_deliver;
	t->op.release = trim_release;
	t->op.bytes = sizeof(*t);
	t->store = s;
	t->done = done;
	t->arg = arg;
	t->tenant = tenant;
	t->keep = keep;
	writer_submit(s->writer, &t->op);
}

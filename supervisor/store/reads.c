/*
 * reads.c - single rows for the loop: ops for the reader's thread
 *
 * Each op reads in one transaction what belongs together (a run, its commands,
 * a page of its artifacts) and hands it over once, on the loop's thread.
 */
#include "supervisor/store/store_int.h"

#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/rows_sql_gen.h"

/* Rows. */

static int
read_commands(struct db *db, struct store_run *r, struct err *e)
{
	struct db_call c;
	size_t n = 0;
	int rc;

	db_call_init(&c, db, DB_COMMANDS_GET);
	db_put_uint(&c, r->id);
	rc = rows_read_command(&c, &r->commands, &n, e);
	r->ncommands = (uint32_t)n;
	return rc;
}

static int
read_page(struct db *db, struct store_run *r, struct err *e)
{
	size_t bytes = 0;
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_ARTIFACTS_GET);
	db_put_uint(&c, r->id);
	db_put_uint(&c, STORE_ARTIFACTS_PAGE + 1);
	db_put_uint(&c, r->artifacts_from);
	while ((rc = db_call_step(&c, e)) == 1) {
		if (r->nartifacts == STORE_ARTIFACTS_PAGE ||
		    bytes >= STORE_ARTIFACTS_PAGE_BYTES)
			break;
		r->artifacts = array_grow(
		    r->artifacts, r->nartifacts, sizeof(*r->artifacts));
		rc = rows_get_artifact(&c, &r->artifacts[r->nartifacts], e);
		if (rc != 0)
			break;
		bytes += strlen(r->artifacts[r->nartifacts++].path);
	}
	if (rc != 0)
		db_call_end(&c);
	return rc == 1 ? 0 : rc; /* 1: there is more */
}

/* A row of RUN_COLUMNS and the spec, with commands and, when it has ended, a
 * page of its artifacts.  On failure *r is cleared. */
static int
read_run(struct db *db, struct db_call *c, uint32_t artifacts_from,
    struct store_run *r, struct err *e)
{
	if (rows_get_run(c, r, e) != 0)
		return e->code;
	r->artifacts_from = artifacts_from;
	/* Artifacts of a run that goes on are nobody's yet. */
	if (read_commands(db, r, e) == 0 &&
	    (run_is_unfinished(r->state) || read_page(db, r, e) == 0))
		return 0;
	store_run_clear(r);
	return e->code;
}

/* One run. */

struct store_getting {
	struct op op;
	store_run_cb done;
	void *arg;
	uint64_t tenant;
	struct uuid uuid;
	uint32_t artifacts_from;
	struct store_run row;
};

static int
run_get_run(struct db *db, struct op *op, struct err *e)
{
	struct store_getting *g = (struct store_getting *)op;
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_RUN_GET);
	db_put_blob(&c, g->uuid.b, sizeof(g->uuid.b));
	db_put_uint(&c, g->tenant);
	rc = db_call_step(&c, e);
	if (rc == 0) {
		char text[UUID_TEXT_LEN + 1];

		uuid_format(&g->uuid, text);
		return err_set(e, ERR_NOTFOUND, "run %s is not known", text);
	}
	if (rc < 0)
		return rc;
	rc = read_run(db, &c, g->artifacts_from, &g->row, e);
	db_call_end(&c);
	return rc;
}

static void
run_get_deliver(struct op *op)
{
	struct store_getting *g = (struct store_getting *)op;

	if (g->done != NULL)
		g->done(
		    op->rc, op->rc == 0 ? &g->row : NULL, op_why(op), g->arg);
}

static void
run_get_release(struct op *op)
{
	store_run_clear(&((struct store_getting *)op)->row);
	free(op);
}

void
store_getting_cancel(struct store_getting *g)
{
	g->done = NULL;
}

struct store_getting *
store_run_get(struct store *s, struct tenant_id tenant, const struct uuid *uuid,
    uint32_t artifacts_from, store_run_cb done, void *arg)
{
	struct store_getting *g = xcalloc(1, sizeof(*g));

	g->done = done;
	g->arg = arg;
	g->tenant = tenant.n;
	g->uuid = *uuid;
	g->artifacts_from = artifacts_from;
	store_read_submit(
	    s, &g->op, run_get_run, run_get_deliver, run_get_release);
	return g;
}

/* One artifact. */

struct artifact_get_op {
	struct op op;
	store_artifact_cb done;
	void *arg;
	uint64_t tenant;
	char *identifier;
	char *path;
	bool latest;
	struct uuid run;
	struct store_artifact row;
};

static int
artifact_get_run(struct db *db, struct op *op, struct err *e)
{
	struct artifact_get_op *g = (struct artifact_get_op *)op;
	struct db_call c;
	int rc;

	db_call_init(&c, db, g->latest ? DB_ARTIFACT_LATEST : DB_ARTIFACT_GET);
	if (!g->latest)
		db_put_blob(&c, g->run.b, sizeof(g->run.b));
	db_put_uint(&c, g->tenant);
	db_put_text(&c, g->identifier);
	db_put_text(&c, g->path);
	rc = db_call_step(&c, e);
	if (rc == 0)
		return err_set(
		    e, ERR_NOTFOUND, "artifact %s is not known", g->path);
	if (rc < 0)
		return rc;
	rc = rows_get_artifact(&c, &g->row, e);
	db_call_end(&c);
	return rc;
}

static void
artifact_get_deliver(struct op *op)
{
	struct artifact_get_op *g = (struct artifact_get_op *)op;

	g->done(op->rc, op->rc == 0 ? &g->row : NULL, op_why(op), g->arg);
}

static void
artifact_get_release(struct op *op)
{
	struct artifact_get_op *g = (struct artifact_get_op *)op;

	store_artifact_clear(&g->row);
	free(g->identifier);
	free(g->path);
	free(g);
}

void
store_artifact_get(struct store *s, struct tenant_id tenant,
    const char *identifier, const struct uuid *run, const char *path,
    store_artifact_cb done, void *arg)
{
	struct artifact_get_op *g = xcalloc(1, sizeof(*g));

	g->done = done;
	g->arg = arg;
	g->tenant = tenant.n;
	g->identifier = xstrdup(identifier);
	g->path = xstrdup(path);
	g->latest = run == NULL;
	if (run != NULL)
		g->run = *run;
	store_read_submit(s, &g->op, artifact_get_run, artifact_get_deliver,
	    artifact_get_release);
}

/* ---- a snapshot and totals: before the loop runs */

void
store_snapshot_clear(struct store_snapshot *s)
{
	for (size_t i = 0; i < s->nsandboxes; i++)
		store_sandbox_clear(&s->sandboxes[i]);
	for (size_t i = 0; i < s->nruns; i++)
		store_run_clear(&s->runs[i]);
	for (size_t i = 0; i < s->nended; i++)
		store_sandbox_clear(&s->ended[i]);
	free(s->sandboxes);
	free(s->ended);
	free(s->runs);
	memset(s, 0, sizeof(*s));
}

struct snapshot_reading {
	struct store_snapshot *out;
	void (*slim)(struct store_run *run); /* or NULL */
};

static int
read_runs(struct db *db, const struct snapshot_reading *reading, struct err *e)
{
	struct store_snapshot *s = reading->out;
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_RUN_UNFINISHED);
	while ((rc = db_call_step(&c, e)) == 1) {
		s->runs = array_grow(s->runs, s->nruns, sizeof(*s->runs));
		if (read_run(db, &c, 0, &s->runs[s->nruns], e) != 0) {
			db_call_end(&c);
			return e->code;
		}
		if (reading->slim != NULL)
			reading->slim(&s->runs[s->nruns]);
		s->nruns++;
	}
	return rc;
}

static int
read_snapshot(struct db *db, void *arg, struct err *e)
{
	const struct snapshot_reading *reading = arg;
	struct store_snapshot *s = reading->out;
	struct db_call c;
	int64_t sandbox, run;

	if (db_exec_int(db, DB_NEXT_SANDBOX, &sandbox, e) != 0 ||
	    db_exec_int(db, DB_NEXT_RUN, &run, e) != 0)
		return e->code;
	s->next_sandbox = (uint64_t)sandbox;
	s->next_run = (uint64_t)run;
	db_call_init(&c, db, DB_SANDBOX_LIVE);
	if (rows_read_sandbox(&c, &s->sandboxes, &s->nsandboxes, e) != 0)
		return e->code;
	db_call_init(&c, db, DB_SANDBOX_LEFT);
	if (rows_read_sandbox(&c, &s->ended, &s->nended, e) != 0)
		return e->code;
	return read_runs(db, reading, e);
}

int
store_snapshot(struct store *s, void (*slim)(struct store_run *run),
    struct store_snapshot *out, struct err *e)
{
	struct snapshot_reading reading;
	int rc;

	*out = (struct store_snapshot){0};
	reading = (struct snapshot_reading){out, slim};
	rc = store_read_now(s, read_snapshot, &reading, e);
	if (rc != 0)
		store_snapshot_clear(out);
	return rc;
}

static int
read_counts(struct db *db, void *out, struct err *e)
{
	struct store_counts *n = out;
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_TALLY_TOTAL);
	rc = db_call_step(&c, e);
	if (rc != 1)
		return rc;
	n->runs_completed = db_get_uint(&c);
	n->runs_failed = db_get_uint(&c);
	n->runs_canceled = db_get_uint(&c);
	n->commands_completed = db_get_uint(&c);
	n->commands_failed = db_get_uint(&c);
	n->commands_timed_out = db_get_uint(&c);
	db_call_end(&c);
	return 0;
}

int
store_counts(struct store *s, struct store_counts *out, struct err *e)
{
	*out = (struct store_counts){0};
	return store_read_now(s, read_counts, out, e);
}

/*
 * reads.c - single rows for the loop: ops for the reader's thread
 *
 * Each op reads in one transaction what belongs together (a run, its commands,
 * its artifacts) and hands it over once, on the loop's thread.
 */
#include "supervisor/store/store_int.h"

#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/reader.h"
#include "supervisor/store/rows_sql_gen.h"

/* Rows. */

static int
read_commands(struct db *db, struct store_run *r, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_COMMANDS_GET);
	db_put_uint(&c, r->id);
	while ((rc = db_call_step(&c, e)) == 1) {
		r->commands =
		    array_grow(r->commands, r->ncommands, sizeof(*r->commands));
		rc = rows_get_command(&c, &r->commands[r->ncommands], e);
		if (rc != 0)
			break;
		r->ncommands++;
	}
	if (rc != 0)
		db_call_end(&c);
	return rc;
}

static int
read_artifacts(struct db *db, struct store_run *r, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_ARTIFACTS_GET);
	db_put_uint(&c, r->id);
	while ((rc = db_call_step(&c, e)) == 1) {
		r->artifacts = array_grow(
		    r->artifacts, r->nartifacts, sizeof(*r->artifacts));
		rc = rows_get_artifact(&c, &r->artifacts[r->nartifacts], e);
		if (rc != 0)
			break;
		r->nartifacts++;
	}
	if (rc != 0)
		db_call_end(&c);
	return rc;
}

int
reads_run(struct db *db, struct db_call *c, struct store_run *r, struct err *e)
{
	if (rows_get_run(c, r, e) != 0)
		return e->code;
	if (read_commands(db, r, e) == 0 && read_artifacts(db, r, e) == 0)
		return 0;
	store_run_clear(r);
	return e->code;
}

/* One run. */

struct run_get_op {
	struct op op;
	store_run_cb done;
	void *arg;
	uint64_t tenant;
	struct uuid uuid;
	struct store_run row;
};

static int
run_get_run(struct db *db, struct op *op, struct err *e)
{
	struct run_get_op *g = (struct run_get_op *)op;
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
	rc = reads_run(db, &c, &g->row, e);
	db_call_end(&c);
	return rc;
}

static void
run_get_deliver(struct op *op)
{
	struct run_get_op *g = (struct run_get_op *)op;

	if (op->rc == 0)
		g->done(0, &g->row, NULL, g->arg);
	else
		g->done(op->rc, NULL, &op->why, g->arg);
}

static void
run_get_release(struct op *op)
{
	store_run_clear(&((struct run_get_op *)op)->row);
	free(op);
}

void
store_run_get(struct store *s, struct tenant_id tenant, const struct uuid *uuid,
    store_run_cb done, void *arg)
{
	struct run_get_op *g = xcalloc(1, sizeof(*g));

	g->op.run = run_get_run;
	g->op.deliver = run_get_deliver;
	g->op.release = run_get_release;
	g->done = done;
	g->arg = arg;
	g->tenant = tenant.n;
	g->uuid = *uuid;
	reader_submit(s->reader, &g->op);
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

	if (op->rc == 0)
		g->done(0, &g->row, NULL, g->arg);
	else
		g->done(op->rc, NULL, &op->why, g->arg);
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

	g->op.run = artifact_get_run;
	g->op.deliver = artifact_get_deliver;
	g->op.release = artifact_get_release;
	g->done = done;
	g->arg = arg;
	g->tenant = tenant.n;
	g->identifier = xstrdup(identifier);
	g->path = xstrdup(path);
	g->latest = run == NULL;
	if (run != NULL)
		g->run = *run;
	reader_submit(s->reader, &g->op);
}

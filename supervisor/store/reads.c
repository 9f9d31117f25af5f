#include "supervisor/store/store_private.h"

#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/reader.h"

/* Rows. */

static void
command_get(struct db_call *c, struct store_command *k)
{
	k->index = db_get_u32(c);
	k->shell = db_get_text(c);
	k->argv_json = db_get_text(c);
	k->cwd = db_get_text(c);
	k->env_json = db_get_text(c);
	k->status = db_get_text(c);
	k->end_reason = db_get_text(c);
	k->error = db_get_text(c);
	k->exit_code = (int32_t)db_get_int(c);
	k->signal = (int32_t)db_get_int(c);
	k->timeout_ms = db_get_u32(c);
	k->allow_failure = db_get_int(c) != 0;
	k->started_ms = db_get_int(c);
	k->ended_ms = db_get_int(c);
	k->stdout_bytes = db_get_uint(c);
	k->stderr_bytes = db_get_uint(c);
}

void
reads_artifact(struct db_call *c, struct store_artifact *a)
{
	a->path = db_get_text(c);
	a->size = db_get_uint(c);
	a->mode = db_get_u32(c);
	a->mtime_ns = db_get_int(c);
	db_get_bytes(c, a->sha256, sizeof(a->sha256));
}

static void
run_get(struct db_call *c, struct store_run *r)
{
	memset(r, 0, sizeof(*r));
	r->id = db_get_uint(c);
	db_get_bytes(c, r->uuid.b, sizeof(r->uuid.b));
	r->tenant = db_get_uint(c);
	r->sandbox = db_get_uint(c);
	r->identifier = db_get_text(c);
	r->sandbox_name = db_get_text(c);
	r->container_id = db_get_text(c);
	r->tool = db_get_text(c);
	r->state = db_get_text(c);
	r->end_reason = db_get_text(c);
	r->error = db_get_text(c);
	r->artifacts_error = db_get_text(c);
	r->created_ms = db_get_int(c);
	r->started_ms = db_get_int(c);
	r->ended_ms = db_get_int(c);
	r->spool_bytes = db_get_uint(c);
	r->stdout_max = db_get_u32(c);
	r->stderr_max = db_get_u32(c);
	r->log = db_get_blob(c, &r->log_len);
	r->spec = db_get_blob(c, &r->spec_len);
}

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
		command_get(&c, &r->commands[r->ncommands++]);
	}
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
		reads_artifact(&c, &r->artifacts[r->nartifacts++]);
	}
	return rc;
}

int
reads_run(struct db *db, struct db_call *c, struct store_run *r, struct err *e)
{
	run_get(c, r);
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
store_run_get(struct store *s, uint64_t tenant, const struct uuid *uuid,
    store_run_cb done, void *arg)
{
	struct run_get_op *g = xcalloc(1, sizeof(*g));

	g->op.run = run_get_run;
	g->op.deliver = run_get_deliver;
	g->op.release = run_get_release;
	g->done = done;
	g->arg = arg;
	g->tenant = tenant;
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
	reads_artifact(&c, &g->row);
	db_call_end(&c);
	return 0;
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

	free(g->row.path);
	free(g->identifier);
	free(g->path);
	free(g);
}

void
store_artifact_get(struct store *s, uint64_t tenant, const char *identifier,
    const struct uuid *run, const char *path, store_artifact_cb done, void *arg)
{
	struct artifact_get_op *g = xcalloc(1, sizeof(*g));

	g->op.run = artifact_get_run;
	g->op.deliver = artifact_get_deliver;
	g->op.release = artifact_get_release;
	g->done = done;
	g->arg = arg;
	g->tenant = tenant;
	g->identifier = xstrdup(identifier);
	g->path = xstrdup(path);
	g->latest = run == NULL;
	if (run != NULL)
		g->run = *run;
	reader_submit(s->reader, &g->op);
}

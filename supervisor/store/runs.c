/*
 * runs.c - the rows of a run, from its begin to its end, and its log with them
 *
 *	begin	STORE_NOW: an op of its own.  STORE_SOON: held (writer.h) until
 *		- the run ends: its end takes the begin along (op.h, covers)
 *		  and inserts the run as it ended; or
 *		- it is due, it is moved or hurried, or its sandbox ends: it
 *		  goes.
 *	move	an update of an unfinished run.
 *	put	some of an unfinished run's artifacts, with their blobs'
 *		counts.
 *	end	an update, or the insert when it covers the begin; artifacts
 *		that were not put, and the tenant's totals, in the same
 *		transaction.
 *
 * Begin and end are told as events in the same transactions (event_log.h); an
 * end that covers its begin is one event, which says both.
 *
 * What a row counts that is in files, a long log and artifacts, is on the disk
 * before the row (syncer.h): such an op waits there before it is the writer's,
 * and takes the begin that is still held then.  A run of which all is in rows
 * goes straight to the writer.  What the disk did not take is said to be lost
 * by the same rows.
 *
 * The log: whatever writes a row of which the log is in a file gives the file
 * its name, in the same transaction.  If it cannot, only that op fails; if the
 * row is not written, the name is taken back.  An end whose log fits into the
 * row reads it, and removes the file when the row is on disk.
 */
#include "supervisor/store/store_int.h"

#include "common/clock.h"
#include "common/js.h"
#include "common/log.h"
#include "common/runspec.h"
#include "common/xmalloc.h"
#include "supervisor/store/artifact_rows.h"
#include "supervisor/store/db.h"
#include "supervisor/store/event_log.h"
#include "supervisor/store/event_put.h"
#include "supervisor/store/log_files.h"
#include "supervisor/store/rows_sql_gen.h"
#include "supervisor/store/run_texts.h"
#include "supervisor/store/syncer.h"
#include "supervisor/store/tally.h"
#include "supervisor/store/writer.h"

#define ENV_MASK "***"
#define ENV_REFERENCE "secret://" /* names a value, and is none */
/* What a row takes beside its texts, with its entries in indexes. */
#define RUN_ROW_BYTES 200
#define COMMAND_ROW_BYTES 70
#define ARTIFACT_ROW_BYTES 100

struct run_op {
	struct write_op w;
	struct store_run row;
	struct store_log *log; /* held; or NULL */
	int64_t started_ms;    /* of a begin: told meanwhile; 0: not */
	/* With files: */
	struct syncing sync;
	struct store *store;
	bool is_synced; /* it is the writer's */
};

/* The callback may close the store: nothing of it is needed afterwards. */
static void
run_deliver(struct op *op)
{
	struct run_op *o = (struct run_op *)op;

	store_log_close(o->log);
	o->log = NULL;
	store_write_deliver(op);
}

/* Insert. */

/*
 * The table of commands outlives the run and is not wiped, so a value that
 * slipped in here would stay.
 */
static int
env_check(const struct store_command *command, struct err *e)
{
	AUTO(auto_json) json_t *root = NULL;
	const char *text = command->env_json, *key;
	json_t *value;

	if (text == NULL || *text == '\0' || strcmp(text, "{}") == 0)
		return 0;
	/* Not the parser's reason, which may quote the text. */
	if (js_parse(text, strlen(text), RUNSPEC_BYTES_MAX, 2, &root, NULL) !=
	    0)
		return err_set(e, ERR_INVAL,
		    "command %u: env_json is no flat JSON object",
		    command->index);
	if (!json_is_object(root))
		return err_set(e, ERR_INVAL,
		    "command %u: env_json is no object", command->index);
	json_object_foreach (root, key, value) {
		const char *v = json_string_value(value);

		if (v == NULL ||
		    (strcmp(v, ENV_MASK) != 0 &&
			strncmp(v, ENV_REFERENCE, strlen(ENV_REFERENCE)) != 0))
			return err_set(e, ERR_INVAL,
			    "command %u: env_json has the value of a "
			    "variable: want \"" ENV_MASK "\"",
			    command->index);
	}
	return 0;
}

static int
command_insert(
    struct db *db, uint64_t run, const struct store_command *k, struct err *e)
{
	struct db_call c;

	if (env_check(k, e) != 0)
		return e->code;
	db_call_init(&c, db, DB_COMMAND_INSERT);
	db_put_uint(&c, run);
	rows_put_command(&c, k);
	return db_call_run(&c, e);
}

static int
insert_check(const struct store_run *r, struct err *e)
{
	if (!id_is_good(r->id))
		return err_set(e, ERR_INVAL, "run without a number");
	if (!run_is_unfinished(r->state))
		return err_set(e, ERR_INVAL,
		    "a run begins queued or running, not %s",
		    run_state_word(r->state));
	if (r->spec_len > RUNSPEC_BYTES_MAX ||
	    r->ncommands > RUNSPEC_COMMANDS_MAX)
		return err_set(e, ERR_LIMIT,
		    "a run of %zu bytes and %u commands is too large",
		    r->spec_len, r->ncommands);
	return 0;
}

static int
insert_row(struct db *db, const struct store_run *r, struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, DB_RUN_INSERT);
	rows_put_run(&c, r);
	return db_call_run(&c, e);
}

static int
spec_insert(struct db *db, const struct store_run *r, struct err *e)
{
	struct db_call c;

	if (r->spec == NULL)
		return 0;
	db_call_init(&c, db, DB_SPEC_INSERT);
	db_put_uint(&c, r->id);
	db_put_blob(&c, r->spec, r->spec_len);
	return db_call_run(&c, e);
}

static int
insert_commands(struct db *db, const struct store_run *r, struct err *e)
{
	for (uint32_t i = 0; i < r->ncommands; i++)
		if (command_insert(db, r->id, &r->commands[i], e) != 0)
			return e->code;
	return 0;
}

/* It may have begun while it was held. */
static int
insert_events(struct db *db, struct op *op, struct err *e)
{
	const struct run_op *o = (const struct run_op *)op;
	struct store_run r = o->row; /* borrowed */

	if (event_put_run(db, op, EVENT_RUN_CREATED, &r, e) != 0)
		return e->code;
	r.started_ms = o->started_ms;
	return r.started_ms == 0 ?
	    0 :
	    event_put_run(db, op, EVENT_RUN_STARTED, &r, e);
}

static int
insert_run(struct db *db, struct op *op, struct err *e)
{
	struct run_op *o = (struct run_op *)op;
	struct store_run *r = &o->row;

	run_texts_cut(r);
	if (insert_check(r, e) != 0 || insert_row(db, r, e) != 0 ||
	    spec_insert(db, r, e) != 0 || insert_commands(db, r, e) != 0 ||
	    insert_events(db, op, e) != 0)
		return e->code;
	return log_file_name(o->log, e);
}

static void
insert_after(struct db *db, struct op *op)
{
	(void)db;
	if (op->rc != 0)
		log_file_remove(((const struct run_op *)op)->log);
}

/* 1: there is such a run. */
static int
state_of(struct db *db, uint64_t run, enum run_state *out, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_RUN_STATE);
	db_put_uint(&c, run);
	rc = db_call_step(&c, e);
	if (rc == 1) {
		rc = run_state_parse(db_get_word(&c), out) == 0;
		db_call_end(&c);
	}
	return rc;
}

/* An update that must have met an unfinished run: say why it did not. */
static int
explain_run(struct db *db, uint64_t run, struct err *e)
{
	enum run_state state = RUN_STATE_QUEUED;
	int rc = state_of(db, run, &state, e);

	if (rc < 0)
		return rc;
	/* Unfinished but not met: another tenant's, which is the same. */
	if (rc == 0 || run_is_unfinished(state))
		return err_set(e, ERR_NOTFOUND, "run number %llu is not known",
		    (unsigned long long)run);
	return err_set(e, ERR_WRONG_STATE,
	    "run number %llu has ended already (%s)", (unsigned long long)run,
	    run_state_word(state));
}

/* Moved to another sandbox. */

struct move_op {
	struct write_op w;
	uint64_t run;
	uint64_t sandbox;
	char *sandbox_name;
};

static int
move_run(struct db *db, struct op *op, struct err *e)
{
	const struct move_op *s = (struct move_op *)op;
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_RUN_MOVE);
	db_put_uint(&c, s->run);
	db_put_uint(&c, s->sandbox);
	db_put_text(&c, s->sandbox_name);
	rc = db_call_run_one(&c, e);
	return rc == ERR_NOTFOUND ? explain_run(db, s->run, e) : rc;
}

static void
move_release(struct op *op)
{
	free(((struct move_op *)op)->sandbox_name);
	free(op);
}

/* Artifacts. */

/* Only of a run that has a row and no end. */
static int
put_run(struct db *db, struct op *op, struct err *e)
{
	const struct run_op *o = (const struct run_op *)op;
	enum run_state state = RUN_STATE_QUEUED;
	int rc = state_of(db, o->row.id, &state, e);

	if (rc < 0)
		return rc;
	if (rc == 0 || !run_is_unfinished(state))
		return explain_run(db, o->row.id, e);
	return artifact_rows_put(db, &o->row, o->sync.lost, e);
}

/* Rows count them now. */
static void
put_deliver(struct op *op)
{
	const struct run_op *o = (const struct run_op *)op;

	if (op->rc == 0 && o->log != NULL)
		log_files_settle(o->log, &o->row);
	run_deliver(op);
}

/* End. */

static int
end_check(const struct store_run *r, struct err *e)
{
	if (run_is_unfinished(r->state))
		return err_set(e, ERR_INVAL, "a run cannot end as %s",
		    run_state_word(r->state));
	if (r->digest_len > STORE_DIGEST_MAX)
		return err_set(e, ERR_LIMIT,
		    "a run's end with a digest of %zu bytes is too large",
		    r->digest_len);
	return 0;
}

static int
end_row(struct db *db, const struct store_run *r, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_RUN_END);
	rows_put_run_end(&c, r);
	rc = db_call_run_one(&c, e);
	if (rc != 0)
		return rc == ERR_NOTFOUND ? explain_run(db, r->id, e) : rc;
	return db_exec_with(db, DB_SPEC_DELETE, r->id, e);
}

static int
end_command(
    struct db *db, uint64_t run, const struct store_command *k, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_COMMAND_END);
	db_put_uint(&c, run);
	rows_put_command_end(&c, k);
	rc = db_call_run_one(&c, e);
	if (rc == ERR_NOTFOUND)
		return err_set(e, ERR_NOTFOUND,
		    "run number %llu has no command %u",
		    (unsigned long long)run, k->index);
	return rc;
}

/* As the view run_size has it (schema/sql), without asking for what is here. */
static uint64_t
size_rows(const struct store_run *r, uint64_t asked_bytes, uint64_t path_bytes)
{
	const char *const texts[] = {r->identifier, r->sandbox_name,
	    r->container_id, r->error, r->artifacts_error, r->principal,
	    r->client, r->address, r->session, r->request_id, r->trace};
	uint64_t n = RUN_ROW_BYTES + r->digest_len + r->log_len + asked_bytes;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		n += text_bytes(texts[i]);
	for (uint32_t i = 0; i < r->ncommands; i++)
		n += COMMAND_ROW_BYTES + text_bytes(r->commands[i].error);
	return n + 2 * path_bytes +
	    r->artifacts_total *
	    (ARTIFACT_ROW_BYTES + 2 * text_bytes(r->identifier));
}

/* All of its artifacts, those that were put before, too, and what it takes. */
static int
sum_up(struct db *db, struct run_op *o, struct err *e)
{
	struct store_run *r = &o->row;
	uint64_t path_bytes = 0, asked_bytes = run_texts_sum(r);
	struct db_call c;
	int rc;

	/* What a large run was asked to do is not in memory all the time. */
	if (o->w.op.covers == NULL && r->asked_bytes > STORE_ASKED_KEEP &&
	    run_texts_bytes(db, r->id, &asked_bytes, e) != 0)
		return e->code;
	r->artifacts_total = r->nartifacts;
	r->artifact_bytes = 0;
	for (uint32_t i = 0; i < r->nartifacts; i++) {
		r->artifact_bytes += r->artifacts[i].size;
		path_bytes += text_bytes(r->artifacts[i].path);
	}
	r->row_bytes = size_rows(r, asked_bytes, path_bytes);
	if (!r->artifacts_put)
		return 0;
	db_call_init(&c, db, DB_ARTIFACTS_SUM);
	db_put_uint(&c, r->id);
	rc = db_call_step(&c, e);
	if (rc < 0)
		return rc;
	r->artifacts_total = db_get_u32(&c);
	r->artifact_bytes = db_get_uint(&c);
	r->row_bytes = size_rows(r, asked_bytes, db_get_uint(&c));
	db_call_end(&c);
	return 0;
}

/* What is in files, for those who count it. */
static int
end_kept(struct db *db, const struct run_op *o, struct err *e)
{
	const struct store_run *r = &o->row;
	bool has_file = o->log != NULL && r->log == NULL;
	struct db_call c;

	if (!has_file && r->artifacts_total == 0)
		return 0;
	db_call_init(&c, db, DB_KEPT_INSERT);
	db_put_uint(&c, r->id);
	db_put_uint(&c, r->tenant);
	db_put_int(&c, has_file);
	db_put_uint(&c, has_file ? r->spool_bytes : 0);
	db_put_int(&c, r->end_reason == RUNLOG_DISK_FULL);
	db_put_int(&c, o->sync.log_is_lost ? clock_wall_ms() : 0);
	return db_call_run(&c, e);
}

/* A run of which nothing is written yet: it begins as it ended.  Its artifacts
 * refer to its row, and the row counts them. */
static int
end_insert(struct db *db, struct run_op *o, struct err *e)
{
	struct store_run *r = &o->row;

	run_texts_cut(r);
	if (sum_up(db, o, e) != 0 || insert_row(db, r, e) != 0 ||
	    insert_commands(db, r, e) != 0)
		return e->code;
	return artifact_rows_put(db, &o->row, o->sync.lost, e);
}

static int
end_update(struct db *db, struct run_op *o, struct err *e)
{
	const struct store_run *r = &o->row;

	if (artifact_rows_put(db, &o->row, o->sync.lost, e) != 0 ||
	    sum_up(db, o, e) != 0 || end_row(db, r, e) != 0)
		return e->code;
	for (uint32_t i = 0; i < r->ncommands; i++)
		if (end_command(db, r->id, &r->commands[i], e) != 0)
			return e->code;
	return 0;
}

/* The log into the row, when it is short enough. */
static int
end_take_log(struct run_op *o, struct err *e)
{
	struct store_run *r = &o->row;

	free(r->log); /* of a first attempt */
	r->log = NULL;
	if (o->log == NULL || r->spool_bytes > STORE_INLINE_MAX)
		return 0;
	r->log_len = (size_t)r->spool_bytes;
	return log_file_take(o->log, &r->log, &r->log_len, e);
}

static int
end_run(struct db *db, struct op *op, struct err *e)
{
	struct run_op *o = (struct run_op *)op;
	const struct store_run *r = &o->row;
	bool is_new = op->covers != NULL; /* its insertion is ours to do */

	if (end_check(r, e) != 0 || end_take_log(o, e) != 0 ||
	    (is_new ? end_insert(db, o, e) : end_update(db, o, e)) != 0 ||
	    end_kept(db, o, e) != 0 ||
	    tally_add(db, r, r->artifact_bytes, e) != 0 ||
	    event_put_run(db, op, EVENT_RUN_ENDED, r, e) != 0)
		return e->code;
	return r->log != NULL ? 0 : log_file_name(o->log, e);
}

/* On disk, the row has the log; lost, there is no row, if it was to be new. */
static void
end_after(struct db *db, struct op *op)
{
	const struct run_op *o = (const struct run_op *)op;

	(void)db;
	if (op->rc == 0 ? o->row.log != NULL : op->covers != NULL)
		log_file_remove(o->log);
}

/* Submitting. */

static void
run_op_release(struct op *op)
{
	struct run_op *o = (struct run_op *)op;

	store_run_clear(&o->row);
	store_log_close(o->log);
	free(o->sync.lost);
	free(o);
}

static size_t
run_bytes(const struct store_run *r)
{
	size_t n = sizeof(struct run_op) + r->spec_len + r->digest_len +
	    r->nartifacts * (sizeof(*r->artifacts) + 64);

	for (uint32_t i = 0; i < r->ncommands; i++)
		n += sizeof(*r->commands) + strlen(r->commands[i].shell) +
		    strlen(r->commands[i].argv_json) +
		    strlen(r->commands[i].env_json) + 128;
	return n;
}

static struct run_op *
run_op_new(op_run_cb *run, const struct store_run *row, struct store_log *log,
    store_done_cb done, void *arg)
{
	struct run_op *o = xcalloc(1, sizeof(*o));
	struct store_run from = *row;

	from.log = NULL;
	from.log_len = 0;
	store_run_copy(&o->row, &from);
	store_write_init(&o->w, run, run_bytes(&o->row), done, arg);
	o->w.op.deliver = run_deliver;
	o->w.op.release = run_op_release;
	o->log = log == NULL ? NULL : store_log_ref(log);
	return o;
}

static bool
is_begin_of(const struct op *op, const void *arg)
{
	const uint64_t *id = arg;

	return op->run == insert_run &&
	    ((const struct run_op *)op)->row.id == *id;
}

/* To the writer: an end takes its begin along, if that is still held. */
static void
run_op_submit(struct run_op *o)
{
	struct writer *w = o->store->writer;

	if (o->w.op.run == end_run && o->w.op.rc == 0)
		o->w.op.covers = writer_take(w, is_begin_of, &o->row.id);
	writer_submit(w, &o->w.op);
}

static void
synced_deliver(struct op *op)
{
	static struct log_limit limit;
	struct run_op *o = CONTAINER_OF(op, struct run_op, sync.op);

	o->w.op.rc = op->rc;
	o->w.op.why = op->why;
	if (o->sync.log_is_lost || o->sync.lost != NULL)
		log_warn_limited(&limit,
		    "run %llu: the disk did not take its files, they are "
		    "lost: %s",
		    (unsigned long long)o->row.id, op->why.msg);
	o->is_synced = true;
	run_op_submit(o);
}

static void
synced_release(struct op *op)
{
	struct run_op *o = CONTAINER_OF(op, struct run_op, sync.op);

	if (!o->is_synced)
		run_op_release(&o->w.op);
}

/* With its files on the disk. */
static void
run_op_sync(struct store *s, struct run_op *o)
{
	const struct store_run *r = &o->row;
	bool has_file = o->w.op.run == end_run && o->log != NULL &&
	    r->spool_bytes > STORE_INLINE_MAX;

	o->store = s;
	if (!has_file && r->nartifacts == 0) {
		run_op_submit(o);
		return;
	}
	o->sync.op.bytes = o->w.op.bytes;
	o->sync.op.deliver = synced_deliver;
	o->sync.op.release = synced_release;
	if (has_file) {
		o->sync.log = o->log;
		o->sync.name_log = log_file_name;
		o->sync.log_fd = store_log_fd(o->log);
		o->sync.run = r->uuid;
	}
	o->sync.tenant = r->tenant;
	o->sync.blobs = r->artifacts;
	o->sync.nblobs = r->nartifacts;
	syncer_submit(s->syncer, &o->sync);
}

void
store_run_begin(struct store *s, const struct store_run *row,
    struct store_log *log, enum store_when when, store_done_cb done, void *arg)
{
	struct run_op *o;

	if (store_refuse(s, done, arg))
		return;
	o = run_op_new(insert_run, row, log, done, arg);
	o->w.op.after = insert_after;
	if (when == STORE_SOON)
		writer_hold(s->writer, &o->w.op);
	else
		writer_submit(s->writer, &o->w.op);
}

void
store_run_hurry(struct store *s, uint64_t run)
{
	struct op *begin = writer_take(s->writer, is_begin_of, &run);

	if (begin != NULL)
		writer_submit(s->writer, begin);
}

static bool
is_begin_in(const struct op *op, const void *arg)
{
	const uint64_t *sandbox = arg;

	return op->run == insert_run &&
	    ((const struct run_op *)op)->row.sandbox == *sandbox;
}

void
store_run_started(
    struct store *s, const struct store_run *row, enum store_event_times times)
{
	struct op *begin = writer_find(s->writer, is_begin_of, &row->id);
	struct store_event event;

	if (begin != NULL) {
		((struct run_op *)begin)->started_ms = row->started_ms;
		return;
	}
	event_of_run(EVENT_RUN_STARTED, row, &event);
	store_event_note(s, &event, times);
	store_event_clear(&event);
}

void
runs_hurry(struct store *s, uint64_t sandbox)
{
	struct op *begin;

	while ((begin = writer_take(s->writer, is_begin_in, &sandbox)) != NULL)
		writer_submit(s->writer, begin);
}

void
store_run_move(struct store *s, uint64_t run, uint64_t sandbox,
    const char *sandbox_name, store_done_cb done, void *arg)
{
	struct move_op *op = xcalloc(1, sizeof(*op));

	store_run_hurry(s, run);
	store_write_init(&op->w, move_run, sizeof(*op), done, arg);
	op->w.op.release = move_release;
	op->run = run;
	op->sandbox = sandbox;
	op->sandbox_name = xstrdup(sandbox_name);
	writer_submit(s->writer, &op->w.op);
}

struct store_putting *
store_artifacts_put(struct store *s, const struct store_run *row,
    struct store_log *log, store_done_cb done, void *arg)
{
	struct run_op *o = run_op_new(put_run, row, log, done, arg);

	store_run_hurry(s, row->id);
	o->w.op.deliver = put_deliver;
	run_op_sync(s, o);
	return (struct store_putting *)o;
}

static void
nobody_cb(int rc, const struct err *why, void *arg)
{
	(void)rc;
	(void)why;
	(void)arg;
}

void
store_putting_cancel(struct store_putting *p)
{
	((struct run_op *)p)->w.done = nobody_cb;
}

void
store_run_end(struct store *s, const struct store_run *row,
    struct store_log *log, store_done_cb done, void *arg)
{
	struct run_op *o = run_op_new(end_run, row, log, done, arg);

	o->w.op.after = end_after;
	o->w.op.deliver = put_deliver;
	run_op_sync(s, o);
}

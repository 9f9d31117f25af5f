/*
 * store.c - opening and closing, in order, and what all writes share
 *
 * Open: the directories are locked, then the database is looked at, marked if
 * it is new, migrated; then the threads start, and the looks for leftovers and
 * for losses.
 * Close: the reader, then the syncer and the writer with all they have, then
 * what ops still refer to (done queue, wanted files, spool).
 */
#include "supervisor/store/store.h"

#include <sys/stat.h>
#include <stdio.h>

#include "common/embed.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/done.h"
#include "supervisor/store/identity.h"
#include "supervisor/store/leftovers.h"
#include "supervisor/store/losses.h"
#include "supervisor/store/migrate.h"
#include "supervisor/store/reader.h"
#include "supervisor/store/spool.h"
#include "supervisor/store/store_int.h"
#include "supervisor/store/syncer.h"
#include "supervisor/store/wanted.h"
#include "supervisor/store/writer.h"

#define LOOK_MS 1000
#define TIDY_MS 5

/* Files beside a database that is made only now are nobody's leftovers: it may
 * have been moved away, to be put back. */
static int
keep_unknown_files(struct spool *spool, struct db *db, struct err *e)
{
	int64_t version;
	int rc = db_exec_int(db, DB_GET_VERSION, &version, e);

	return rc == 0 && version == 0 ? spool_keep_all(spool, e) : rc;
}

/* Open, and bring up to date, in an order that leaves alien files alone. */
static int
open_writer(struct store *s, const struct store_progress *p, struct db **out,
    struct err *e)
{
	struct db *db;
	int rc = db_open(s->dir, DB_WRITER, &db, e);

	if (rc != 0)
		return rc;
	rc = migrate_check(db, embed_sql, e);
	if (rc == 0)
		rc = keep_unknown_files(s->spool, db, e);
	if (rc == 0)
		rc = db_exec(db, DB_SET_AUTO_VACUUM, e);
	if (rc == 0)
		rc = db_use_wal(db, e);
	if (rc == 0)
		rc = migrate_run(db, embed_sql, p, e);
	if (rc != 0) {
		db_close(db);
		return rc;
	}
	*out = db;
	return 0;
}

static int
start_threads(struct event_base *base, struct store *s,
    const struct store_progress *p, struct err *e)
{
	struct db *db;
	int rc = open_writer(s, p, &db, e);

	if (rc != 0)
		return rc;
	s->history = history_new(s->dir, s->done);
	db_watch_runs(db, history_feed(s->history));
	rc = identity_new(s->dir, &s->identity, e);
	if (rc != 0)
		db_close(db);
	if (rc == 0)
		rc =
		    writer_start(base, db, s->identity, s->done, &s->writer, e);
	if (rc == 0)
		rc = syncer_start(base, s->spool, &s->syncer, e);
	if (rc == 0)
		rc = db_open(s->dir, DB_READER, &db, e);
	if (rc == 0)
		rc = reader_start(db, s->done, &s->reader, e);
	if (rc == 0)
		rc = history_start(s->history, s->spool, e);
	return rc;
}

/* ---- what happens to the files */

static void
tell_damaged(const struct err *why, void *arg)
{
	struct store *s = arg;
	void (*cb)(const struct err *, void *) = s->on_damaged;

	s->on_damaged = NULL;
	if (cb != NULL)
		cb(why, s->on_damaged_arg);
}

static void
look_cb(void *arg)
{
	struct store *s = arg;
	struct err why;

	timer_set_ms(s->look, LOOK_MS);
	if (identity_check(s->identity, &why) != 0)
		tell_damaged(&why, s);
}

static void
tidy_cb(void *arg)
{
	struct store *s = arg;

	spool_tidy(s->spool);
}

void
store_tidy_soon(struct store *s)
{
	if (s->tidy != NULL && !spool_is_tidy(s->spool) &&
	    !timer_is_set(s->tidy))
		timer_set_ms(s->tidy, TIDY_MS);
}

void
store_on_damaged(
    struct store *s, void (*cb)(const struct err *why, void *arg), void *arg)
{
	s->on_damaged = cb;
	s->on_damaged_arg = arg;
}

/* ---- life */

int
store_open_slow(struct event_base *base, const char *dir, const char *artifacts,
    const struct store_progress *p, struct store **out, struct err *e)
{
	struct err why = {0};
	struct store *s;
	int rc = fd_mkdir_all(dir, 0700, &why);

	if (rc != 0)
		return err_set(e, rc, "data directory %s", why.msg);
	s = xcalloc(1, sizeof(*s));
	s->dir = xstrdup(dir);
	s->audit_keep = STORE_AUDIT_KEEP;
	s->wanted = wanted_new();
	(void)pthread_mutex_init(&s->names, NULL);
	rc = spool_open(dir, artifacts, &s->spool, &why);
	if (rc == 0)
		rc = done_new(base, &s->done, &why);
	if (rc == 0)
		rc = start_threads(base, s, p, &why);
	if (rc != 0) {
		store_close(s);
		return err_set(e, rc, "%s", why.msg);
	}
	done_on_damaged(s->done, tell_damaged, s);
	s->look = timer_new(base, look_cb, s);
	timer_set_ms(s->look, LOOK_MS);
	s->tidy = timer_new(base, tidy_cb, s);
	leftovers_sweep(s);
	losses_start(base, s);
	*out = s;
	return 0;
}

int
store_open(struct event_base *base, const char *dir, const char *artifacts,
    struct store **out, struct err *e)
{
	return store_open_slow(base, dir, artifacts, NULL, out, e);
}

void
store_close(struct store *s)
{
	struct writer *w;

	if (s == NULL)
		return;
	timer_free(s->look);
	timer_free(s->tidy);
	s->tidy = NULL;
	/* Who reads first: nobody must be in the last checkpoint's way. */
	history_stop(s->history);
	if (s->reader != NULL)
		reader_stop(s->reader);
	losses_stop(s->losses);
	s->losses = NULL;
	/* What it has goes to the writer. */
	syncer_stop(s->syncer);
	s->syncer = NULL;
	w = s->writer;
	s->writer = NULL; /* what is released now submits nothing more */
	if (w != NULL)
		writer_stop(w);
	history_free(s->history); /* the writer told it all */
	done_free(s->done);
	identity_free(s->identity);
	wanted_free(s->wanted);
	spool_close(s->spool);
	(void)pthread_mutex_destroy(&s->names);
	free(s->dir);
	free(s);
}

void
store_stats(const struct store *s, struct store_stats *out)
{
	writer_stats(s->writer, out);
}

static void
room_of(int fd, struct room *out)
{
	if (room_read(fd, out) != 0)
		*out = (struct room){UINT64_MAX, UINT64_MAX};
}

void
store_room(const struct store *s, struct store_room *out)
{
	room_of(spool_data_fd(s->spool), &out->data);
	room_of(spool_artifacts_fd(s->spool), &out->artifacts);
	out->is_apart = spool_is_apart(s->spool);
	out->owed_bytes = writer_wal_bytes(s->writer);
}

void
store_read_submit(struct store *s, struct op *op, op_run_cb *run,
    void (*deliver)(struct op *op), void (*release)(struct op *op))
{
	op->run = run;
	op->deliver = deliver;
	op->release = release;
	reader_submit(s->reader, op);
}

int
store_read_now(struct store *s,
    int (*read)(struct db *db, void *out, struct err *e), void *out,
    struct err *e)
{
	struct err why = {0};
	struct db *db;
	int rc = db_open(s->dir, DB_READER, &db, &why);

	if (rc == 0) {
		rc = db_exec(db, DB_BEGIN_READ, &why);
		if (rc == 0)
			rc = read(db, out, &why);
		db_close(db);
	}
	return rc == 0 ? 0 : err_set(e, rc, "%s", why.msg);
}

/* Writes in general. */

void
store_write_deliver(struct op *op)
{
	struct write_op *w = (struct write_op *)op;
	static struct log_limit limit;

	if (w->done != NULL)
		w->done(op->rc, op_why(op), w->arg);
	else if (op->rc != 0)
		log_warn_limited(&limit, "store: %s", op->why.msg);
}

void
store_write_init(struct write_op *w, op_run_cb *run, size_t bytes,
    store_done_cb done, void *arg)
{
	w->op.run = run;
	w->op.deliver = store_write_deliver;
	w->op.again = true;
	w->op.bytes = bytes;
	w->done = done;
	w->arg = arg;
}

bool
store_refuse(struct store *s, store_done_cb done, void *arg)
{
	struct write_op *w;

	if (!writer_is_full(s->writer) && !syncer_is_full(s->syncer))
		return false;
	/* Through the queue all the same: callbacks come in order. */
	w = xcalloc(1, sizeof(*w));
	store_write_init(w, NULL, 0, done, arg);
	w->op.rc = err_set(&w->op.why, ERR_LIMIT,
	    "database: too many writes wait: try again later");
	writer_submit(s->writer, &w->op);
	return true;
}

/* ---- the instance */

static int
read_instance(struct db *db, void *out, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_INSTANCE_GET);
	rc = db_call_step(&c, e);
	if (rc != 1)
		return rc;
	(void)snprintf(out, STORE_INSTANCE_MAX + 1, "%s", db_get_word(&c));
	db_call_end(&c);
	return 0;
}

int
store_instance(struct store *s, char out[STORE_INSTANCE_MAX + 1], struct err *e)
{
	out[0] = '\0';
	return store_read_now(s, read_instance, out, e);
}

struct instance_op {
	struct write_op w;
	char id[STORE_INSTANCE_MAX + 1];
};

static int
instance_put_run(struct db *db, struct op *op, struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, DB_INSTANCE_PUT);
	db_put_text(&c, ((struct instance_op *)op)->id);
	return db_call_run(&c, e);
}

void
store_instance_put(
    struct store *s, const char *id, store_done_cb done, void *arg)
{
	struct instance_op *op;

	if (store_refuse(s, done, arg))
		return;
	op = xcalloc(1, sizeof(*op));
	store_write_init(&op->w, instance_put_run, sizeof(*op), done, arg);
	(void)snprintf(op->id, sizeof(op->id), "%s", id);
	writer_submit(s->writer, &op->w.op);
}

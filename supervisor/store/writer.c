/*
 * writer.c - the writer's thread, and what is held before it
 *
 * An op's way: held on the loop's thread, perhaps -> the queue -> a batch
 * (begin, each op, commit) -> each op's after -> the done queue -> delivered
 * and released on the loop's thread.
 *
 * A batch is run without savepoints, of which each copies the pages that its
 * op writes to.  When an op fails, all is undone and begun anew, each op in a
 * savepoint.  Those that cannot be run twice (op.h, again) have one at once.
 *
 * Between two batches the thread copies the WAL into the database when that is
 * due (checkpoint.h), and gives back the file's free pages (vacuum.h).
 */
#include "supervisor/store/writer.h"

#include <stdatomic.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/metric.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "supervisor/store/checkpoint.h"
#include "supervisor/store/db.h"
#include "supervisor/store/done.h"
#include "supervisor/store/identity.h"
#include "supervisor/store/queue.h"
#include "supervisor/store/tally.h"
#include "supervisor/store/vacuum.h"

struct writer {
	struct op *held; /* on the loop's thread, the oldest first */
	struct op **held_tail;
	atomic_uint nheld;
	struct timer *timer;              /* for the oldest */
	struct op *riders[WRITER_NSEATS]; /* on the loop's thread, too */
	struct timer *ride;
	struct queue queue;
	pthread_t thread;
	struct db *db;
	const struct identity *identity; /* or NULL */
	struct done *done;
	struct checkpoint checkpoint;
	struct vacuum vacuum;
	_Atomic uint64_t wal_bytes; /* that are not in the database yet */
	pthread_mutex_t mutex;      /* for stats */
	struct store_stats stats;
};

/* A failure that is nobody's: logged by the loop's thread. */

static void
notice_deliver(struct op *op)
{
	static struct log_limit limit;

	log_warn_limited(&limit, "store: %s", op->why.msg);
}

static void
notice_push(struct writer *w, const struct err *why)
{
	struct op *op = xcalloc(1, sizeof(*op));

	op->deliver = notice_deliver;
	op->rc = why->code;
	op->why = *why;
	done_push(w->done, op);
}

/* A batch. */

static bool
op_wants_run(const struct op *op)
{
	return op->rc == 0 && op->run != NULL;
}

/* Alone: its failure is its own.  Negative: the batch is lost. */
static int
op_run_saved(struct db *db, struct op *op, struct err *e)
{
	int rc = db_exec(db, DB_SAVEPOINT, e);

	if (rc != 0)
		return rc;
	op->rc = op->run(db, op, &op->why);
	if (op->rc == 0)
		op->rc = tally_flush(db, &op->why);
	if (op->rc == 0)
		return db_exec(db, DB_RELEASE, e);
	tally_drop(db);
	if (db_is_doomed(db)) {
		*e = op->why;
		return op->rc;
	}
	rc = db_exec(db, DB_ROLLBACK_TO, e);
	return rc != 0 ? rc : db_exec(db, DB_RELEASE, e);
}

static int
batch_run_saved(struct db *db, struct op *list, struct err *e)
{
	int rc = 0;

	for (struct op *op = list; op != NULL && rc == 0; op = op->next)
		if (op_wants_run(op))
			rc = op_run_saved(db, op, e);
	return rc;
}

static bool
batch_is_plain(const struct op *list)
{
	for (; list != NULL; list = list->next)
		if (op_wants_run(list) && !list->again)
			return false;
	return true;
}

static int
batch_run_plain(struct db *db, struct op *list, struct err *e)
{
	int rc = 0;

	for (struct op *op = list; op != NULL && rc == 0; op = op->next) {
		if (!op_wants_run(op))
			continue;
		rc = op->run(db, op, e);
		/* The next would be on its own. */
		if (rc == 0 && !db_is_begun(db))
			rc = err_set(e, ERR_DB, "database: rolled back");
	}
	return rc != 0 ? rc : tally_flush(db, e);
}

static int
batch_run_ops(struct db *db, struct op *list, struct err *e)
{
	int rc;

	if (!batch_is_plain(list))
		return batch_run_saved(db, list, e);
	rc = batch_run_plain(db, list, e);
	if (rc == 0 || db_is_doomed(db))
		return rc;
	db_rollback(db);
	tally_drop(db);
	rc = db_begin(db, e);
	return rc != 0 ? rc : batch_run_saved(db, list, e);
}

static int
batch_run(struct db *db, struct op *list, struct err *e)
{
	uint64_t began_us = clock_mono_us();
	int rc = db_begin(db, e);

	if (rc == 0)
		rc = batch_run_ops(db, list, e);
	if (rc == 0)
		rc = db_exec(db, DB_COMMIT, e);
	if (rc != 0) {
		db_rollback(db);
		tally_drop(db);
	} else {
		(void)metric_observe(
		    FAMILY_STORE_COMMIT_SECONDS, 0, clock_mono_us() - began_us);
	}
	return rc;
}

/* What failed by itself keeps its own reason. */
static void
batch_fail(struct op *list, int rc, const struct err *why)
{
	for (struct op *op = list; op != NULL; op = op->next) {
		if (!op_wants_run(op))
			continue;
		op->rc = rc;
		op->why = *why;
	}
}

static void
batch_count(struct writer *w, const struct op *list, int rc)
{
	uint64_t good = 0, bad = 0;
	bool broken = rc != 0;

	for (const struct op *op = list; op != NULL; op = op->next) {
		good += op_wants_run(op);
		bad += op->rc != 0;
		broken = broken || op->rc == ERR_DB || op->rc == ERR_DAMAGED;
	}
	(void)pthread_mutex_lock(&w->mutex);
	w->stats.writes += good;
	w->stats.failures += bad;
	w->stats.commits += rc == 0;
	if (broken)
		w->stats.last_error_ms = (uint64_t)clock_wall_ms();
	(void)pthread_mutex_unlock(&w->mutex);
}

/* What ops covered goes the same way, right before them. */
static struct op *
batch_uncover(struct op *list)
{
	for (struct op **at = &list; *at != NULL; at = &(*at)->next) {
		struct op *op = *at, *covered = op->covers;

		if (covered == NULL)
			continue;
		op->covers = NULL;
		covered->rc = op->rc;
		covered->why = op->why;
		covered->next = op;
		*at = covered;
		at = &covered->next;
	}
	return list;
}

/* For who asks on another thread. */
static void
wal_count(struct writer *w)
{
	atomic_store_explicit(
	    &w->wal_bytes, db_wal_bytes(w->db), memory_order_relaxed);
}

/* The transaction, if any op wants one. */
static void
batch_commit(struct writer *w, struct op *list)
{
	struct err why = {0};
	int rc = batch_run(w->db, list, &why);

	if (rc == 0 && w->identity != NULL)
		rc = identity_check_told(w->identity, &why);
	if (rc != 0)
		batch_fail(list, rc, &why);
	batch_count(w, list, rc);
	checkpoint_on_write(&w->checkpoint, clock_mono_ms());
	vacuum_on_write(&w->vacuum, clock_mono_ms());
	wal_count(w);
}

static void
writer_batch(struct writer *w, struct op *list)
{
	const struct op *wants = list;

	while (wants != NULL && !op_wants_run(wants))
		wants = wants->next;
	if (wants != NULL)
		batch_commit(w, list);
	for (struct op *op = list; op != NULL; op = op->next)
		if (op->after != NULL)
			op->after(w->db, op);
	done_push(w->done, batch_uncover(list));
}

static void
writer_checkpoint(struct writer *w, enum checkpoint_kind kind)
{
	struct err why;
	int rc = db_checkpoint(w->db,
	    kind == CHECKPOINT_REUSE ? DB_WAL_REUSE : DB_WAL_TRUNCATE, &why);

	if (rc == 0) {
		wal_count(w);
		checkpoint_on_done(&w->checkpoint, kind);
		if (kind == CHECKPOINT_TRUNCATE)
			db_rest(w->db);
		return;
	}
	checkpoint_on_failure(&w->checkpoint, clock_mono_ms());
	if (rc == ERR_CONFLICT)
		return;
	(void)err_wrap(&why, "checkpoint");
	notice_push(w, &why);
}

/* When no op waits. */
static void
writer_vacuum(struct writer *w)
{
	const bool was_hurried = w->vacuum.is_hurried;
	uint64_t now = clock_mono_ms();
	bool moved = false;
	struct err why;

	if (vacuum_wait_ms(&w->vacuum, now) > 0)
		return;
	if (vacuum_turn(&w->vacuum, w->db, now, &moved, &why) != 0) {
		(void)err_wrap(&why, "free pages stay in the file");
		notice_push(w, &why);
	}
	if (moved) {
		checkpoint_on_write(&w->checkpoint, now);
		wal_count(w);
	}
	/* What it gave back leaves the disk now. */
	if (was_hurried && !w->vacuum.is_hurried)
		checkpoint_hurry(&w->checkpoint);
}

void
writer_shrink(struct writer *w)
{
	vacuum_hurry(&w->vacuum, clock_mono_ms());
}

/* Whose end is near will wait for the disk, too: with this one, if it can. */
static void
writer_gather(struct writer *w)
{
	uint64_t all = atomic_load_explicit(&w->nheld, memory_order_relaxed) +
	    queue_count(&w->queue, NULL);

	if (all >= WRITER_MANY)
		queue_gather(&w->queue, all - all / 4, WRITER_GATHER_US);
}

static void *
writer_main(void *arg)
{
	struct writer *w = arg;
	enum checkpoint_kind kind = CHECKPOINT_TRUNCATE;
	uint64_t wait_ms, vacuum_ms;
	struct op *list;

	checkpoint_init(&w->checkpoint, clock_mono_ms());
	vacuum_on_write(&w->vacuum, clock_mono_ms());
	for (;;) {
		wait_ms = checkpoint_wait_ms(&w->checkpoint,
		    db_wal_bytes(w->db), clock_mono_ms(), &kind);
		if (wait_ms == 0) {
			writer_checkpoint(w, kind);
			continue;
		}
		vacuum_ms = vacuum_wait_ms(&w->vacuum, clock_mono_ms());
		if (queue_wait(
			&w->queue, wait_ms < vacuum_ms ? wait_ms : vacuum_ms))
			writer_gather(w);
		list = queue_take(&w->queue, WRITER_BATCH_MAX, 0);
		if (list != NULL)
			writer_batch(w, list);
		else if (queue_is_stopped(&w->queue))
			break;
		if (list == NULL || w->vacuum.is_hurried)
			writer_vacuum(w);
	}
	writer_checkpoint(w, CHECKPOINT_TRUNCATE);
	return NULL;
}

/* From the loop's thread. */

/* Only the loop's thread changes it. */
static void
held_count(struct writer *w, int change)
{
	atomic_store_explicit(
	    &w->nheld, w->nheld + (unsigned int)change, memory_order_relaxed);
}

/* The first n held ones. */
static void
held_go(struct writer *w, size_t n)
{
	struct op *first = w->held, **at = &w->held;

	while (n-- > 0 && *at != NULL) {
		at = &(*at)->next;
		held_count(w, -1);
	}
	if (at == &w->held)
		return;
	w->held = *at;
	if (w->held == NULL)
		w->held_tail = &w->held;
	*at = NULL;
	queue_push(&w->queue, first);
}

/* Those that are due; the timer then waits for the next. */
static void
on_due(void *arg)
{
	struct writer *w = arg;
	uint64_t now = clock_mono_ms();
	size_t n = 0;

	for (const struct op *op = w->held; op != NULL; op = op->next)
		n += op->due_ms <= now;
	held_go(w, n);
	if (w->held != NULL)
		timer_set_ms(w->timer, w->held->due_ms - now);
}

/* ---- one that goes with the next */

static void
writer_push(struct writer *w, struct op *list)
{
	for (size_t i = 0; i < WRITER_NSEATS; i++) {
		struct op *rider = w->riders[i];

		if (rider == NULL)
			continue;
		w->riders[i] = NULL;
		timer_stop(w->ride);
		rider->next = list;
		list = rider;
	}
	if (list != NULL)
		queue_push(&w->queue, list);
}

static void
ride_cb(void *arg)
{
	writer_push(arg, NULL);
}

void
writer_ride(struct writer *w, enum writer_seat seat, struct op *op)
{
	op->next = NULL;
	w->riders[seat] = op;
	if (!timer_is_set(w->ride))
		timer_set_ms(w->ride, WRITER_SOON_MS);
}

struct op *
writer_rider(struct writer *w, enum writer_seat seat)
{
	return w->riders[seat];
}

void
writer_send_riders(struct writer *w)
{
	writer_push(w, NULL);
}

int
writer_start(struct event_base *base, struct db *db, const struct identity *id,
    struct done *done, struct writer **out, struct err *e)
{
	struct writer *w = xcalloc(1, sizeof(*w));
	int rc;

	w->held_tail = &w->held;
	w->timer = timer_new(base, on_due, w);
	w->ride = timer_new(base, ride_cb, w);
	queue_init(&w->queue);
	(void)pthread_mutex_init(&w->mutex, NULL);
	w->db = db;
	w->identity = id;
	w->done = done;
	rc = queue_thread(&w->thread, writer_main, w, e);
	if (rc != 0) {
		timer_free(w->timer);
		timer_free(w->ride);
		queue_clear(&w->queue);
		(void)pthread_mutex_destroy(&w->mutex);
		db_close(w->db);
		free(w);
		return rc;
	}
	*out = w;
	return 0;
}

void
writer_stop(struct writer *w)
{
	writer_let_go(w);
	writer_send_riders(w);
	timer_free(w->timer);
	timer_free(w->ride);
	queue_stop(&w->queue);
	(void)pthread_join(w->thread, NULL);
	db_close(w->db);
	queue_clear(&w->queue);
	(void)pthread_mutex_destroy(&w->mutex);
	free(w);
}

void
writer_submit(struct writer *w, struct op *op)
{
	op->next = NULL;
	writer_push(w, op);
}

void
writer_hold(struct writer *w, struct op *op)
{
	op->due_ms = clock_mono_ms() + WRITER_SOON_MS;
	op->next = NULL;
	if (w->held == NULL)
		timer_set_ms(w->timer, WRITER_SOON_MS);
	*w->held_tail = op;
	w->held_tail = &op->next;
	held_count(w, 1);
}

struct op *
writer_take(struct writer *w,
    bool (*is_it)(const struct op *op, const void *arg), const void *arg)
{
	struct op **at, *op;

	for (at = &w->held; *at != NULL; at = &(*at)->next)
		if (is_it(*at, arg))
			break;
	op = *at;
	if (op == NULL)
		return NULL;
	*at = op->next;
	if (op->next == NULL)
		w->held_tail = at;
	op->next = NULL;
	held_count(w, -1);
	return op;
}

struct op *
writer_find(struct writer *w,
    bool (*is_it)(const struct op *op, const void *arg), const void *arg)
{
	struct op *op = w->held;

	while (op != NULL && !is_it(op, arg))
		op = op->next;
	return op;
}

void
writer_let_go(struct writer *w)
{
	held_go(w, SIZE_MAX);
}

bool
writer_is_full(struct writer *w)
{
	return queue_is_full(&w->queue);
}

uint64_t
writer_wal_bytes(const struct writer *w)
{
	return atomic_load_explicit(&w->wal_bytes, memory_order_relaxed);
}

void
writer_stats(struct writer *w, struct store_stats *out)
{
	(void)pthread_mutex_lock(&w->mutex);
	*out = w->stats;
	(void)pthread_mutex_unlock(&w->mutex);
	out->queue = queue_count(&w->queue, NULL);
}

#include "supervisor/store/history_readers.h"

#include <pthread.h>

#include "common/clock.h"
#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/queue.h"

struct history_readers {
	pthread_mutex_t mutex;
	pthread_cond_t cond;       /* somebody ended, or the gap closed */
	atomic_bool *reads[NLANE]; /* what stops it; NULL: it does not read */
	bool is_gap;
	uint64_t wish_until_ms; /* of the index, for a gap */
	/* Of the index's thread alone: another program read in the last one. */
	uint64_t not_before_ms;
};

struct history_readers *
readers_new(void)
{
	struct history_readers *r = xcalloc(1, sizeof(*r));

	(void)pthread_mutex_init(&r->mutex, NULL);
	queue_cond_init(&r->cond);
	return r;
}

void
readers_free(struct history_readers *r)
{
	if (r == NULL)
		return;
	(void)pthread_cond_destroy(&r->cond);
	(void)pthread_mutex_destroy(&r->mutex);
	free(r);
}

void
readers_begin(
    struct history_readers *r, enum history_lane lane, atomic_bool *is_stopped)
{
	(void)pthread_mutex_lock(&r->mutex);
	while (lane == LANE_SLOW && r->wish_until_ms > clock_mono_ms())
		(void)queue_cond_wait(
		    &r->cond, &r->mutex, r->wish_until_ms * 1000);
	while (r->is_gap)
		(void)pthread_cond_wait(&r->cond, &r->mutex);
	r->reads[lane] = is_stopped;
	(void)pthread_mutex_unlock(&r->mutex);
}

void
readers_end(struct history_readers *r, enum history_lane lane)
{
	(void)pthread_mutex_lock(&r->mutex);
	r->reads[lane] = NULL;
	(void)pthread_cond_broadcast(&r->cond);
	(void)pthread_mutex_unlock(&r->mutex);
}

bool
readers_seek_gap(struct history_readers *r)
{
	const uint64_t now = clock_mono_ms(), until = now + READERS_GAP_MS;
	bool is_gap;

	(void)pthread_mutex_lock(&r->mutex);
	r->wish_until_ms = now + READERS_WISH_MS;
	r->is_gap = r->reads[LANE_SLOW] == NULL;
	while (r->is_gap && r->reads[LANE_QUICK] != NULL &&
	    clock_mono_ms() < until)
		(void)queue_cond_wait(&r->cond, &r->mutex, until * 1000);
	if (r->is_gap && r->reads[LANE_QUICK] != NULL) {
		r->is_gap = false;
		(void)pthread_cond_broadcast(&r->cond);
	}
	is_gap = r->is_gap;
	(void)pthread_mutex_unlock(&r->mutex);
	return is_gap;
}

void
readers_close_gap(struct history_readers *r)
{
	(void)pthread_mutex_lock(&r->mutex);
	r->is_gap = false;
	r->wish_until_ms = 0;
	(void)pthread_cond_broadcast(&r->cond);
	(void)pthread_mutex_unlock(&r->mutex);
}

void
readers_interrupt(struct history_readers *r)
{
	(void)pthread_mutex_lock(&r->mutex);
	if (r->reads[LANE_SLOW] != NULL)
		atomic_store(r->reads[LANE_SLOW], true);
	(void)pthread_mutex_unlock(&r->mutex);
}

/* 1: somebody reads. */
static int
checkpoint_in_gap(
    struct history_readers *r, struct db *db, enum db_wal wal, struct err *e)
{
	int rc;

	if (clock_mono_ms() < r->not_before_ms || !readers_seek_gap(r))
		return 1;
	rc = db_checkpoint(db, wal, e);
	readers_close_gap(r);
	if (rc != ERR_CONFLICT)
		return rc;
	r->not_before_ms = clock_mono_ms() + READERS_AGAIN_MS;
	return 1;
}

/* What is far beyond the bound is cut off: to be written from its beginning
 * gives nothing of a file back. */
int
readers_bound_wal(
    struct history_readers *r, struct db *db, bool *is_due, struct err *e)
{
	int rc;

	if (db_wal_bytes(db) <= READERS_WAL_BYTES)
		return 0;
	rc = checkpoint_in_gap(r, db,
	    db_wal_size(db) > 2 * READERS_WAL_BYTES ? DB_WAL_TRUNCATE :
						      DB_WAL_REUSE,
	    e);
	if (rc == 1 && db_wal_bytes(db) > READERS_WAL_MAX)
		readers_interrupt(r);
	*is_due = *is_due || rc == 1;
	return rc == 1 ? 0 : rc;
}

int
readers_empty_wal(
    struct history_readers *r, struct db *db, bool *is_due, struct err *e)
{
	int rc = checkpoint_in_gap(r, db, DB_WAL_TRUNCATE, e);

	*is_due = rc == 1;
	return rc == 1 ? 0 : rc;
}

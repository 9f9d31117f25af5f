/*
 * syncer.c - a batch: names, then bytes, then directories
 *
 * A log has no name before (log_files.h); a blob has had its own since it was
 * committed.  The writing of all files of a batch is begun before the first is
 * waited for, so that one commit of the file system's journal does for most.
 *
 * A directory is synced after each name in it.  Those above it had to be made
 * once: they are synced with the first file below them since the start, for an
 * earlier life may have made them and not come so far.
 */
#include "supervisor/store/syncer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "common/hashmap.h"
#include "common/xmalloc.h"
#include "supervisor/store/done.h"
#include "supervisor/store/queue.h"
#include "supervisor/store/spool.h"
#include "supervisor/store/store.h"

/* Which buckets' own names are on the disk: of a tenant, or (0) of logs. */
struct synced_dirs {
	struct hash_entry by_tenant;
	uint64_t buckets[4];
};

struct syncer {
	struct spool *spool;
	struct queue queue;
	pthread_t thread;
	struct done *done;
	struct hashmap synced; /* the thread's */
};

/* ---- directories */

static struct synced_dirs *
find_synced(struct syncer *y, uint64_t tenant)
{
	return HASH_OBJECT(
	    hashmap_get_u64(&y->synced, tenant), struct synced_dirs, by_tenant);
}

static enum spool_depth
depth_of(struct syncer *y, uint64_t tenant, uint8_t bucket)
{
	const struct synced_dirs *d = find_synced(y, tenant);

	return d == NULL ||
		(d->buckets[bucket / 64] & UINT64_C(1) << bucket % 64) == 0 ?
	    SPOOL_TO_ROOT :
	    SPOOL_BUCKET;
}

static void
note_synced(struct syncer *y, uint64_t tenant, uint8_t bucket)
{
	struct synced_dirs *d = find_synced(y, tenant);

	if (d == NULL) {
		d = xcalloc(1, sizeof(*d));
		hashmap_put(&y->synced, &d->by_tenant, hashmap_key_u64(tenant));
	}
	d->buckets[bucket / 64] |= UINT64_C(1) << bucket % 64;
}

/* ---- files */

static int
sync_log(struct syncer *y, const struct syncing *s, struct err *e)
{
	uint8_t bucket = spool_log_bucket(&s->run);
	int rc = spool_log_sync(
	    y->spool, s->log_fd, &s->run, depth_of(y, 0, bucket), e);

	if (rc == 0)
		note_synced(y, 0, bucket);
	return rc;
}

static int
sync_blob(
    struct syncer *y, uint64_t tenant, const uint8_t sha256[32], struct err *e)
{
	int rc = spool_blob_sync(
	    y->spool, tenant, sha256, depth_of(y, tenant, sha256[0]), e);

	if (rc == 0)
		note_synced(y, tenant, sha256[0]);
	return rc;
}

/* ---- a batch */

/* What failed without being lost can be tried again. */
static void
sync_each(struct syncer *y, struct syncing *s)
{
	struct op *op = &s->op;
	int rc;

	if (s->log != NULL && op->rc == 0) {
		rc = sync_log(y, s, &op->why);
		s->log_is_lost = rc == ERR_LOST;
		op->rc = s->log_is_lost ? 0 : rc;
	}
	for (uint32_t i = 0; i < s->nblobs && op->rc == 0; i++) {
		rc = sync_blob(y, s->tenant, s->blobs[i].sha256, &op->why);
		if (rc == ERR_LOST) {
			if (s->lost == NULL)
				s->lost = xcalloc(s->nblobs, sizeof(*s->lost));
			s->lost[i] = true;
		} else if (rc != ERR_NOTFOUND) { /* a reader will say so */
			op->rc = rc;
		}
	}
}

/* Names of logs first; how many files there are. */
static size_t
name_logs(struct op *list)
{
	size_t n = 0;

	for (; list != NULL; list = list->next) {
		const struct syncing *s = (const struct syncing *)list;

		n += (s->log != NULL) + s->nblobs;
		if (s->log != NULL)
			list->rc = s->name_log(s->log, &list->why);
	}
	return n;
}

static void
begin_each(struct syncer *y, const struct op *list)
{
	for (; list != NULL; list = list->next) {
		const struct syncing *s = (const struct syncing *)list;

		if (s->log != NULL)
			(void)sync_file_range(
			    s->log_fd, 0, 0, SYNC_FILE_RANGE_WRITE);
		for (uint32_t i = 0; i < s->nblobs; i++)
			spool_blob_write_out(
			    y->spool, s->tenant, s->blobs[i].sha256);
	}
}

static void
work(struct syncer *y, struct op *list)
{
	size_t n = name_logs(list);

	if (n > SYNCER_EACH_MAX && spool_sync_all(y->spool) == 0)
		return;
	if (n <= SYNCER_EACH_MAX)
		begin_each(y, list);
	for (; list != NULL; list = list->next)
		sync_each(y, (struct syncing *)list);
}

static void *
syncer_main(void *arg)
{
	struct syncer *y = arg;
	struct op *list;

	for (;;) {
		list =
		    queue_take(&y->queue, SYNCER_BATCH_MAX, QUEUE_WAIT_FOREVER);
		if (list != NULL) {
			work(y, list);
			done_push(y->done, list);
		} else if (queue_is_stopped(&y->queue)) {
			return NULL;
		}
	}
}

/* ---- on the loop's thread */

static void
syncer_free(struct syncer *y)
{
	struct hash_entry *en, *next;

	HASHMAP_FOREACH (en, next, &y->synced)
		free(HASH_OF(en, struct synced_dirs, by_tenant));
	hashmap_clear(&y->synced);
	queue_clear(&y->queue);
	done_free(y->done);
	free(y);
}

int
syncer_start(struct event_base *base, struct spool *spool, struct syncer **out,
    struct err *e)
{
	struct syncer *y = xcalloc(1, sizeof(*y));
	int rc;

	y->spool = spool;
	queue_init(&y->queue);
	rc = done_new(base, &y->done, e);
	if (rc == 0)
		rc = queue_thread(&y->thread, syncer_main, y, e);
	if (rc != 0) {
		syncer_free(y);
		return rc;
	}
	*out = y;
	return 0;
}

void
syncer_submit(struct syncer *y, struct syncing *s)
{
	s->op.next = NULL;
	queue_push(&y->queue, &s->op);
}

bool
syncer_is_full(struct syncer *y)
{
	return queue_is_full(&y->queue);
}

void
syncer_stop(struct syncer *y)
{
	if (y == NULL)
		return;
	queue_stop(&y->queue);
	(void)pthread_join(y->thread, NULL);
	done_deliver(y->done);
	syncer_free(y);
}

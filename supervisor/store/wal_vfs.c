#include "supervisor/store/wal_vfs.h"

#include <pthread.h>

#include <sqlite3.h>

#include "common/base.h"

/* The file format, 4.1: a frame is a header and a page; in the header of a
 * commit's last frame bytes 4 to 7 are not all 0. */
#define FRAME_HEADER 24
#define HELD_MAX 65536

/* Behind what the system's VFS keeps of a file. */
struct held {
	sqlite3_io_methods methods; /* the system's, but for some of ours */
	const sqlite3_io_methods *inner;
	struct held *other; /* of a database its WAL, and the other way round */
	sqlite3_file *file;
	uint8_t *bytes; /* of a WAL: to be written at at */
	int n;
	sqlite3_int64 at;
	bool is_last; /* the page that comes ends a commit */
	int failed;   /* what nobody could be told: the next call is */
};

static sqlite3_vfs *system_vfs;
static sqlite3_vfs our_vfs;

static int
system_bytes(void)
{
	return (system_vfs->szOsFile + 15) & ~15;
}

static struct held *
held_of(sqlite3_file *f)
{
	return (void *)((char *)f + system_bytes());
}

/* What could not be written is of a commit that fails by that. */
static int
flush(struct held *h)
{
	int n = h->n;

	h->n = 0;
	h->is_last = false;
	return n == 0 ? SQLITE_OK :
			h->inner->xWrite(h->file, h->bytes, n, h->at);
}

static int
take_failed(struct held *h)
{
	int rc = h->failed;

	h->failed = SQLITE_OK;
	return rc;
}

/* ---- the WAL */

static bool
ends_commit(const uint8_t *header)
{
	return header[4] != 0 || header[5] != 0 || header[6] != 0 ||
	    header[7] != 0;
}

static bool
can_hold(struct held *h, int n)
{
	if (h->bytes == NULL && n < HELD_MAX)
		h->bytes = malloc(HELD_MAX);
	return h->bytes != NULL && n <= HELD_MAX - h->n;
}

static int
hold(struct held *h, const void *p, int n, sqlite3_int64 at)
{
	bool was_last = h->is_last;

	if (h->n == 0)
		h->at = at;
	memcpy(h->bytes + h->n, p, (size_t)n);
	h->n += n;
	h->is_last = n == FRAME_HEADER && ends_commit(p);
	return was_last ? flush(h) : SQLITE_OK;
}

static int
wal_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
	struct held *h = held_of(f);
	bool is_last = h->is_last;
	int rc = take_failed(h);

	if (rc == SQLITE_OK && h->n > 0 &&
	    (at != h->at + h->n || n > HELD_MAX - h->n)) {
		rc = flush(h);
		h->is_last = is_last;
	}
	if (rc != SQLITE_OK)
		return rc;
	return can_hold(h, n) ? hold(h, p, n, at) :
				h->inner->xWrite(f, p, n, at);
}

static int
wal_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
	struct held *h = held_of(f);
	int rc = flush(h);

	return rc != SQLITE_OK ? rc : h->inner->xRead(f, p, n, at);
}

static int
wal_sync(sqlite3_file *f, int flags)
{
	struct held *h = held_of(f);
	int rc = take_failed(h);

	if (rc == SQLITE_OK)
		rc = flush(h);

	return rc != SQLITE_OK ? rc : h->inner->xSync(f, flags);
}

/* Cut to nothing, it rests: so do we. */
static int
wal_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	struct held *h = held_of(f);
	int rc = flush(h);

	free(h->bytes);
	h->bytes = NULL;
	return rc != SQLITE_OK ? rc : h->inner->xTruncate(f, size);
}

static int
wal_size(sqlite3_file *f, sqlite3_int64 *size)
{
	struct held *h = held_of(f);
	int rc = flush(h);

	return rc != SQLITE_OK ? rc : h->inner->xFileSize(f, size);
}

/* What is held now is of no commit. */
static int
wal_close(sqlite3_file *f)
{
	struct held *h = held_of(f);

	free(h->bytes);
	h->bytes = NULL;
	if (h->other != NULL)
		h->other->other = NULL;
	return h->inner->xClose(f);
}

/* ---- the database, whose locks are the WAL's, too */

static int
flush_wal(sqlite3_file *f)
{
	struct held *wal = held_of(f)->other;

	return wal == NULL ? SQLITE_OK : flush(wal);
}

static int
main_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
	/* What is held here was given up by its transaction. */
	if ((flags & SQLITE_SHM_UNLOCK) != 0)
		(void)flush_wal(f);
	return held_of(f)->inner->xShmLock(f, offset, n, flags);
}

static void
main_shm_barrier(sqlite3_file *f)
{
	int rc = flush_wal(f);

	if (rc != SQLITE_OK)
		held_of(f)->other->failed = rc;
	held_of(f)->inner->xShmBarrier(f);
}

/* ---- opening */

static struct held *
put_between(sqlite3_file *f)
{
	struct held *h = held_of(f);

	*h = (struct held){
	    .methods = *f->pMethods, .inner = f->pMethods, .file = f};
	f->pMethods = &h->methods;
	return h;
}

static void
open_wal(sqlite3_file *f, const char *name)
{
	struct held *h = put_between(f);

	h->other = held_of(sqlite3_database_file_object(name));
	h->other->other = h;
	h->methods.xWrite = wal_write;
	h->methods.xRead = wal_read;
	h->methods.xSync = wal_sync;
	h->methods.xTruncate = wal_truncate;
	h->methods.xFileSize = wal_size;
	h->methods.xClose = wal_close;
}

static void
open_main(sqlite3_file *f)
{
	struct held *h = put_between(f);

	h->methods.xShmLock = main_shm_lock;
	h->methods.xShmBarrier = main_shm_barrier;
}

static int
open_cb(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *is)
{
	int rc = system_vfs->xOpen(system_vfs, name, f, flags, is);

	(void)vfs;
	if (rc != SQLITE_OK || f->pMethods == NULL)
		return rc;
	if ((flags & SQLITE_OPEN_WAL) != 0)
		open_wal(f, name);
	else if ((flags & SQLITE_OPEN_MAIN_DB) != 0)
		open_main(f);
	return rc;
}

static void
wal_vfs_register(void)
{
	system_vfs = sqlite3_vfs_find(NULL);
	our_vfs = *system_vfs;
	our_vfs.zName = "wal-by-commits";
	our_vfs.szOsFile = system_bytes() + (int)sizeof(struct held);
	our_vfs.xOpen = open_cb;
	our_vfs.pNext = NULL;
	(void)sqlite3_vfs_register(&our_vfs, 0);
}

const char *
wal_vfs_name(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, wal_vfs_register);
	return our_vfs.zName;
}

#include "supervisor/store/log_files.h"

#include <sys/stat.h>
#include <errno.h>

#include "common/fd.h"
#include "common/log.h"
#include "supervisor/store/leftovers.h"
#include "supervisor/store/spool.h"
#include "supervisor/store/store_int.h"

struct log_coming {
	struct log_coming *next;
	uint32_t file;
};

struct log_blob {
	struct hash_entry by_digest;
	uint64_t tenant;
	uint8_t sha256[32];
};

/* Blobs that come in. */

int
store_blob_begin(struct store_log *l, uint32_t file, struct err *e)
{
	struct log_coming *c;
	int fd = spool_blob_begin(l->store->spool, &l->wanted.run, file, e);

	if (fd < 0)
		return fd;
	for (c = l->coming; c != NULL; c = c->next)
		if (c->file == file)
			return fd; /* once more, from its beginning */
	c = xcalloc(1, sizeof(*c));
	c->file = file;
	c->next = l->coming;
	l->coming = c;
	return fd;
}

static void
coming_forget(struct store_log *l, uint32_t file)
{
	struct log_coming **at = &l->coming, *c;

	while (*at != NULL && (*at)->file != file)
		at = &(*at)->next;
	c = *at;
	if (c == NULL)
		return;
	*at = c->next;
	free(c);
}

int
store_blob_commit(struct store_log *l, uint32_t file, struct tenant_id tenant,
    const uint8_t sha256[32], struct err *e)
{
	struct log_blob *b = xcalloc(1, sizeof(*b));
	int rc;

	b->tenant = tenant.n;
	memcpy(b->sha256, sha256, sizeof(b->sha256));
	/* Wanted before it is there: a trim that removes the same bytes must
	 * do so before the rename, or not at all. */
	wanted_add_blob(l->store->wanted, tenant.n, sha256);
	rc = spool_blob_commit(
	    l->store->spool, &l->wanted.run, file, tenant.n, sha256, e);
	if (rc != 0) {
		wanted_drop_blob(l->store->wanted, tenant.n, sha256);
		free(b);
		store_blob_abort(l, file);
		return rc;
	}
	hashmap_put(&l->blobs, &b->by_digest,
	    hashmap_key_bytes(b->sha256, sizeof(b->sha256)));
	coming_forget(l, file);
	return 0;
}

void
store_blob_abort(struct store_log *l, uint32_t file)
{
	spool_blob_abort(l->store->spool, &l->wanted.run, file);
	coming_forget(l, file);
}

int
store_blob_read(struct store *s, struct tenant_id tenant,
    const uint8_t sha256[32], struct err *e)
{
	return spool_blob_read(s->spool, tenant.n, sha256, e);
}

/* Here, and then counted by a row or not. */

static void
blob_forget(struct store_log *l, struct log_blob *b)
{
	hashmap_del(&l->blobs, &b->by_digest);
	wanted_drop_blob(l->store->wanted, b->tenant, b->sha256);
	free(b);
}

static bool
is_digest(const struct hash_entry *en, const void *key)
{
	return memcmp(HASH_OF(en, const struct log_blob, by_digest)->sha256,
		   key, 32) == 0;
}

void
log_files_settle(struct store_log *l, const struct store_run *row)
{
	struct log_blob *b;

	for (uint32_t i = 0; i < row->nartifacts; i++) {
		const uint8_t *sha256 = row->artifacts[i].sha256;

		b = HASH_OBJECT(
		    hashmap_get(&l->blobs, hashmap_key_bytes(sha256, 32),
			is_digest, sha256),
		    struct log_blob, by_digest);
		if (b != NULL)
			blob_forget(l, b);
	}
}

/* At the last close: files that were begun go, and blobs that no row counts. */
static void
drop_blobs(struct store_log *l)
{
	struct hash_entry *en, *next;
	struct leftovers *left = NULL;

	while (l->coming != NULL)
		store_blob_abort(l, l->coming->file);
	if (l->blobs.count > 0)
		left = leftovers_new(l->store, l->blobs.count);
	HASHMAP_FOREACH (en, next, &l->blobs) {
		struct log_blob *b = HASH_OF(en, struct log_blob, by_digest);

		leftovers_add_blob(left, b->tenant, b->sha256);
		blob_forget(l, b);
	}
	if (left != NULL)
		leftovers_submit(left);
	hashmap_clear(&l->blobs);
}

/* Life, on the loop's thread. */

static struct store_log *
log_new(struct store *s, const struct uuid *run)
{
	struct store_log *l = xcalloc(1, sizeof(*l));

	l->store = s;
	l->refs = 1;
	l->fd = -1;
	l->wanted.run = *run;
	/* Before there can be a file of that name. */
	wanted_add_log(s->wanted, &l->wanted);
	return l;
}

static int
log_opened(
    struct store_log *l, enum log_name name, int fd, struct store_log **out)
{
	if (fd < 0) {
		wanted_drop_log(l->store->wanted, &l->wanted);
		free(l);
		return fd;
	}
	l->fd = fd;
	l->name = name;
	*out = l;
	return 0;
}

int
store_log_open(struct store *s, const struct uuid *run, struct store_log **out,
    struct err *e)
{
	struct store_log *l = log_new(s, run);
	int fd = spool_log_fresh(s->spool, e);

	if (fd != ERR_WRONG_STATE)
		return log_opened(l, LOG_NAMELESS, fd, out);
	/* The file system has no nameless files. */
	return log_opened(
	    l, LOG_NAMED, spool_log_create(s->spool, run, e), out);
}

int
store_log_reopen(struct store *s, const struct uuid *run,
    struct store_log **out, struct err *e)
{
	struct store_log *l = log_new(s, run);

	return log_opened(
	    l, LOG_NAMED, spool_log_create(s->spool, run, e), out);
}

struct store_log *
store_log_ref(struct store_log *l)
{
	l->refs++;
	return l;
}

void
store_log_close(struct store_log *l)
{
	if (l == NULL || --l->refs > 0)
		return;
	drop_blobs(l);
	wanted_drop_log(l->store->wanted, &l->wanted);
	if (l->name == LOG_NAMELESS && !l->is_shared) {
		spool_log_reuse(l->store->spool, l->fd);
		store_tidy_soon(l->store);
	} else {
		(void)close(l->fd);
	}
	free(l->held);
	free(l);
}

void
store_log_share(struct store_log *l)
{
	l->is_shared = true;
}

int
store_log_fd(const struct store_log *l)
{
	return l->fd;
}

uint64_t
store_log_length(const struct store_log *l)
{
	struct stat st;

	if (l->held != NULL)
		return l->nheld;
	return fstat(l->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

void
store_log_hold(struct store_log *l, const uint8_t *p, size_t n, bool is_read)
{
	static struct log_limit limit;
	struct err e;

	if (l->held != NULL || n == 0)
		return;
	l->held = xmemdup(p, n);
	l->nheld = n;
	/* A reader that finds less than it was told says so. */
	if (is_read && fd_write_all(l->fd, p, n, &e) != 0)
		log_warn_limited(
		    &limit, "the log of a run that is followed: %s", e.msg);
}

const uint8_t *
store_log_held(const struct store_log *l, size_t *n)
{
	*n = l->nheld;
	return l->held;
}

int
store_log_read(struct store *s, const struct uuid *run, struct err *e)
{
	return spool_log_read(s->spool, run, e);
}

/* On the writer's thread, and the syncer's. */

int
log_file_name(struct store_log *l, struct err *e)
{
	int rc = 0;

	if (l == NULL)
		return 0;
	(void)pthread_mutex_lock(&l->store->names);
	if (l->name != LOG_NAMED)
		rc = spool_log_name(l->store->spool, l->fd, &l->wanted.run, e);
	if (rc == 0)
		l->name = LOG_NAMED;
	(void)pthread_mutex_unlock(&l->store->names);
	return rc;
}

void
log_file_remove(struct store_log *l)
{
	if (l == NULL)
		return;
	(void)pthread_mutex_lock(&l->store->names);
	if (l->name == LOG_NAMED) {
		spool_log_remove(l->store->spool, &l->wanted.run);
		l->name = LOG_REMOVED;
	}
	(void)pthread_mutex_unlock(&l->store->names);
}

int
log_file_take(
    const struct store_log *l, uint8_t **out, size_t *n, struct err *e)
{
	uint8_t *p;
	ssize_t got;

	if (l->held != NULL) {
		if (*n > l->nheld)
			*n = l->nheld;
		*out = xmemdup(l->held, *n);
		return 0;
	}
	p = xmalloc(*n + 1);
	got = fd_pread_all(l->fd, p, *n, 0, e);
	if (got < 0) {
		free(p);
		return e->code;
	}
	*out = p;
	*n = (size_t)got;
	return 0;
}

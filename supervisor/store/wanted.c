/*
 * wanted.c - two maps under one lock: logs by run, blobs by tenant and digest
 *
 * The loop's thread may wait for the lock.  To take a long file from the disk
 * takes long, and happens with its last descriptor: whoever removes one holds
 * a descriptor until the lock is free again.
 */
#include "supervisor/store/wanted.h"

#include <pthread.h>

#include "common/xmalloc.h"
#include "supervisor/store/spool.h"

struct blob_key {
	uint64_t tenant;
	uint8_t sha256[32];
};

struct wanted_blob {
	struct hash_entry by_key;
	struct blob_key key;
	unsigned int count;
};

struct wanted {
	pthread_mutex_t mutex;
	struct hashmap logs;
	struct hashmap blobs;
};

struct wanted *
wanted_new(void)
{
	struct wanted *w = xcalloc(1, sizeof(*w));

	(void)pthread_mutex_init(&w->mutex, NULL);
	return w;
}

void
wanted_free(struct wanted *w)
{
	struct hash_entry *en, *next;

	if (w == NULL)
		return;
	HASHMAP_FOREACH (en, next, &w->blobs)
		free(HASH_OF(en, struct wanted_blob, by_key));
	hashmap_clear(&w->blobs);
	hashmap_clear(&w->logs);
	(void)pthread_mutex_destroy(&w->mutex);
	free(w);
}

/* Logs. */

static bool
is_run(const struct hash_entry *en, const void *key)
{
	const struct wanted_log *log =
	    HASH_OF(en, const struct wanted_log, by_run);

	return uuid_is_equal(&log->run, key);
}

void
wanted_add_log(struct wanted *w, struct wanted_log *log)
{
	(void)pthread_mutex_lock(&w->mutex);
	hashmap_put(&w->logs, &log->by_run, hashmap_key_uuid(&log->run));
	(void)pthread_mutex_unlock(&w->mutex);
}

void
wanted_drop_log(struct wanted *w, struct wanted_log *log)
{
	(void)pthread_mutex_lock(&w->mutex);
	hashmap_del(&w->logs, &log->by_run);
	(void)pthread_mutex_unlock(&w->mutex);
}

void
wanted_remove_log(struct wanted *w, struct spool *spool, const struct uuid *run)
{
	int fd = spool_log_read(spool, run, NULL);

	(void)pthread_mutex_lock(&w->mutex);
	if (hashmap_get(&w->logs, hashmap_key_uuid(run), is_run, run) == NULL)
		spool_log_remove(spool, run);
	(void)pthread_mutex_unlock(&w->mutex);
	auto_close(&fd);
}

/* Blobs. */

static bool
is_blob(const struct hash_entry *en, const void *key)
{
	const struct wanted_blob *b =
	    HASH_OF(en, const struct wanted_blob, by_key);
	const struct blob_key *k = key;

	return b->key.tenant == k->tenant &&
	    memcmp(b->key.sha256, k->sha256, sizeof(k->sha256)) == 0;
}

static uint64_t
blob_hash(const struct blob_key *k)
{
	return hashmap_key_bytes(k->sha256, sizeof(k->sha256)) ^ k->tenant;
}

static struct wanted_blob *
blob_find(struct wanted *w, uint64_t tenant, const uint8_t sha256[32],
    struct blob_key *k)
{
	k->tenant = tenant;
	memcpy(k->sha256, sha256, sizeof(k->sha256));
	return HASH_OBJECT(hashmap_get(&w->blobs, blob_hash(k), is_blob, k),
	    struct wanted_blob, by_key);
}

void
wanted_add_blob(struct wanted *w, uint64_t tenant, const uint8_t sha256[32])
{
	struct wanted_blob *b;
	struct blob_key k;

	(void)pthread_mutex_lock(&w->mutex);
	b = blob_find(w, tenant, sha256, &k);
	if (b == NULL) {
		b = xcalloc(1, sizeof(*b));
		b->key = k;
		hashmap_put(&w->blobs, &b->by_key, blob_hash(&k));
	}
	b->count++;
	(void)pthread_mutex_unlock(&w->mutex);
}

void
wanted_drop_blob(struct wanted *w, uint64_t tenant, const uint8_t sha256[32])
{
	struct wanted_blob *b;
	struct blob_key k;

	(void)pthread_mutex_lock(&w->mutex);
	b = blob_find(w, tenant, sha256, &k);
	if (b != NULL && --b->count == 0) {
		hashmap_del(&w->blobs, &b->by_key);
		free(b);
	}
	(void)pthread_mutex_unlock(&w->mutex);
}

void
wanted_remove_blob(struct wanted *w, struct spool *spool, uint64_t tenant,
    const uint8_t sha256[32])
{
	int fd = spool_blob_read(spool, tenant, sha256, NULL);
	struct blob_key k;

	(void)pthread_mutex_lock(&w->mutex);
	if (blob_find(w, tenant, sha256, &k) == NULL)
		spool_blob_remove(spool, tenant, sha256);
	(void)pthread_mutex_unlock(&w->mutex);
	auto_close(&fd);
}

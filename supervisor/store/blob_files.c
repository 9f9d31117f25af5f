#include "supervisor/store/blob_files.h"

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

/* Coming in. */

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
blob_files_settle(struct store_log *l, const struct store_run *row)
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

void
blob_files_drop(struct store_log *l)
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

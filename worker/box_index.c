#include "worker/box_index.h"

static bool
is_uuid(const struct hash_entry *en, const void *key)
{
	const struct box_place *p =
	    HASH_OF(en, const struct box_place, by_uuid);

	return uuid_is_equal(&p->uuid, key);
}

static bool
is_handle(const struct hash_entry *en, const void *key)
{
	const struct box_place *p =
	    HASH_OF(en, const struct box_place, by_handle);

	return strcmp(backend_handle_text(&p->handle), key) == 0;
}

struct box_place *
box_index_by_sandbox(const struct box_index *ix, uint64_t sandbox)
{
	return HASH_OBJECT(hashmap_get_u64(&ix->by_sandbox, sandbox),
	    struct box_place, by_sandbox);
}

struct box_place *
box_index_by_uuid(const struct box_index *ix, const struct uuid *uuid)
{
	return HASH_OBJECT(
	    hashmap_get(&ix->by_uuid, hashmap_key_uuid(uuid), is_uuid, uuid),
	    struct box_place, by_uuid);
}

struct box_place *
box_index_by_handle(const struct box_index *ix, const struct backend_handle *h)
{
	const char *text = backend_handle_text(h);

	return HASH_OBJECT(hashmap_get(&ix->by_handle, hashmap_key_text(text),
			       is_handle, text),
	    struct box_place, by_handle);
}

void
box_index_enter(struct box_index *ix, struct box_place *p, uint64_t sandbox,
    const struct uuid *uuid, const char *named)
{
	p->sandbox = sandbox;
	p->uuid = *uuid;
	backend_handle_named(&p->handle, named);
	hashmap_put(&ix->by_sandbox, &p->by_sandbox, hashmap_key_u64(sandbox));
	hashmap_put(&ix->by_uuid, &p->by_uuid, hashmap_key_uuid(uuid));
	p->entered = true;
}

void
box_index_leave(struct box_index *ix, struct box_place *p)
{
	if (!p->entered)
		return;
	hashmap_del(&ix->by_sandbox, &p->by_sandbox);
	hashmap_del(&ix->by_uuid, &p->by_uuid);
	p->entered = false;
}

void
box_index_unsee(struct box_index *ix, struct box_place *p)
{
	if (p->seen)
		hashmap_del(&ix->by_handle, &p->by_handle);
	p->seen = false;
}

void
box_index_see(
    struct box_index *ix, struct box_place *p, const struct backend_handle *h)
{
	box_index_unsee(ix, p);
	p->handle = *h;
	p->seen = true;
	hashmap_put(&ix->by_handle, &p->by_handle,
	    hashmap_key_text(backend_handle_text(h)));
}

void
box_index_each(
    struct box_index *ix, void (*fn)(struct box_place *p, void *arg), void *arg)
{
	struct hash_entry *en, *next;

	HASHMAP_FOREACH (en, next, &ix->by_sandbox)
		fn(HASH_OF(en, struct box_place, by_sandbox), arg);
}

void
box_index_clear(struct box_index *ix)
{
	hashmap_clear(&ix->by_sandbox);
	hashmap_clear(&ix->by_uuid);
	hashmap_clear(&ix->by_handle);
}

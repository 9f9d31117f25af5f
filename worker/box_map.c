#include "worker/box_map.h"

static bool
is_uuid(const struct hash_entry *en, const void *key)
{
	const struct box_place *p =
	    HASH_OF(en, const struct box_place, by_uuid);

	return uuid_is_equal(&p->id.uuid, key);
}

static bool
is_handle(const struct hash_entry *en, const void *key)
{
	const struct box_place *p =
	    HASH_OF(en, const struct box_place, by_handle);

	return strcmp(backend_handle_text(&p->handle), key) == 0;
}

struct box_place *
box_map_by_sandbox(const struct box_map *m, uint64_t sandbox)
{
	return HASH_OBJECT(hashmap_get_u64(&m->by_sandbox, sandbox),
	    struct box_place, by_sandbox);
}

struct box_place *
box_map_by_uuid(const struct box_map *m, const struct uuid *uuid)
{
	struct hash_entry *en =
	    hashmap_get(&m->by_uuid, hashmap_key_uuid(uuid), is_uuid, uuid);

	return HASH_OBJECT(en, struct box_place, by_uuid);
}

struct box_place *
box_map_by_handle(const struct box_map *m, const struct backend_handle *h)
{
	const char *text = backend_handle_text(h);
	struct hash_entry *en =
	    hashmap_get(&m->by_handle, hashmap_key_text(text), is_handle, text);

	return HASH_OBJECT(en, struct box_place, by_handle);
}

void
box_map_clear(struct box_map *m)
{
	hashmap_clear(&m->by_sandbox);
	hashmap_clear(&m->by_uuid);
	hashmap_clear(&m->by_handle);
}

void
box_map_enter(struct box_map *m, struct box_place *p)
{
	hashmap_put(
	    &m->by_sandbox, &p->by_sandbox, hashmap_key_u64(p->sandbox));
	hashmap_put(&m->by_uuid, &p->by_uuid, hashmap_key_uuid(&p->id.uuid));
	p->entered = true;
}

void
box_map_leave(struct box_map *m, struct box_place *p)
{
	if (!p->entered)
		return;
	hashmap_del(&m->by_sandbox, &p->by_sandbox);
	hashmap_del(&m->by_uuid, &p->by_uuid);
	p->entered = false;
}

void
box_map_unsee(struct box_map *m, struct box_place *p)
{
	if (p->seen)
		hashmap_del(&m->by_handle, &p->by_handle);
	p->seen = false;
}

void
box_map_see(
    struct box_map *m, struct box_place *p, const struct backend_handle *h)
{
	box_map_unsee(m, p);
	p->handle = *h;
	p->seen = true;
	hashmap_put(&m->by_handle, &p->by_handle,
	    hashmap_key_text(backend_handle_text(h)));
}

void
box_map_each(
    struct box_map *m, void (*fn)(struct box_place *, void *), void *arg)
{
	struct hash_entry *en, *next;

	HASHMAP_FOREACH (en, next, &m->by_sandbox)
		fn(HASH_OF(en, struct box_place, by_sandbox), arg);
}

/*
 * hashmap.h - from a key to an object, without memory of its own per object
 *
 * The object carries a struct hash_entry and keeps its own key; the map finds
 * it by the key's hash and a comparison.  A map that is all zeros is empty and
 * ready.  It grows and shrinks in hashmap_put alone: what is in it may be
 * deleted while it is walked, but nothing put.
 *
 *	struct thing { uint64_t id; struct hash_entry by_id; };
 *	hashmap_put(&m, &t->by_id, hashmap_key_u64(t->id));
 *	t = HASH_OBJECT(hashmap_get_u64(&m, id), struct thing, by_id);
 *
 * Objects are their owner's: hashmap_clear frees the table, never them.
 */
#ifndef COMMON_HASHMAP_H
#define COMMON_HASHMAP_H

#include "common/base.h"
#include "common/uuid.h"

struct hash_entry {
	struct hash_entry *next;
	uint64_t hash;
};

struct hashmap {
	struct hash_entry **buckets;
	size_t nbuckets; /* a power of two, or 0 */
	size_t count;
};

void hashmap_clear(struct hashmap *m);

/* hashmap_put - the key must be new (hashmap_get first, if it may not be) and
 * the entry in no map */
void hashmap_put(struct hashmap *m, struct hash_entry *en, uint64_t hash);
/* hashmap_del - the entry must be in this map */
void hashmap_del(struct hashmap *m, struct hash_entry *en);

/* hashmap_get - the entry of this hash for which is_key says true, or NULL */
struct hash_entry *hashmap_get(const struct hashmap *m, uint64_t hash,
    bool (*is_key)(const struct hash_entry *en, const void *key),
    const void *key);
/* hashmap_get_u64 - by a key whose hash is hashmap_key_u64's, which is as good
 * as the key: no two numbers share it */
struct hash_entry *hashmap_get_u64(const struct hashmap *m, uint64_t key);

/* hashmap_next - behind en in no order that means anything; NULL: the first */
struct hash_entry *hashmap_next(
    const struct hashmap *m, const struct hash_entry *en);
/* The body may delete (and free) en, no other entry. */
#define HASHMAP_FOREACH(en, next, m)                                           \
	for ((en) = hashmap_next((m), NULL);                                   \
	     (en) != NULL && ((next) = hashmap_next((m), (en)), true);         \
	     (en) = (next))

/* HASH_OF - what carries the entry, which must not be NULL */
#define HASH_OF(en, type, member) CONTAINER_OF(en, type, member)
/* HASH_OBJECT - the same, and NULL for NULL: around hashmap_get */
#define HASH_OBJECT(en, type, member)                                          \
	((type *)hashmap_object((en), offsetof(type, member)))
static inline void *
hashmap_object(const struct hash_entry *en, size_t offset)
{
	return en == NULL ? NULL : (void *)((uintptr_t)en - offset);
}

/* Hashes of keys.  All but the plain number's depend on a random number of
 * this process: whoever chooses a key cannot make it collide with others. */
uint64_t hashmap_key_u64(uint64_t key);
uint64_t hashmap_key_bytes(const void *p, size_t n);
uint64_t hashmap_key_text(const char *s);
/* hashmap_key_named - of a number and a text: (tenant, identifier) */
uint64_t hashmap_key_named(uint64_t number, const char *s);
static inline uint64_t
hashmap_key_uuid(const struct uuid *u)
{
	return hashmap_key_bytes(u->b, sizeof(u->b));
}
/* hashmap_key_owned - of a number and a uuid: (tenant, run).  Who asks for
 * another's is led to nothing, not to what it is then refused. */
static inline uint64_t
hashmap_key_owned(uint64_t number, const struct uuid *u)
{
	uint8_t key[sizeof(number) + sizeof(u->b)];

	memcpy(key, &number, sizeof(number));
	memcpy(key + sizeof(number), u->b, sizeof(u->b));
	return hashmap_key_bytes(key, sizeof(key));
}

#endif

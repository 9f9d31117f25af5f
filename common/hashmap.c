#include "common/hashmap.h"

#include <pthread.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/random.h"
#include "common/siphash.h"
#include "common/xmalloc.h"

#define BUCKETS_MIN 16

/* ---- hashes */

/* The last steps of splitmix64, each of which can be undone. */
uint64_t
hashmap_key_u64(uint64_t key)
{
	key += UINT64_C(0x9e3779b97f4a7c15);
	key = (key ^ key >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	key = (key ^ key >> 27) * UINT64_C(0x94d049bb133111eb);
	return key ^ key >> 31;
}

static uint8_t secret[SIPHASH_KEY_BYTES];
static pthread_once_t secret_once = PTHREAD_ONCE_INIT;

static void
secret_init(void)
{
	random_fill(secret, sizeof(secret));
}

uint64_t
hashmap_key_bytes(const void *p, size_t n)
{
	(void)pthread_once(&secret_once, secret_init);
	return siphash(secret, p, n);
}

uint64_t
hashmap_key_text(const char *s)
{
	return hashmap_key_bytes(s, strlen(s));
}

uint64_t
hashmap_key_named(uint64_t number, const char *s)
{
	return hashmap_key_u64(number) ^ hashmap_key_text(s);
}

/* ---- the table */

static struct hash_entry **
bucket_of(const struct hashmap *m, uint64_t hash)
{
	return &m->buckets[hash & (m->nbuckets - 1)];
}

static void
resize(struct hashmap *m, size_t nbuckets)
{
	struct hashmap old = *m;

	m->nbuckets = nbuckets;
	m->buckets = xcalloc(nbuckets, sizeof(*m->buckets));
	for (size_t i = 0; i < old.nbuckets; i++) {
		struct hash_entry *en = old.buckets[i], *next;

		for (; en != NULL; en = next) {
			struct hash_entry **to = bucket_of(m, en->hash);

			next = en->next;
			en->next = *to;
			*to = en;
		}
	}
	free(old.buckets);
}

void
hashmap_clear(struct hashmap *m)
{
	free(m->buckets);
	memset(m, 0, sizeof(*m));
}

void
hashmap_put(struct hashmap *m, struct hash_entry *en, uint64_t hash)
{
	struct hash_entry **to;

	if (m->nbuckets == 0)
		resize(m, BUCKETS_MIN);
	else if (m->count >= m->nbuckets)
		resize(m, m->nbuckets * 2);
	else if (m->nbuckets > BUCKETS_MIN && m->count < m->nbuckets / 8)
		resize(m, m->nbuckets / 2);
	to = bucket_of(m, hash);
	en->hash = hash;
	en->next = *to;
	*to = en;
	m->count++;
}

void
hashmap_del(struct hashmap *m, struct hash_entry *en)
{
	struct hash_entry **at = NULL;

	if (m->nbuckets > 0)
		for (at = bucket_of(m, en->hash); *at != NULL && *at != en;)
			at = &(*at)->next;
	if (at == NULL || *at == NULL)
		fatal(EXIT_BUG, "hashmap: an entry that is not in it");
	*at = en->next;
	en->next = NULL;
	m->count--;
}

struct hash_entry *
hashmap_get(const struct hashmap *m, uint64_t hash,
    bool (*is_key)(const struct hash_entry *, const void *), const void *key)
{
	struct hash_entry *en = m->nbuckets == 0 ? NULL : *bucket_of(m, hash);

	while (en != NULL && (en->hash != hash || !is_key(en, key)))
		en = en->next;
	return en;
}

static bool
is_any(const struct hash_entry *en, const void *key)
{
	(void)en;
	(void)key;
	return true;
}

struct hash_entry *
hashmap_get_u64(const struct hashmap *m, uint64_t key)
{
	return hashmap_get(m, hashmap_key_u64(key), is_any, NULL);
}

struct hash_entry *
hashmap_next(const struct hashmap *m, const struct hash_entry *en)
{
	size_t i = 0;

	if (en != NULL && en->next != NULL)
		return en->next;
	if (en != NULL)
		i = (en->hash & (m->nbuckets - 1)) + 1;
	while (i < m->nbuckets && m->buckets[i] == NULL)
		i++;
	return i < m->nbuckets ? m->buckets[i] : NULL;
}

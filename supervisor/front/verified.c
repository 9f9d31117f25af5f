#include "supervisor/front/verified.h"

#include <sys/queue.h>

#include <openssl/evp.h>

#include "common/exit.h"
#include "common/hashmap.h"
#include "common/log.h"
#include "common/xmalloc.h"

#define DIGEST_LEN 32

struct verified_token {
	uint8_t digest[DIGEST_LEN];
	struct claims claims;
	struct hash_entry by_digest;
	TAILQ_ENTRY(verified_token) link;
};
TAILQ_HEAD(verified_list, verified_token);

struct verified {
	struct hashmap map;
	struct verified_list list; /* the oldest first */
};

static void
digest_of(const char *token, uint8_t out[DIGEST_LEN])
{
	if (EVP_Digest(token, strlen(token), out, NULL, EVP_sha256(), NULL) !=
	    1)
		fatal(EXIT_BUG, "no SHA-256");
}

static bool
is_digest(const struct hash_entry *en, const void *key)
{
	return memcmp(
		   HASH_OF(en, const struct verified_token, by_digest)->digest,
		   key, DIGEST_LEN) == 0;
}

static struct verified_token *
find(const struct verified *v, const uint8_t digest[DIGEST_LEN])
{
	return HASH_OBJECT(
	    hashmap_get(&v->map, hashmap_key_bytes(digest, DIGEST_LEN),
		is_digest, digest),
	    struct verified_token, by_digest);
}

static void
drop(struct verified *v, struct verified_token *en)
{
	hashmap_del(&v->map, &en->by_digest);
	TAILQ_REMOVE(&v->list, en, link);
	free(en);
}

struct verified *
verified_new(void)
{
	struct verified *v = xcalloc(1, sizeof(*v));

	TAILQ_INIT(&v->list);
	return v;
}

void
verified_clear(struct verified *v)
{
	struct verified_token *en;

	while ((en = TAILQ_FIRST(&v->list)) != NULL)
		drop(v, en);
}

void
verified_free(struct verified *v)
{
	if (v == NULL)
		return;
	verified_clear(v);
	hashmap_clear(&v->map);
	free(v);
}

const struct claims *
verified_find(const struct verified *v, const char *token, int64_t wall_ms)
{
	uint8_t digest[DIGEST_LEN];
	const struct verified_token *en;

	digest_of(token, digest);
	en = find(v, digest);
	return en == NULL || en->claims.until_ms <= wall_ms ? NULL :
							      &en->claims;
}

const struct claims *
verified_put(struct verified *v, const char *token, const struct claims *c)
{
	struct verified_token *en = xcalloc(1, sizeof(*en)), *before;

	digest_of(token, en->digest);
	before = find(v, en->digest);
	if (before != NULL) /* expired by another clock */
		drop(v, before);
	if (v->map.count >= VERIFIED_MAX)
		drop(v, TAILQ_FIRST(&v->list));
	en->claims = *c;
	hashmap_put(
	    &v->map, &en->by_digest, hashmap_key_bytes(en->digest, DIGEST_LEN));
	TAILQ_INSERT_TAIL(&v->list, en, link);
	return &en->claims;
}

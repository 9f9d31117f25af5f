#include "supervisor/core/tenants_map.h"

#include "common/clock.h"
#include "common/xmalloc.h"

/* ---- looking */

static bool
is_name(const struct hash_entry *en, const void *key)
{
	return strcmp(HASH_OF(en, const struct tenant, by_name)->row.name,
		   key) == 0;
}

static bool
is_token_id(const struct hash_entry *en, const void *key)
{
	return strcmp(HASH_OF(en, const struct token, by_id)->row.id, key) == 0;
}

struct tenant *
tenants_find(const struct tenants *t, struct tenant_id id)
{
	return HASH_OBJECT(
	    hashmap_get_u64(&t->numbers, id.n), struct tenant, by_number);
}

struct tenant *
tenants_find_name(const struct tenants *t, const char *name)
{
	return HASH_OBJECT(
	    hashmap_get(&t->names, hashmap_key_text(name), is_name, name),
	    struct tenant, by_name);
}

struct token *
tenants_find_token(const struct tenants *t, const char *id)
{
	return HASH_OBJECT(
	    hashmap_get(&t->ids, hashmap_key_text(id), is_token_id, id),
	    struct token, by_id);
}

int64_t
tenants_quota(const struct tenants *t, struct tenant_id id, enum quota_key key)
{
	const struct tenant *n = tenants_find(t, id);

	return n == NULL ? quota_rule(key)->fallback : n->quota[key];
}

struct tenant *
tenants_next(const struct tenants *t, const struct tenant *n)
{
	return n == NULL ? TAILQ_FIRST(&t->list) : TAILQ_NEXT(n, link);
}

struct token *
tenants_next_token(const struct tenants *t, const struct token *k)
{
	return k == NULL ? TAILQ_FIRST(&t->tokens) : TAILQ_NEXT(k, link);
}

bool
token_is_over(const struct token *k, int64_t wall_ms)
{
	return k->row.revoked_ms != 0 ||
	    (k->row.expires_ms != 0 && k->row.expires_ms <= wall_ms);
}

void
tenants_count(const struct tenants *t, size_t *ntenants, size_t *ntokens)
{
	int64_t now = clock_wall_ms();
	const struct tenant *n;
	const struct token *k;

	*ntenants = *ntokens = 0;
	TAILQ_FOREACH (n, &t->list, link)
		*ntenants +=
		    n->row.id != STORE_TENANT_DEFAULT && tenant_is_usable(n);
	TAILQ_FOREACH (k, &t->tokens, link)
		*ntokens += !token_is_over(k, now) &&
		    (k->tenant == NULL || tenant_is_usable(k->tenant));
}

bool
tenants_is_open(const struct tenants *t)
{
	return store_directory_is_open(t->ids.count, t->next_number);
}

/* ---- entering and leaving */

static void
tenant_reset_quotas(struct tenant *n)
{
	for (size_t i = 0; i < QUOTA_COUNT; i++)
		n->quota[i] = tenant_fallback(n, (enum quota_key)i);
}

struct tenant *
tenant_enter(struct tenants *t, const struct store_tenant *row)
{
	struct tenant *n = xcalloc(1, sizeof(*n));

	n->all = t;
	store_tenant_copy(&n->row, row);
	n->owner = principal_new(
	    (struct tenant_id){row->id}, row->name, "server", PRINCIPAL_USER);
	tenant_reset_quotas(n);
	hashmap_put(&t->numbers, &n->by_number, hashmap_key_u64(row->id));
	hashmap_put(&t->names, &n->by_name, hashmap_key_text(row->name));
	TAILQ_INSERT_TAIL(&t->list, n, link);
	return n;
}

void
tenant_leave(struct tenant *n)
{
	struct tenants *t = n->all;

	hashmap_del(&t->numbers, &n->by_number);
	hashmap_del(&t->names, &n->by_name);
	TAILQ_REMOVE(&t->list, n, link);
	if (n->has_ended_runs)
		TAILQ_REMOVE(&t->ended, n, ended_link);
	principal_unref(n->owner);
	store_tenant_clear(&n->row);
	free(n);
}

unsigned int *
tenants_token_counter(struct tenants *t, struct tenant *n)
{
	return n == NULL ? &t->ntokens_of_none : &n->ntokens;
}

struct token *
token_enter(struct tenants *t, struct tenant *n, const struct store_token *row)
{
	struct token *k = xcalloc(1, sizeof(*k));

	k->tenant = n;
	store_token_copy(&k->row, row);
	k->who = principal_new((struct tenant_id){row->tenant},
	    n == NULL ? "" : n->row.name, row->id, row->role);
	(*tenants_token_counter(t, n))++;
	hashmap_put(&t->ids, &k->by_id, hashmap_key_text(row->id));
	TAILQ_INSERT_TAIL(&t->tokens, k, link);
	if (row->expires_ms != 0 && row->expires_ms < t->next_expiry_ms)
		t->next_expiry_ms = row->expires_ms;
	return k;
}

void
token_leave(struct tenants *t, struct token *k)
{
	(*tenants_token_counter(t, k->tenant))--;
	hashmap_del(&t->ids, &k->by_id);
	TAILQ_REMOVE(&t->tokens, k, link);
	principal_unref(k->who);
	store_token_clear(&k->row);
	free(k);
}

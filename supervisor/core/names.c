#include "supervisor/core/names.h"

#include "common/exit.h"
#include "common/log.h"

struct key {
	struct tenant_id tenant;
	const char *identifier;
};

static bool
is_key(const struct hash_entry *en, const void *key)
{
	const struct name_hold *h = HASH_OF(en, struct name_hold, entry);
	const struct key *k = key;

	return tenant_id_is_equal(h->tenant, k->tenant) &&
	    strcmp(h->identifier, k->identifier) == 0;
}

void
names_clear(struct names *n)
{
	hashmap_clear(&n->map);
}

struct name_hold *
names_find(
    const struct names *n, struct tenant_id tenant, const char *identifier)
{
	const struct key k = {tenant, identifier};

	return HASH_OBJECT(
	    hashmap_get(
		&n->map, hashmap_key_named(tenant.n, identifier), is_key, &k),
	    struct name_hold, entry);
}

void
names_take(struct names *n, struct name_hold *h, struct tenant_id tenant,
    const char *identifier)
{
	if (h->is_held || names_find(n, tenant, identifier) != NULL)
		fatal(EXIT_BUG, "the name %s is taken", identifier);
	h->tenant = tenant;
	h->identifier = identifier;
	h->is_held = true;
	hashmap_put(
	    &n->map, &h->entry, hashmap_key_named(tenant.n, identifier));
}

void
names_leave(struct names *n, struct name_hold *h)
{
	if (!h->is_held)
		return;
	hashmap_del(&n->map, &h->entry);
	h->is_held = false;
}

#include "supervisor/mcp/inflight.h"

#include "common/xmalloc.h"

struct inflight_owner {
	struct hash_entry by_who;
	struct principal *who;
	unsigned int n;
};

struct inflight {
	struct hashmap entries; /* by session and id */
	struct hashmap owners;  /* by tenant and subject */
};

struct request_key {
	const uint8_t *session;
	const char *id;
};

static uint64_t
hash_of(const uint8_t *session, const char *id)
{
	return hashmap_key_named(
	    hashmap_key_bytes(session, SESSION_ID_LEN), id);
}

/* One that was canceled has given its key up. */
static bool
is_request(const struct hash_entry *en, const void *key)
{
	const struct inflight_entry *entry =
	    HASH_OF(en, const struct inflight_entry, by_id);
	const struct request_key *want = key;

	return !entry->canceled &&
	    memcmp(entry->session, want->session, SESSION_ID_LEN) == 0 &&
	    strcmp(entry->id, want->id) == 0;
}

static bool
is_who(const struct hash_entry *en, const void *key)
{
	const struct inflight_owner *o =
	    HASH_OF(en, const struct inflight_owner, by_who);
	const struct principal *who = key;

	return tenant_id_is_equal(o->who->tenant, who->tenant) &&
	    strcmp(o->who->subject, who->subject) == 0;
}

static struct inflight_owner *
owner_get(struct inflight *t, struct principal *who)
{
	uint64_t h = hashmap_key_named(who->tenant.n, who->subject);
	struct inflight_owner *o =
	    HASH_OBJECT(hashmap_get(&t->owners, h, is_who, who),
		struct inflight_owner, by_who);

	if (o != NULL)
		return o;
	o = xcalloc(1, sizeof(*o));
	o->who = principal_ref(who);
	hashmap_put(&t->owners, &o->by_who, h);
	return o;
}

static void
owner_put(struct inflight *t, struct inflight_owner *o)
{
	if (o->n > 0)
		return;
	hashmap_del(&t->owners, &o->by_who);
	principal_unref(o->who);
	free(o);
}

struct inflight *
inflight_new(void)
{
	return xcalloc(1, sizeof(struct inflight));
}

void
inflight_free(struct inflight *t)
{
	struct inflight_entry *entry;

	if (t == NULL)
		return;
	while ((entry = inflight_any(t)) != NULL)
		inflight_remove(t, entry);
	hashmap_clear(&t->entries);
	hashmap_clear(&t->owners);
	free(t);
}

int
inflight_add(struct inflight *t, struct inflight_entry *entry,
    struct principal *who, struct err *e)
{
	struct inflight_owner *o;

	if (inflight_find(t, entry->session, entry->id) != NULL)
		return err_set(e, ERR_CONFLICT,
		    "a request with this id is still running in this session; "
		    "use a new id");
	o = owner_get(t, who);
	if (o->n >= INFLIGHT_PER_PRINCIPAL)
		return err_set(e, ERR_LIMIT,
		    "%d tool calls are running already; wait for one to end "
		    "or cancel one",
		    INFLIGHT_PER_PRINCIPAL);
	o->n++;
	entry->owner = o;
	hashmap_put(
	    &t->entries, &entry->by_id, hash_of(entry->session, entry->id));
	return 0;
}

void
inflight_remove(struct inflight *t, struct inflight_entry *entry)
{
	struct inflight_owner *o = entry->owner;

	hashmap_del(&t->entries, &entry->by_id);
	o->n--;
	owner_put(t, o);
	entry->owner = NULL;
}

struct inflight_entry *
inflight_find(
    struct inflight *t, const uint8_t session[SESSION_ID_LEN], const char *id)
{
	const struct request_key key = {session, id};
	struct hash_entry *en =
	    hashmap_get(&t->entries, hash_of(session, id), is_request, &key);

	return HASH_OBJECT(en, struct inflight_entry, by_id);
}

struct inflight_entry *
inflight_any(struct inflight *t)
{
	return HASH_OBJECT(
	    hashmap_next(&t->entries, NULL), struct inflight_entry, by_id);
}

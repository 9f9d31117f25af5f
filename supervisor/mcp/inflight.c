#include "supervisor/mcp/inflight.h"

#include "common/xmalloc.h"

#define BUCKETS 1024
#define OWNER_BUCKETS 64

struct inflight_owner {
	LIST_ENTRY(inflight_owner) chain;
	struct principal *who;
	unsigned int n;
};
LIST_HEAD(entry_chain, inflight_entry);
LIST_HEAD(owner_chain, inflight_owner);

struct inflight {
	size_t n;
	struct entry_chain chains[BUCKETS];
	struct owner_chain owners[OWNER_BUCKETS];
};

/* FNV-1a.  A client can make its own ids collide: it then walks a chain of
 * its own INFLIGHT_PER_PRINCIPAL at most, as the session part is random. */
static uint32_t
hash(uint32_t h, const void *p, size_t n)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < n; i++)
		h = (h ^ b[i]) * 16777619u;
	return h;
}

static struct entry_chain *
chain_of(struct inflight *t, const uint8_t *session, const char *id)
{
	uint32_t h = hash(2166136261u, session, SESSION_ID_LEN);

	return &t->chains[hash(h, id, strlen(id)) % BUCKETS];
}

static bool
is_same(const struct principal *a, const struct principal *b)
{
	return a->tenant == b->tenant && strcmp(a->subject, b->subject) == 0;
}

static struct inflight_owner *
owner_get(struct inflight *t, struct principal *who)
{
	uint32_t h = hash(2166136261u, &who->tenant, sizeof(who->tenant));
	struct owner_chain *chain;
	struct inflight_owner *o;

	h = hash(h, who->subject, strlen(who->subject));
	chain = &t->owners[h % OWNER_BUCKETS];
	LIST_FOREACH (o, chain, chain)
		if (is_same(o->who, who))
			return o;
	o = xcalloc(1, sizeof(*o));
	o->who = principal_ref(who);
	LIST_INSERT_HEAD(chain, o, chain);
	return o;
}

static void
owner_put(struct inflight_owner *o)
{
	if (o->n > 0)
		return;
	LIST_REMOVE(o, chain);
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
	t->n++;
	entry->owner = o;
	LIST_INSERT_HEAD(chain_of(t, entry->session, entry->id), entry, chain);
	return 0;
}

void
inflight_remove(struct inflight *t, struct inflight_entry *entry)
{
	LIST_REMOVE(entry, chain);
	t->n--;
	/* Only clang's analyzer finds an entry in the table twice. */
	entry->owner->n--; // NOLINT(clang-analyzer-core.NullDereference)
	owner_put(entry->owner);
	entry->owner = NULL;
}

struct inflight_entry *
inflight_find(
    struct inflight *t, const uint8_t session[SESSION_ID_LEN], const char *id)
{
	struct inflight_entry *entry;

	LIST_FOREACH (entry, chain_of(t, session, id), chain)
		if (!entry->canceled &&
		    memcmp(entry->session, session, SESSION_ID_LEN) == 0 &&
		    strcmp(entry->id, id) == 0)
			return entry;
	return NULL;
}

struct inflight_entry *
inflight_any(struct inflight *t)
{
	for (size_t i = 0; t->n > 0 && i < BUCKETS; i++)
		if (!LIST_EMPTY(&t->chains[i]))
			return LIST_FIRST(&t->chains[i]);
	return NULL;
}

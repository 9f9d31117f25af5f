#include "supervisor/mcp/watches.h"

#include "common/hashmap.h"
#include "common/xmalloc.h"

struct watched { /* while anybody watches it */
	struct hash_entry by_text;
	TAILQ_ENTRY(watched) due_link;
	bool is_due;
	unsigned int pins; /* it is being told of */
	struct tenant_id tenant;
	enum watch_kind kind;
	char *text;
	TAILQ_HEAD(, watch) all;
};
TAILQ_HEAD(watched_list, watched);

struct watch {
	LIST_ENTRY(watch) of_watcher;
	TAILQ_ENTRY(watch) of_watched;
	struct watcher *watcher;
	struct watched *watched;
	uint64_t told; /* in which round */
};

struct watches {
	struct hashmap by_text; /* what is watched */
	struct watched_list due;
	size_t n;
	uint64_t round;
};

struct watches *
watches_new(void)
{
	struct watches *ws = xcalloc(1, sizeof(*ws));

	TAILQ_INIT(&ws->due);
	return ws;
}

void
watches_free(struct watches *ws)
{
	if (ws == NULL)
		return;
	hashmap_clear(&ws->by_text);
	free(ws);
}

size_t
watches_count(const struct watches *ws)
{
	return ws->n;
}

struct watch_key {
	struct tenant_id tenant;
	enum watch_kind kind;
	const char *text;
};

static bool
is_watched(const struct hash_entry *en, const void *key)
{
	const struct watched *t = HASH_OF(en, const struct watched, by_text);
	const struct watch_key *want = key;

	return tenant_id_is_equal(t->tenant, want->tenant) &&
	    t->kind == want->kind && strcmp(t->text, want->text) == 0;
}

static uint64_t
hash_of(const struct watch_key *key)
{
	return hashmap_key_named(key->tenant.n, key->text);
}

static struct watched *
watched_find(const struct watches *ws, const struct watch_key *key)
{
	return HASH_OBJECT(
	    hashmap_get(&ws->by_text, hash_of(key), is_watched, key),
	    struct watched, by_text);
}

static struct watched *
watched_get(struct watches *ws, const struct watch_key *key)
{
	struct watched *t = watched_find(ws, key);

	if (t != NULL)
		return t;
	t = xcalloc(1, sizeof(*t));
	t->tenant = key->tenant;
	t->kind = key->kind;
	t->text = xstrdup(key->text);
	TAILQ_INIT(&t->all);
	hashmap_put(&ws->by_text, &t->by_text, hash_of(key));
	return t;
}

/* Nobody watches it any more, or is being told of it. */
static void
watched_check(struct watches *ws, struct watched *t)
{
	if (!TAILQ_EMPTY(&t->all) || t->pins > 0)
		return;
	if (t->is_due)
		TAILQ_REMOVE(&ws->due, t, due_link);
	hashmap_del(&ws->by_text, &t->by_text);
	free(t->text);
	free(t);
}

static struct watch *
watch_find(const struct watcher *w, const struct watched *t)
{
	struct watch *v;

	LIST_FOREACH (v, &w->all, of_watcher)
		if (v->watched == t)
			return v;
	return NULL;
}

static size_t
bytes_of(const char *text)
{
	return strlen(text) + WATCH_COST;
}

static void
watch_free(struct watches *ws, struct watch *v)
{
	struct watched *t = v->watched;

	LIST_REMOVE(v, of_watcher);
	TAILQ_REMOVE(&v->watched->all, v, of_watched);
	v->watcher->n--;
	v->watcher->bytes -= bytes_of(t->text);
	ws->n--;
	free(v);
	watched_check(ws, t);
}

int
watches_add(struct watches *ws, struct watcher *w, enum watch_kind kind,
    const char *text, struct err *e)
{
	const struct watch_key key = {w->tenant, kind, text};
	struct watched *t = watched_find(ws, &key);
	struct watch *v;

	if (t != NULL && watch_find(w, t) != NULL)
		return 0;
	if (w->n >= WATCHES_MAX)
		return err_set(e, ERR_LIMIT,
		    "%d subscriptions are there already: end one", WATCHES_MAX);
	if (w->bytes + bytes_of(text) > WATCHER_BYTES_MAX)
		return err_set(e, ERR_LIMIT,
		    "the subscriptions of this session or stream have %u KiB "
		    "of addresses: end some",
		    WATCHER_BYTES_MAX >> 10);
	t = watched_get(ws, &key);
	v = xcalloc(1, sizeof(*v));
	v->watcher = w;
	v->watched = t;
	LIST_INSERT_HEAD(&w->all, v, of_watcher);
	TAILQ_INSERT_HEAD(&t->all, v, of_watched);
	w->n++;
	w->bytes += bytes_of(text);
	ws->n++;
	return 0;
}

void
watches_drop(struct watches *ws, struct watcher *w, enum watch_kind kind,
    const char *text)
{
	const struct watch_key key = {w->tenant, kind, text};
	const struct watched *t = watched_find(ws, &key);
	struct watch *v = t == NULL ? NULL : watch_find(w, t);

	if (v != NULL)
		watch_free(ws, v);
}

void
watches_drop_all(struct watches *ws, struct watcher *w)
{
	struct watch *v;

	while ((v = LIST_FIRST(&w->all)) != NULL)
		watch_free(ws, v);
}

/* ---- changes */

void
watches_mark(struct watches *ws, struct tenant_id tenant, enum watch_kind kind,
    const char *text)
{
	const struct watch_key key = {tenant, kind, text};
	struct watched *t = watched_find(ws, &key);

	if (t == NULL || t->is_due)
		return;
	t->is_due = true;
	TAILQ_INSERT_TAIL(&ws->due, t, due_link);
}

/* Whoever is told may end, and others with it: so those that were told go to
 * the end, and the first that was not is the next. */
static void
tell_all(struct watches *ws, struct watched *t)
{
	uint64_t round = ++ws->round;
	struct watch *v;

	t->pins++;
	while ((v = TAILQ_FIRST(&t->all)) != NULL && v->told != round) {
		v->told = round;
		TAILQ_REMOVE(&t->all, v, of_watched);
		TAILQ_INSERT_TAIL(&t->all, v, of_watched);
		v->watcher->tell(v->watcher, t->kind, t->text);
	}
	t->pins--;
	watched_check(ws, t);
}

void
watches_tell(struct watches *ws)
{
	struct watched_list due = TAILQ_HEAD_INITIALIZER(due);
	struct watched *t;

	/* What is marked meanwhile is for the next time. */
	TAILQ_FOREACH (t, &ws->due, due_link)
		t->pins++;
	TAILQ_CONCAT(&due, &ws->due, due_link);
	while ((t = TAILQ_FIRST(&due)) != NULL) {
		TAILQ_REMOVE(&due, t, due_link);
		t->is_due = false;
		t->pins--;
		tell_all(ws, t);
	}
}

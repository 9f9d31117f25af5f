/*
 * listeners.c - sessions that listen, and what they are told
 *
 *	          stream, subscription, level
 *	unknown -----------------------------> known, with streams <--> idle
 *	   ^                                        |                    |
 *	   +---- ended; idle too long, or nothing of it is to be kept ---+
 *
 * A session costs memory only while it is known.  Of a principal so many idle
 * ones are, and so many bytes of subscriptions: the one that is idle longest is
 * forgotten first.
 */
#include "supervisor/mcp/listeners.h"

#include "common/clock.h"
#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/level.h"
#include "supervisor/mcp/offer.h"

struct listen_holder { /* a principal, while any session of its is known */
	struct hash_entry by_who;
	struct principal *who;
	unsigned int nsessions;
	size_t bytes; /* of its sessions' watchers */
	unsigned int nidle;
	TAILQ_HEAD(, listen_session) idle; /* longest first */
};

TAILQ_HEAD(listen_streams, listen_stream);

struct listen_session {
	struct watcher watcher; /* first */
	struct mcp *m;
	struct hash_entry by_id;
	uint8_t id[SESSION_ID_LEN];
	struct listen_holder *holder;
	struct listen_streams streams; /* newest first */
	unsigned int nstreams;
	TAILQ_ENTRY(listen_session) link; /* streaming, or idle */
	TAILQ_ENTRY(listen_session) own;  /* idle: its holder's */
	uint64_t idle_since_ms;
	int level;     /* enum mcp_level, or LEVEL_NONE */
	uint64_t told; /* in which round */
};
TAILQ_HEAD(session_list, listen_session);

struct listen_stream {
	TAILQ_ENTRY(listen_stream) link;
	struct listen_session *session;
	struct mcp_exchange *exchange;
	void (*end)(void *arg);
	void *arg;
};

struct listeners {
	struct hashmap by_id;
	struct hashmap by_who;
	struct session_list streaming;
	struct session_list idle; /* longest first */
	struct watches *watches;
	LIST_HEAD(, listen_member) members;
	unsigned int due; /* 1 << enum listen_list, OR-ed */
	uint64_t round;
};

struct listeners *
listeners_new(void)
{
	struct listeners *ls = xcalloc(1, sizeof(*ls));

	TAILQ_INIT(&ls->streaming);
	TAILQ_INIT(&ls->idle);
	LIST_INIT(&ls->members);
	ls->watches = watches_new();
	return ls;
}

struct watches *
listeners_watches(struct mcp *m)
{
	return m->listeners->watches;
}

/* ---- sessions */

static bool
is_session(const struct hash_entry *en, const void *key)
{
	const struct listen_session *s =
	    HASH_OF(en, const struct listen_session, by_id);

	return memcmp(s->id, key, SESSION_ID_LEN) == 0;
}

static struct listen_session *
session_find(const struct listeners *ls, const uint8_t *id)
{
	return HASH_OBJECT(
	    hashmap_get(&ls->by_id, hashmap_key_bytes(id, SESSION_ID_LEN),
		is_session, id),
	    struct listen_session, by_id);
}

static bool
is_holder(const struct hash_entry *en, const void *key)
{
	return principal_is_same(
	    HASH_OF(en, const struct listen_holder, by_who)->who, key);
}

static struct listen_holder *
holder_get(struct listeners *ls, struct principal *who)
{
	uint64_t hash = hashmap_key_named(who->tenant.n, who->subject);
	struct listen_holder *h =
	    HASH_OBJECT(hashmap_get(&ls->by_who, hash, is_holder, who),
		struct listen_holder, by_who);

	if (h != NULL)
		return h;
	h = xcalloc(1, sizeof(*h));
	h->who = principal_ref(who);
	TAILQ_INIT(&h->idle);
	hashmap_put(&ls->by_who, &h->by_who, hash);
	return h;
}

static void
holder_drop(struct listeners *ls, struct listen_holder *h)
{
	if (--h->nsessions > 0)
		return;
	hashmap_del(&ls->by_who, &h->by_who);
	principal_unref(h->who);
	free(h);
}

static void
leave_list(struct listeners *ls, struct listen_session *s)
{
	if (s->nstreams > 0) {
		TAILQ_REMOVE(&ls->streaming, s, link);
		return;
	}
	TAILQ_REMOVE(&ls->idle, s, link);
	TAILQ_REMOVE(&s->holder->idle, s, own);
	s->holder->nidle--;
}

static void
session_forget(struct listen_session *s)
{
	struct listeners *ls = s->m->listeners;

	leave_list(ls, s);
	s->holder->bytes -= s->watcher.bytes;
	watches_drop_all(ls->watches, &s->watcher);
	hashmap_del(&ls->by_id, &s->by_id);
	holder_drop(ls, s->holder);
	free(s);
}

/* At the end of the line of those without a stream. */
static void
become_idle(struct listen_session *s)
{
	struct listeners *ls = s->m->listeners;
	struct listen_holder *h = s->holder;

	s->idle_since_ms = clock_mono_ms();
	TAILQ_INSERT_TAIL(&ls->idle, s, link);
	TAILQ_INSERT_TAIL(&h->idle, s, own);
	if (++h->nidle > LISTENERS_IDLE_MAX)
		session_forget(TAILQ_FIRST(&h->idle));
}

/* It was heard of: its time without a stream begins anew. */
static void
session_touch(struct listen_session *s)
{
	if (s->nstreams > 0)
		return;
	leave_list(s->m->listeners, s);
	become_idle(s);
}

static void session_tell_watched(
    struct watcher *w, enum watch_kind kind, const char *text);

static struct listen_session *
session_get(const struct mcp_context *c)
{
	struct listeners *ls = c->m->listeners;
	struct listen_session *s = session_find(ls, c->session->id);

	if (s != NULL) {
		session_touch(s);
		return s;
	}
	s = xcalloc(1, sizeof(*s));
	s->m = c->m;
	s->watcher.tenant = c->who->tenant;
	s->watcher.tell = session_tell_watched;
	memcpy(s->id, c->session->id, SESSION_ID_LEN);
	s->level = LEVEL_NONE;
	TAILQ_INIT(&s->streams);
	s->holder = holder_get(ls, c->who);
	s->holder->nsessions++;
	hashmap_put(
	    &ls->by_id, &s->by_id, hashmap_key_bytes(s->id, SESSION_ID_LEN));
	become_idle(s);
	return s;
}

/* Without a stream, and with nothing that its next one would need? */
static void
session_check(struct listen_session *s)
{
	if (s->nstreams == 0 && s->watcher.n == 0 && s->level == LEVEL_NONE)
		session_forget(s);
}

/* ---- their streams */

struct listen_stream *
listeners_join(struct mcp_exchange *x, const struct mcp_context *c,
    void (*on_end)(void *arg), void *arg)
{
	struct listen_session *s = session_get(c);
	struct listen_stream *t = xcalloc(1, sizeof(*t));

	t->session = s;
	t->exchange = x;
	t->end = on_end;
	t->arg = arg;
	leave_list(c->m->listeners, s);
	s->nstreams++;
	TAILQ_INSERT_TAIL(&c->m->listeners->streaming, s, link);
	TAILQ_INSERT_HEAD(&s->streams, t, link);
	return t;
}

void
listeners_leave(struct listen_stream *t)
{
	struct listen_session *s = t->session;

	TAILQ_REMOVE(&s->streams, t, link);
	free(t);
	leave_list(s->m->listeners, s);
	if (--s->nstreams > 0)
		TAILQ_INSERT_TAIL(&s->m->listeners->streaming, s, link);
	else {
		become_idle(s);
		session_check(s);
	}
}

static void
stream_end(const struct listen_stream *t)
{
	t->end(t->arg); /* leaves */
}

/* A stream that a GET opened: its exchange waits for the stream's end. */
struct listen_get {
	struct exchange_waiter waiter; /* first */
	struct mcp_exchange *exchange;
	struct listen_stream *stream;
};

static void
get_on_end(struct exchange_waiter *w)
{
	struct listen_get *g = (struct listen_get *)w;

	listeners_leave(g->stream);
	free(g);
}

static void
get_end(void *arg)
{
	struct listen_get *g = arg;
	struct mcp_exchange *x = g->exchange;

	get_on_end(&g->waiter);
	exchange_answer(x, NULL, NULL);
}

void
listeners_on_get(struct mcp_exchange *x, const struct mcp_context *c)
{
	struct listen_get *g = xcalloc(1, sizeof(*g));
	struct listen_session *s;

	g->waiter.on_end = get_on_end;
	g->exchange = x;
	exchange_wait(x, &g->waiter);
	g->stream = listeners_join(x, c, get_end, g);
	s = g->stream->session;
	/* The client has lost one that we take for open, more likely. */
	if (s->nstreams > LISTENERS_STREAMS)
		stream_end(TAILQ_LAST(&s->streams, listen_streams));
	exchange_stream_open(x);
}

/* ---- what a session says */

int
listeners_watch(
    struct mcp *m, const struct mcp_context *c, const char *uri, struct err *e)
{
	struct listen_session *s = session_get(c);
	struct listen_holder *h = s->holder;
	size_t before = s->watcher.bytes;
	int rc;

	if (strlen(uri) > WATCH_TEXT_MAX) {
		session_check(s);
		return err_set(e, ERR_LIMIT, "an address of more than %d bytes",
		    WATCH_TEXT_MAX);
	}
	rc = watches_add(
	    m->listeners->watches, &s->watcher, WATCH_RESOURCE, uri, e);
	h->bytes += s->watcher.bytes - before;
	while (h->bytes > LISTENERS_BYTES_MAX && !TAILQ_EMPTY(&h->idle) &&
	    TAILQ_FIRST(&h->idle) != s)
		session_forget(TAILQ_FIRST(&h->idle));
	if (rc != 0 || h->bytes <= LISTENERS_BYTES_MAX)
		return rc;
	listeners_unwatch(m, c, uri);
	return err_set(e, ERR_LIMIT,
	    "the subscriptions of all sessions have %u KiB of addresses: end "
	    "some",
	    LISTENERS_BYTES_MAX >> 10);
}

void
listeners_unwatch(struct mcp *m, const struct mcp_context *c, const char *uri)
{
	struct listen_session *s = session_find(m->listeners, c->session->id);
	size_t before;

	if (s == NULL)
		return;
	before = s->watcher.bytes;
	watches_drop(m->listeners->watches, &s->watcher, WATCH_RESOURCE, uri);
	s->holder->bytes -= before - s->watcher.bytes;
	session_check(s);
}

void
listeners_set_level(
    struct mcp *m, const struct mcp_context *c, enum mcp_level level)
{
	(void)m;
	session_get(c)->level = (int)level;
}

int
listeners_level(const struct mcp *m, const uint8_t session[SESSION_ID_LEN])
{
	const struct listen_session *s = session_find(m->listeners, session);

	return s == NULL ? LEVEL_NONE : s->level;
}

static void
session_end_streams(struct listen_session *s)
{
	/* The last one may take the session along. */
	for (unsigned int n = s->nstreams; n > 0; n--)
		stream_end(TAILQ_FIRST(&s->streams));
}

void
listeners_end(struct mcp *m, const uint8_t session[SESSION_ID_LEN])
{
	struct listen_session *s = session_find(m->listeners, session);

	if (s == NULL)
		return;
	session_end_streams(s);
	s = session_find(m->listeners, session);
	if (s != NULL)
		session_forget(s);
}

/* ---- what they are told */

static void
session_send(struct listen_session *s, const char *text)
{
	struct listen_stream *t = TAILQ_FIRST(&s->streams);

	if (t != NULL && exchange_has_room(t->exchange))
		exchange_send(t->exchange, text);
}

static void
session_tell_watched(struct watcher *w, enum watch_kind kind, const char *text)
{
	struct listen_session *s = (struct listen_session *)w;
	AUTO(auto_json) json_t *params = NULL;
	AUTO(auto_free) char *said = NULL, *message = NULL;

	(void)kind; /* sessions watch resources alone */
	params = json_pack("{s:s}", "uri", text);
	said = js_dump(params);
	message = rpc_notification("notifications/resources/updated", said);
	session_send(s, message);
}

const char *
listeners_notice(enum listen_list what)
{
	return what == LISTEN_TOOLS ? "notifications/tools/list_changed" :
				      "notifications/prompts/list_changed";
}

void
listeners_add(struct mcp *m, struct listen_member *l)
{
	LIST_INSERT_HEAD(&m->listeners->members, l, link);
}

void
listeners_remove(struct listen_member *l)
{
	LIST_REMOVE(l, link);
}

/* Whoever is told may be gone then: those that were told go to the end. */
static void
tell_sessions(struct listeners *ls, enum listen_list what)
{
	AUTO(auto_free)
	char *text = rpc_notification(listeners_notice(what), "{}");
	uint64_t round = ++ls->round;
	struct listen_session *s;

	while ((s = TAILQ_FIRST(&ls->streaming)) != NULL && s->told != round) {
		s->told = round;
		TAILQ_REMOVE(&ls->streaming, s, link);
		TAILQ_INSERT_TAIL(&ls->streaming, s, link);
		session_send(s, text);
	}
}

static void
tell_members(const struct listeners *ls, enum listen_list what)
{
	struct listen_member *l, *next;

	for (l = LIST_FIRST(&ls->members); l != NULL; l = next) {
		next = LIST_NEXT(l, link); /* l alone may end */
		if ((l->wants & 1u << what) != 0)
			l->tell(l, what);
	}
}

void
listeners_tick(struct mcp *m, uint64_t now_ms)
{
	struct listeners *ls = m->listeners;
	struct listen_session *s;

	for (unsigned int i = 0; i < LISTEN_LISTS && m->list_changes; i++) {
		if ((ls->due & 1u << i) == 0)
			continue;
		tell_sessions(ls, i);
		tell_members(ls, i);
	}
	ls->due = 0;
	watches_tell(ls->watches);
	while ((s = TAILQ_FIRST(&ls->idle)) != NULL &&
	    now_ms >= s->idle_since_ms + LISTENERS_IDLE_MS)
		session_forget(s);
}

void
mcp_tools_changed(struct mcp *m)
{
	m->listeners->due |= 1u << LISTEN_TOOLS;
}

void
mcp_prompts_changed(struct mcp *m)
{
	m->listeners->due |= 1u << LISTEN_PROMPTS;
}

void
mcp_resource_changed(struct mcp *m, struct tenant_id tenant, const char *uri)
{
	watches_mark(m->listeners->watches, tenant, WATCH_RESOURCE, uri);
}

void
mcp_task_changed(struct mcp *m, struct tenant_id tenant, const char *id)
{
	watches_mark(m->listeners->watches, tenant, WATCH_TASK, id);
}

bool
mcp_is_watched(const struct mcp *m)
{
	return watches_count(m->listeners->watches) > 0;
}

/* ---- the end */

void
listeners_drain(struct mcp *m)
{
	struct listeners *ls = m->listeners;
	struct listen_session *s;
	struct listen_member *l;

	while ((s = TAILQ_FIRST(&ls->streaming)) != NULL)
		stream_end(TAILQ_FIRST(&s->streams));
	while ((l = LIST_FIRST(&ls->members)) != NULL)
		l->end(l);
}

void
listeners_free(struct listeners *ls)
{
	struct listen_session *s;

	if (ls == NULL)
		return;
	while ((s = TAILQ_FIRST(&ls->idle)) != NULL)
		session_forget(s);
	watches_free(ls->watches);
	hashmap_clear(&ls->by_id);
	hashmap_clear(&ls->by_who);
	free(ls);
}

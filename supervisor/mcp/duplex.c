/*
 * duplex.c - streams of HTTP+SSE, and what is asked and answered in them
 *
 * Each message has an exchange of its own, a part, whose transport is here: its
 * events are the stream's, and its plain answer is one event.
 */
#include "supervisor/mcp/duplex.h"

#include <sys/uio.h>

#include <openssl/rand.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/hex.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/accept.h"
#include "supervisor/mcp/listeners.h"
#include "supervisor/mcp/mcp_call.h"

#define ID_BYTES 16
#define ID_LEN (2 * ID_BYTES) /* hex digits */

struct duplex_part { /* a message without an answer */
	LIST_ENTRY(duplex_part) link;
	struct duplex *d;
	struct mcp_exchange *exchange;
	char *request_id; /* JSON text; NULL: no request */
};

struct duplex {
	struct exchange_waiter waiter; /* first */
	struct hash_entry by_id;
	char id[ID_LEN + 1];
	struct mcp *m;
	struct mcp_exchange *exchange; /* its stream; NULL: it has ended */
	struct principal *who;
	bool is_initialized;
	bool is_ending; /* with its last part */
	struct session session;
	struct listen_stream *listening; /* NULL: not yet, or not any more */
	LIST_HEAD(, duplex_part) parts;
	unsigned int nparts;
};

struct duplexes {
	struct hashmap by_id;
};

struct duplexes *
duplexes_new(void)
{
	return xcalloc(1, sizeof(struct duplexes));
}

void
duplexes_free(struct duplexes *ds)
{
	if (ds == NULL)
		return;
	hashmap_clear(&ds->by_id);
	free(ds);
}

/* ---- the end of one */

static void
part_free(struct duplex_part *p)
{
	LIST_REMOVE(p, link);
	p->d->nparts--;
	free(p->request_id);
	free(p);
}

/* What its request began is cancelled, where that is a call; the cancel may
 * end the part. */
static void
part_cancel(struct duplex_part *p)
{
	struct duplex *d = p->d;
	AUTO(auto_free)
	char *id = p->request_id == NULL ? NULL : xstrdup(p->request_id);

	if (d->is_initialized && id != NULL)
		mcp_call_cancel(d->m, &d->session, id);
	if (LIST_FIRST(&d->parts) != p)
		return;
	exchange_abandon(p->exchange);
	part_free(p);
}

/* Its stream is gone, or about to be. */
static void
duplex_free(struct duplex *d)
{
	struct duplex_part *p;

	d->exchange = NULL;
	hashmap_del(&d->m->duplexes->by_id, &d->by_id);
	if (d->listening != NULL)
		listeners_leave(d->listening);
	while ((p = LIST_FIRST(&d->parts)) != NULL)
		part_cancel(p);
	if (d->is_initialized) /* no other stream will ever be its own */
		listeners_end(d->m, d->session.id);
	principal_unref(d->who);
	free(d);
}

static void
duplex_on_end(struct exchange_waiter *w)
{
	duplex_free((struct duplex *)w);
}

/* By the server; d is gone then. */
static void
duplex_close(struct duplex *d)
{
	struct mcp_exchange *x = d->exchange;

	duplex_free(d);
	exchange_answer(x, NULL, NULL);
}

static void
close_if_over(struct duplex *d)
{
	if (d->is_ending && d->exchange != NULL && LIST_EMPTY(&d->parts))
		duplex_close(d);
}

static void
duplex_end(struct duplex *d)
{
	if (d->listening != NULL)
		listeners_leave(d->listening);
	d->listening = NULL;
	d->is_ending = true;
	close_if_over(d);
}

static void
duplex_end_cb(void *arg)
{
	duplex_end(arg);
}

void
duplex_drain_all(struct mcp *m)
{
	struct hash_entry *en, *next;

	HASHMAP_FOREACH (en, next, &m->duplexes->by_id)
		duplex_end(HASH_OF(en, struct duplex, by_id));
}

/* ---- what goes to the client */

/* A client that does not read loses its stream, and not our memory. */
static bool
still_reads(struct duplex *d)
{
	struct mcp_exchange *x = d->exchange;

	if (x == NULL)
		return false;
	if (x->ops->stream_pending(x->handle) <= DUPLEX_BREAK_BYTES)
		return true;
	duplex_close(d);
	return false;
}

static void
part_on_stream_write(void *handle, const struct iovec *pieces, int n)
{
	const struct duplex_part *p = handle;
	const struct mcp_exchange *x = p->d->exchange;

	if (x != NULL)
		x->ops->stream_write(x->handle, pieces, n);
}

static size_t
part_on_stream_pending(void *handle)
{
	const struct duplex_part *p = handle;
	const struct mcp_exchange *x = p->d->exchange;

	/* Nobody reads: leave out what may be. */
	return x == NULL ? SIZE_MAX : x->ops->stream_pending(x->handle);
}

static void
part_end(struct duplex_part *p)
{
	struct duplex *d = p->d;

	part_free(p);
	close_if_over(d);
}

/* initialize was answered: the session is the stream's from now on. */
static void
take_session(struct duplex *d, const char *session_id)
{
	struct mcp_context c = {
	    .m = d->m, .session = &d->session, .who = d->who};

	if (d->is_initialized || d->exchange == NULL ||
	    session_open(d->m->sessions, session_id, d->who,
		clock_wall_ms() / 1000, &d->session) != 0)
		return;
	d->is_initialized = true;
	if (!d->is_ending)
		d->listening =
		    listeners_join(d->exchange, &c, duplex_end_cb, d);
}

static void
part_on_reply(void *handle, int status, const char *session_id,
    const char *text, size_t len)
{
	struct duplex_part *p = handle;
	struct duplex *d = p->d;
	struct mcp_exchange *x = d->exchange;

	(void)status; /* the error says it, too */
	(void)len;
	if (session_id != NULL)
		take_session(d, session_id);
	if (text == NULL || x == NULL) {
		part_end(p);
		return;
	}
	part_free(p);
	/* The client may be found gone, and d with it. */
	exchange_pin(x);
	if (still_reads(d))
		exchange_send(x, text);
	if (exchange_unpin(x))
		close_if_over(d);
}

static void
part_on_stream_start(void *handle, const char *session_id)
{
	struct duplex_part *p = handle;

	if (session_id != NULL)
		take_session(p->d, session_id);
}

static void
part_on_stream_end(void *handle)
{
	struct duplex_part *p = handle;
	struct duplex *d = p->d;
	struct mcp_exchange *x = d->exchange;

	part_free(p);
	if (x != NULL && still_reads(d))
		close_if_over(d);
}

static const struct mcp_transport_ops part_ops = {
    .reply = part_on_reply,
    .stream_start = part_on_stream_start,
    .stream_write = part_on_stream_write,
    .stream_pending = part_on_stream_pending,
    .stream_end = part_on_stream_end,
};

/* ---- a stream, and a message */

void
duplex_open(
    struct mcp_exchange *x, const struct mcp_context *c, const char *messages)
{
	struct duplex *d = xcalloc(1, sizeof(*d));
	AUTO(auto_free) char *endpoint = NULL;
	uint8_t random[ID_BYTES];

	if (RAND_bytes(random, sizeof(random)) != 1)
		fatal(EXIT_BUG, "no random bytes for a stream's id");
	hex_encode(random, sizeof(random), d->id);
	d->waiter.on_end = duplex_on_end;
	d->m = c->m;
	d->exchange = x;
	d->who = principal_ref(c->who);
	LIST_INIT(&d->parts);
	hashmap_put(&c->m->duplexes->by_id, &d->by_id, hashmap_key_text(d->id));
	endpoint = xasprintf("%s?sessionId=%s", messages, d->id);
	exchange_wait(x, &d->waiter);
	exchange_send_as(x, "endpoint", endpoint);
}

static bool
is_duplex(const struct hash_entry *en, const void *key)
{
	return strcmp(HASH_OF(en, const struct duplex, by_id)->id, key) == 0;
}

struct duplex *
duplex_find(const struct mcp *m, const char *id, const struct principal *who)
{
	struct duplex *d = HASH_OBJECT(hashmap_get(&m->duplexes->by_id,
					   hashmap_key_text(id), is_duplex, id),
	    struct duplex, by_id);

	return d != NULL && !d->is_ending && principal_is_same(d->who, who) ?
	    d :
	    NULL;
}

const struct session *
duplex_session(const struct duplex *d)
{
	return d->is_initialized ? &d->session : NULL;
}

int
duplex_check_room(const struct duplex *d, struct err *e)
{
	const struct mcp_exchange *x = d->exchange;

	if (d->nparts >= DUPLEX_REQUESTS_MAX)
		return err_set(e, ERR_LIMIT,
		    "%d requests of this stream wait for their answers: await "
		    "some",
		    DUPLEX_REQUESTS_MAX);
	if (x->ops->stream_pending(x->handle) > DUPLEX_PENDING_MAX)
		return err_set(e, ERR_LIMIT,
		    "the stream has answers that its client did not read: "
		    "read them before you send more");
	return 0;
}

struct mcp_exchange *
duplex_exchange(struct duplex *d, const char *request_id)
{
	struct duplex_part *p = xcalloc(1, sizeof(*p));
	struct err e;

	p->d = d;
	p->request_id = request_id == NULL ? NULL : xstrdup(request_id);
	p->exchange = exchange_new(d->m, &part_ops, p);
	if (exchange_set_forms(p->exchange, ACCEPT_JSON | ACCEPT_STREAM, &e) !=
	    0)
		log_debug("a message without its stream: %s", e.msg);
	LIST_INSERT_HEAD(&d->parts, p, link);
	d->nparts++;
	return p->exchange;
}

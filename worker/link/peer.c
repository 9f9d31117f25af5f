/*
 * peer.c - the worker's end of the link: hello, channels, credit
 *
 *	DOWN -> NEW -> GREETING -> UP -> DOWN ...
 *
 * In each state one table says which frames are permitted (frame_up).  In UP
 * a frame's channel is looked up first: one that is open gets it, one that was
 * open on this stream is passed over (its CLOSE and the frame crossed), one
 * that never was ends the stream.  Numbers are not used again on a stream, so
 * "was" needs no memory: it is any number up to the last one given.
 *
 * The credit of a channel's stream is checked here for all kinds alike, before
 * anybody looks at what came.
 */
#include "worker/link/peer.h"

#include "common/agent_ask.h"
#include "common/credit.h"
#include "common/hashmap.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"

#define SAID_SINCE 5 /* version of the link */
/* Room that large frames leave to small ones. */
#define SMALL_BYTES (256u << 10)

enum peer_state {
	PEER_DOWN,
	PEER_NEW,      /* connected, HELLO comes */
	PEER_GREETING, /* its runs come */
	PEER_UP
};

struct peer {
	struct link *link;
	const struct peer_ops *ops;
	void *arg;
	enum peer_state state;
	struct peer_hello hello;
	uint32_t announced; /* runs that HELLO promised */
	uint32_t greet_ms;  /* peer_limit_greeting */
	struct timer *greet;
	struct hashmap chans;
	uint32_t last;  /* the number given last on this stream */
	uint64_t token; /* of the last PING */
	bool asked;     /* it is not answered */
	uint32_t left;  /* processes that commands left behind */
	bool left_is_new;
};

struct peer_chan {
	struct hash_entry by_number;
	struct peer *peer;
	uint32_t number;
	struct grant grant; /* of stream 0, the only one so far */
	uint64_t window;
	const struct peer_chan_ops *ops;
	void *arg;
};

/* ---- sending */

/* After a frame_put_x into link_out, with what it said. */
static void
sent(struct peer *p, int rc)
{
	static struct log_limit limit;

	if (rc == 0) {
		link_send(p->link);
		return;
	}
	/* The agent reads nothing: its own sandbox waits.  What could not be
	 * said is said anew on the next stream. */
	log_warn_limited(&limit, "link: an agent does not read: closed");
	link_hang_up(p->link);
}

/* ---- greeting */

static int
on_hello(void *arg, const struct frame_hello *m, struct err *e)
{
	/* In its own: it may be older, and takes no other. */
	const struct frame_welcome welcome = {m->version};
	struct peer *p = arg;

	if (m->version < FRAME_VERSION_OLDEST || m->version > FRAME_VERSION)
		return err_set(e, ERR_PROTO,
		    "the agent speaks version %u of the link, this server "
		    "versions %d to %d: the sandbox is of another version of "
		    "it",
		    m->version, FRAME_VERSION_OLDEST, FRAME_VERSION);
	if (m->runs > PEER_RUNS_MAX)
		return err_set(e, ERR_PROTO, "%u runs", m->runs);
	free(p->hello.runs);
	p->hello.runs = NULL;
	p->hello.nruns = 0;
	p->hello.version = m->version;
	p->hello.boot = m->boot;
	p->announced = m->runs;
	p->state = PEER_GREETING;
	sent(p, frame_put_welcome(link_out(p->link), &welcome));
	return 0;
}

static int
on_hello_run(void *arg, const struct frame_hello_run *m, struct err *e)
{
	struct peer *p = arg;
	struct peer_hello *h = &p->hello;

	if (h->nruns >= p->announced || m->from > m->length ||
	    m->length > INT64_MAX)
		return err_set(e, ERR_PROTO, "a run that cannot be");
	if (h->nruns % 16 == 0)
		h->runs =
		    xreallocarray(h->runs, h->nruns + 16, sizeof(*h->runs));
	h->runs[h->nruns++] = (struct peer_run){.uuid = m->run,
	    .ended = m->ended,
	    .from = m->from,
	    .length = m->length};
	return 0;
}

static int
on_hello_end(void *arg, const struct frame_hello_end *m, struct err *e)
{
	struct peer *p = arg;

	if (p->hello.nruns != p->announced)
		return err_set(e, ERR_PROTO, "%u runs were promised, %u came",
		    p->announced, p->hello.nruns);
	p->state = PEER_UP;
	timer_stop(p->greet);
	p->left = m->left;
	p->left_is_new = true;
	return p->ops->on_hello(&p->hello, p->arg, e);
}

/* ---- channels */

static struct peer_chan *
chan_new(struct peer *p, uint64_t from, uint64_t window,
    const struct peer_chan_ops *ops, void *arg)
{
	struct peer_chan *c = xcalloc(1, sizeof(*c));

	if (p->last == UINT32_MAX) /* the next stream begins with 1 again */
		link_hang_up(p->link);
	else
		p->last++;
	c->peer = p;
	c->number = p->last;
	c->window = window;
	grant_open(&c->grant, from, from + window);
	c->ops = ops;
	c->arg = arg;
	hashmap_put(&p->chans, &c->by_number, hashmap_key_u64(c->number));
	return c;
}

void
peer_leave(struct peer_chan *c)
{
	if (c == NULL)
		return;
	hashmap_del(&c->peer->chans, &c->by_number);
	free(c);
}

/* 1; 0 and *c NULL for a number that was. */
static int
chan_find(struct peer *p, uint32_t number, struct peer_chan **c, struct err *e)
{
	*c = HASH_OBJECT(
	    hashmap_get_u64(&p->chans, number), struct peer_chan, by_number);
	if (*c == NULL && (number == 0 || number > p->last))
		return err_set(e, ERR_PROTO, "channel %u never was", number);
	return *c != NULL;
}

static int
not_this_kind(uint32_t number, struct err *e)
{
	return err_set(e, ERR_PROTO, "not for channel %u", number);
}

static int
on_known(void *arg, const struct frame_known *m, struct err *e)
{
	struct peer_chan *c;
	int rc = chan_find(arg, m->chan, &c, e);

	if (rc <= 0)
		return rc;
	if (c->ops->on_known == NULL)
		return not_this_kind(m->chan, e);
	return c->ops->on_known(m->fresh, c->arg, e);
}

static int
on_data(void *arg, const struct frame_data *m, struct err *e)
{
	struct peer_chan *c;
	int rc = chan_find(arg, m->chan, &c, e);

	if (rc <= 0)
		return rc;
	if (c->ops->on_data == NULL || m->stream != 0)
		return not_this_kind(m->chan, e);
	if (m->bytes.n > FRAME_DATA_MAX)
		return err_set(e, ERR_PROTO, "%zu bytes", m->bytes.n);
	if (grant_take(&c->grant, m->offset, m->bytes.n, e) != 0)
		return ERR_PROTO;
	return c->ops->on_data(m->bytes.p, m->bytes.n, c->arg, e);
}

static int
on_entry(void *arg, const struct frame_entry *m, struct err *e)
{
	struct peer_chan *c;
	int rc = chan_find(arg, m->chan, &c, e);

	if (rc <= 0)
		return rc;
	if (c->ops->on_entry == NULL)
		return not_this_kind(m->chan, e);
	if (m->kind == 0 || strchr("fdl?", m->kind) == NULL)
		return err_set(e, ERR_PROTO, "file of kind %u", m->kind);
	if (grant_take(&c->grant, m->index, 1, e) != 0)
		return ERR_PROTO;
	return c->ops->on_entry(m, c->arg, e);
}

static int
on_close(void *arg, const struct frame_close *m, struct err *e)
{
	const struct peer_chan_ops *ops;
	struct peer_chan *c;
	int rc = chan_find(arg, m->chan, &c, e);

	if (rc <= 0)
		return rc;
	ops = c->ops;
	arg = c->arg;
	peer_leave(c);
	ops->on_close(m->code, m->text, arg);
	return 0;
}

static int
on_pong(void *arg, const struct frame_pong *m, struct err *e)
{
	struct peer *p = arg;

	if (!p->asked || m->token != p->token)
		return err_set(e, ERR_PROTO, "an answer to nothing");
	p->asked = false;
	p->left = m->left;
	p->left_is_new = true;
	return 0;
}

static int
on_said(void *arg, const struct frame_said *m, struct err *e)
{
	const struct peer *p = arg;

	if (p->hello.version < SAID_SINCE)
		return err_set(
		    e, ERR_PROTO, "SAID in version %u", p->hello.version);
	if (p->ops->on_said != NULL)
		p->ops->on_said(m, p->arg);
	return 0;
}

/* ---- the stream */

static const struct frame_up permitted[] = {
    [PEER_DOWN] = {0},
    [PEER_NEW] = {.on_hello = on_hello},
    [PEER_GREETING] = {.on_hello_run = on_hello_run,
	.on_hello_end = on_hello_end},
    [PEER_UP] = {.on_known = on_known,
	.on_data = on_data,
	.on_entry = on_entry,
	.on_close = on_close,
	.on_pong = on_pong,
	.on_said = on_said},
};

static int
frame_cb(struct frame *f, void *arg, struct err *e)
{
	const struct peer *p = arg;

	return frame_dispatch_up(&permitted[p->state], f, arg, e);
}

static void
open_cb(void *arg)
{
	struct peer *p = arg;

	p->state = PEER_NEW;
	p->last = 0;
	p->asked = false;
	if (p->greet_ms != 0)
		timer_set_ms(p->greet, p->greet_ms);
}

/* It may be open at this end alone. */
static void
mute_cb(void *arg)
{
	struct peer *p = arg;

	if (p->link->paused)
		timer_set_ms(p->greet, p->greet_ms);
	else
		link_hang_up(p->link); /* then close_cb */
}

static void
lose_chans(struct peer *p)
{
	struct hash_entry *en;

	while ((en = hashmap_next(&p->chans, NULL)) != NULL) {
		struct peer_chan *c = HASH_OF(en, struct peer_chan, by_number);

		c->ops->on_lost(c->arg);
		peer_leave(c);
	}
}

static void
close_cb(const struct err *why, void *arg)
{
	struct peer *p = arg;
	struct err said = *why;

	/* Before the agent does, a backend may say on its stream why it has
	 * none: "OCI runtime exec failed", say. */
	if (p->greet_ms != 0 && p->state == PEER_NEW && why->code == ERR_PROTO)
		said.code = ERR_LOST;
	p->state = PEER_DOWN;
	timer_stop(p->greet);
	lose_chans(p);
	p->ops->on_down(&said, p->arg);
}

static void
turn_cb(void *arg)
{
	struct peer *p = arg;

	p->ops->on_turn(p->arg);
}

static void
drain_cb(void *arg)
{
	struct peer *p = arg;

	p->ops->on_drain(p->arg);
}

static const struct link_user peer_user = {
    open_cb, frame_cb, turn_cb, close_cb, drain_cb};

struct peer *
peer_new(struct link *link, const struct peer_ops *ops, void *arg)
{
	struct peer *p = xcalloc(1, sizeof(*p));

	p->link = link;
	p->ops = ops;
	p->arg = arg;
	p->greet = timer_new(link->base, mute_cb, p);
	link_set_user(link, &peer_user, p);
	return p;
}

void
peer_free(struct peer *p)
{
	if (p == NULL)
		return;
	lose_chans(p);
	hashmap_clear(&p->chans);
	timer_free(p->greet);
	link_free(p->link);
	free(p->hello.runs);
	free(p);
}

void
peer_limit_greeting(struct peer *p, uint32_t ms)
{
	p->greet_ms = ms;
}

bool
peer_ping(struct peer *p)
{
	const struct frame_ping m = {p->token + 1};

	if (p->asked)
		return false;
	p->token++;
	p->asked = true;
	sent(p, frame_put_ping(link_out(p->link), &m));
	return true;
}

void
peer_lease(struct peer *p, uint64_t ms)
{
	const struct frame_lease m = {ms};

	if (p->state == PEER_UP)
		sent(p, frame_put_lease(link_out(p->link), &m));
}

bool
peer_has_room(const struct peer *p, size_t n)
{
	return link_room(p->link) >= n + SMALL_BYTES;
}

/* ---- for the channels' owners */

struct peer_chan *
peer_open_sequence(struct peer *p, struct frame_open_sequence m,
    const struct peer_chan_ops *ops, void *arg)
{
	struct peer_chan *c = chan_new(p, m.from, FRAME_WINDOW_BYTES, ops, arg);

	m.chan = c->number;
	m.limit = c->grant.limit;
	sent(p, frame_put_open_sequence(link_out(p->link), &m));
	return c;
}

struct peer_chan *
peer_open_read(struct peer *p, struct frame_open_read m,
    const struct peer_chan_ops *ops, void *arg)
{
	struct peer_chan *c = chan_new(p, m.from, FRAME_WINDOW_BYTES, ops, arg);

	m.chan = c->number;
	m.limit = c->grant.limit;
	sent(p, frame_put_open_read(link_out(p->link), &m));
	return c;
}

struct peer_chan *
peer_open_walk(struct peer *p, struct frame_open_walk m,
    const struct peer_chan_ops *ops, void *arg)
{
	struct peer_chan *c = chan_new(p, 0, PEER_WALK_WINDOW, ops, arg);

	m.chan = c->number;
	m.limit = c->grant.limit;
	sent(p, frame_put_open_walk(link_out(p->link), &m));
	return c;
}

struct peer_chan *
peer_open_ask(struct peer *p, struct frame_open_ask m,
    const struct peer_chan_ops *ops, void *arg)
{
	struct peer_chan *c = chan_new(p, 0, ASK_ANSWER_MAX, ops, arg);

	m.chan = c->number;
	m.limit = c->grant.limit;
	sent(p, frame_put_open_ask(link_out(p->link), &m));
	return c;
}

bool
peer_take_left(struct peer *p, uint32_t *count)
{
	bool is_new = p->left_is_new;

	p->left_is_new = false;
	*count = p->left;
	return is_new;
}

void
peer_take(struct peer_chan *c, uint64_t offset)
{
	const struct frame_credit m = {
	    .chan = c->number, .taken = offset, .limit = offset + c->window};

	if (m.limit > c->grant.limit)
		c->grant.limit = m.limit;
	sent(c->peer, frame_put_credit(link_out(c->peer->link), &m));
}

void
peer_cancel(struct peer_chan *c, enum runlog_reason reason)
{
	const struct frame_cancel m = {
	    .chan = c->number, .reason = (uint8_t)reason};

	sent(c->peer, frame_put_cancel(link_out(c->peer->link), &m));
}

void
peer_close(struct peer_chan *c)
{
	struct frame_close m = {.text = ""};

	if (c == NULL)
		return;
	m.chan = c->number;
	sent(c->peer, frame_put_close(link_out(c->peer->link), &m));
	peer_leave(c);
}

void
peer_forget(struct peer_chan *c)
{
	struct frame_close m = {.text = "", .chan = c->number};
	struct link *l = c->peer->link;

	peer_leave(c);
	if (frame_put_close(link_out(l), &m) == 0)
		link_send_soon(l);
	else
		link_hang_up(l);
}

/* A channel without an owner, for as long as it takes to close it. */
void
peer_discard(struct peer *p, const struct uuid *run, uint64_t from)
{
	if (p->state == PEER_UP)
		peer_close(peer_open_sequence(p,
		    (struct frame_open_sequence){.run = *run, .from = from},
		    NULL, NULL));
}

void
peer_taken(struct peer *p, const struct frame_taken *m)
{
	if (p->state == PEER_UP)
		sent(p, frame_put_taken(link_out(p->link), m));
}

void
peer_taken_stored(struct peer *p, bool stored)
{
	const struct frame_taken_stored m = {.stored = stored};

	if (p->state == PEER_UP)
		sent(p, frame_put_taken_stored(link_out(p->link), &m));
}

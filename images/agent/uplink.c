#include "images/agent/uplink.h"

#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/log.h"
#include "images/agent/say.h"

#define UPLINK_READ_BYTES 65536
#define UPLINK_CHUNKS 8 /* flows served by one write */
/* From so much output on nothing is held back: the command is no short one. */
#define UPLINK_HOLD_BYTES 16384

void
uplink_init(struct uplink *u, struct loop *loop, const char *address,
    const struct uplink_ops *ops, void *arg)
{
	memset(u, 0, sizeof(*u));
	u->loop = loop;
	u->ops = ops;
	u->arg = arg;
	u->link.carrier = &uplink_unix;
	u->link.address = address;
	u->link.fd = -1;
	u->backoff_ms = UPLINK_BACKOFF_FIRST_MS;
	buf_init(&u->in, FRAME_DOWN_MAX + UPLINK_READ_BYTES);
	buf_init(&u->out, UPLINK_OUT_MAX);
	TAILQ_INIT(&u->queue);
}

void
uplink_await(struct uplink *u, uint64_t quiet_ms)
{
	u->link.carrier = &uplink_bridge;
	u->quiet_ms = quiet_ms;
}

static void
set_retry(struct uplink *u)
{
	u->retry_at_ms = clock_mono_ms() + u->backoff_ms;
	u->backoff_ms = u->backoff_ms * 2 < UPLINK_BACKOFF_MAX_MS ?
	    u->backoff_ms * 2 :
	    UPLINK_BACKOFF_MAX_MS;
}

static void
uplink_lose(struct uplink *u)
{
	struct flow *f;

	if (u->state == UPLINK_DOWN)
		return;
	u->state = UPLINK_DOWN;
	loop_del(u->loop, &u->token);
	u->link.carrier->close(&u->link);
	buf_clear(&u->in);
	buf_clear(&u->out);
	u->blocked = false;
	u->choked = false;
	u->hold_until_us = 0;
	while ((f = TAILQ_FIRST(&u->queue)) != NULL)
		uplink_drop(u, f);
	set_retry(u);
	u->ops->on_close(u->arg);
}

/* That the other side is alive: it sends, or takes what it is sent.  The
 * latter counts only while nothing is read for lack of room: at other times
 * it may be a buffer on the way that takes it. */
static void
note_moved(struct uplink *u)
{
	if (u->quiet_ms != 0)
		u->moved_ms = clock_mono_ms();
}

static void
set_events(struct uplink *u)
{
	uint32_t want =
	    (uplink_has_room(u) ? EPOLLIN : 0u) | (u->blocked ? EPOLLOUT : 0u);

	if (u->state == UPLINK_DOWN || want == u->events)
		return;
	u->events = want;
	loop_mod(u->loop, u->token, want);
}

static int
take_frame(struct uplink *u, struct frame *f, struct err *e)
{
	struct frame_welcome m;

	if (u->state == UPLINK_UP && f->type != FRAME_WELCOME)
		return u->ops->on_frame(f, u->arg, e);
	if (u->state == UPLINK_UP || f->type != FRAME_WELCOME)
		return err_set(e, ERR_PROTO, "%s not permitted now",
		    frame_type_name(f->type));
	if (frame_get_welcome(f, &m, e) != 0)
		return ERR_PROTO;
	if (m.version != FRAME_VERSION)
		return err_set(e, ERR_PROTO, "version %u, want %d", m.version,
		    FRAME_VERSION);
	u->state = UPLINK_UP;
	u->backoff_ms = UPLINK_BACKOFF_FIRST_MS;
	return 0;
}

static void
take_frames(struct uplink *u)
{
	struct frame f;
	struct err e;
	int n = 0;

	while (u->state != UPLINK_DOWN && uplink_has_room(u) &&
	    (n = frame_next(&u->in, FRAME_DOWN_MAX, &f, &e)) == 1) {
		if (take_frame(u, &f, &e) != 0) {
			n = ERR_PROTO;
			break;
		}
		buf_consume(&u->in, f.size);
	}
	u->choked = !uplink_has_room(u);
	if (n < 0) {
		say_line(FRAME_SAID_LEVEL_WARN, FRAME_SAID_WHAT_LINK_REFUSED,
		    NULL, "%s", e.msg);
		uplink_lose(u);
	}
	if (buf_len(&u->in) == 0 && u->in.cap > UPLINK_READ_BYTES)
		buf_shrink(&u->in);
}

static void
uplink_read(struct uplink *u)
{
	uint8_t *p = buf_reserve(&u->in, UPLINK_READ_BYTES);
	ssize_t n;

	if (p == NULL) { /* cannot be: frame_next refuses before */
		uplink_lose(u);
		return;
	}
	n = u->link.carrier->read(&u->link, p, UPLINK_READ_BYTES);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		uplink_lose(u);
		return;
	}
	buf_commit(&u->in, (size_t)n);
	note_moved(u);
	take_frames(u);
}

static void
uplink_event_cb(uint32_t events, void *arg)
{
	struct uplink *u = arg;

	if ((events & EPOLLOUT) != 0)
		u->blocked = false;
	if ((events & EPOLLIN) != 0 && uplink_has_room(u))
		uplink_read(u);
	else if ((events & (EPOLLHUP | EPOLLERR)) != 0)
		uplink_lose(u);
}

/* The stream is open: greet. */
static void
uplink_begin(struct uplink *u)
{
	u->events = EPOLLIN;
	u->token = loop_add(u->loop, u->link.fd, u->events, uplink_event_cb, u);
	if (u->token == 0) {
		u->link.carrier->close(&u->link);
		set_retry(u);
		return;
	}
	u->state = UPLINK_GREETING;
	note_moved(u);
	u->ops->on_open(u->arg);
}

void
uplink_take(struct uplink *u, int fd)
{
	uplink_lose(u);
	u->link.fd = fd;
	uplink_begin(u);
}

/* When the stream is given up; UINT64_MAX: never. */
static uint64_t
give_up_at_ms(const struct uplink *u)
{
	return u->state != UPLINK_DOWN && u->quiet_ms != 0 ?
	    u->moved_ms + u->quiet_ms :
	    UINT64_MAX;
}

void
uplink_tick(struct uplink *u, uint64_t now_ms)
{
	struct err e;

	if (now_ms >= give_up_at_ms(u)) {
		say_line(FRAME_SAID_LEVEL_INFO, FRAME_SAID_WHAT_LINK_REFUSED,
		    NULL, "a bridge was quiet for %llu ms",
		    (unsigned long long)u->quiet_ms);
		uplink_lose(u);
	}
	if (u->state != UPLINK_DOWN || u->link.carrier->open == NULL ||
	    now_ms < u->retry_at_ms)
		return;
	if (u->link.carrier->open(&u->link, &e) == 0)
		uplink_begin(u);
	else
		set_retry(u);
}

void
uplink_put(struct uplink *u, int rc)
{
	if (rc != 0)
		fatal(EXIT_BUG, "link: a frame behind %zu bytes",
		    buf_len(&u->out));
}

bool
uplink_has_room(const struct uplink *u)
{
	return buf_len(&u->out) < UPLINK_OUT_HIGH;
}

bool
uplink_is_up(const struct uplink *u)
{
	return u->state == UPLINK_UP;
}

void
uplink_kick(struct uplink *u, struct flow *f)
{
	size_t n = flow_sendable(f);

	if (n == 0 || u->state != UPLINK_UP)
		return;
	if (n >= UPLINK_HOLD_BYTES)
		u->hold_until_us = 0;
	if (f->queued)
		return;
	f->queued = true;
	TAILQ_INSERT_TAIL(&u->queue, f, by_turn);
}

void
uplink_drop(struct uplink *u, struct flow *f)
{
	if (f->queued)
		TAILQ_REMOVE(&u->queue, f, by_turn);
	f->queued = false;
}

void
uplink_hold(struct uplink *u)
{
	if (buf_len(&u->out) == 0 && TAILQ_EMPTY(&u->queue))
		u->hold_until_us = clock_mono_us() + UPLINK_HOLD_US;
}

void
uplink_hurry(struct uplink *u)
{
	uint64_t now;

	if (u->hold_until_us == 0)
		return;
	now = clock_mono_us();
	if (u->hold_until_us > now + UPLINK_OUTPUT_US)
		u->hold_until_us = now + UPLINK_OUTPUT_US;
}

void
uplink_urgent(struct uplink *u)
{
	u->hold_until_us = 0;
}

/* A DATA frame: its head here, its bytes where they lie in the ring. */
struct chunk {
	struct flow *flow;
	struct buf head;
	size_t size; /* of the bytes */
	size_t total;
};

struct batch {
	struct iovec iov[1 + UPLINK_CHUNKS * 3];
	int niov;
	struct chunk chunks[UPLINK_CHUNKS];
	size_t nchunks;
};

static void
batch_add_flow(struct batch *b, struct flow *f)
{
	/* heads keep their memory from one batch to the next */
	static struct buf heads[UPLINK_CHUNKS];
	struct chunk *c = &b->chunks[b->nchunks];
	struct buf *h = &heads[b->nchunks];
	size_t n = flow_sendable(f);
	/* Without the bytes: they follow from the ring. */
	struct frame_data m = {.chan = f->chan,
	    .stream = f->stream,
	    .offset = f->credit.sent,
	    .bytes = {.n = n < FRAME_DATA_MAX ? n : FRAME_DATA_MAX}};

	buf_consume(h, buf_len(h));
	if (frame_put_data(h, &m) != 0)
		fatal(EXIT_BUG, "link: a head of %zu bytes", buf_len(h));
	c->flow = f;
	c->size = m.bytes.n;
	c->head = *h;
	c->total = buf_len(h) + c->size;
	b->nchunks++;
	b->iov[b->niov].iov_base = buf_data(h);
	b->iov[b->niov++].iov_len = buf_len(h);
	b->niov +=
	    ring_view(&f->ring, f->credit.sent, c->size, &b->iov[b->niov]);
}

static void
batch_build(struct batch *b, struct uplink *u)
{
	struct flow *f;

	b->niov = 0;
	b->nchunks = 0;
	if (buf_len(&u->out) > 0) {
		b->iov[0].iov_base = buf_data(&u->out);
		b->iov[0].iov_len = buf_len(&u->out);
		b->niov = 1;
	}
	TAILQ_FOREACH (f, &u->queue, by_turn) {
		if (b->nchunks == UPLINK_CHUNKS)
			break;
		batch_add_flow(b, f);
	}
}

/* The part of c from byte "from" on could not be written: copies it into
 * u->out, since no other frame may come in between. */
static void
keep_rest(struct uplink *u, const struct chunk *c, size_t from)
{
	struct iovec iov[2];
	size_t head = buf_len(&c->head);
	int bad = 0;

	if (from < head)
		bad |=
		    buf_append(&u->out, buf_data(&c->head) + from, head - from);
	from = from > head ? from - head : 0;
	for (int i = 0,
		 n = ring_view(&c->flow->ring, c->flow->credit.sent + from,
		     c->size - from, iov);
	     i < n; i++)
		bad |= buf_append(&u->out, iov[i].iov_base, iov[i].iov_len);
	if (bad != 0)
		fatal(EXIT_BUG, "link: the send queue is full");
}

/* n bytes of the batch were written. */
static void
batch_account(struct batch *b, struct uplink *u, size_t n)
{
	size_t queued = buf_len(&u->out);

	if (n < queued) {
		buf_consume(&u->out, n);
		return;
	}
	buf_consume(&u->out, queued);
	n -= queued;
	for (size_t i = 0; i < b->nchunks && n > 0; i++) {
		struct chunk *c = &b->chunks[i];
		struct flow *f = c->flow;

		if (n < c->total)
			keep_rest(u, c, n);
		n -= n < c->total ? n : c->total;
		f->credit.sent += c->size;
		uplink_drop(u, f); /* to the end of the queue */
		uplink_kick(u, f);
	}
}

static bool
flush_is_due(const struct uplink *u)
{
	if (u->state == UPLINK_DOWN || u->blocked)
		return false;
	if (buf_len(&u->out) == 0 && TAILQ_EMPTY(&u->queue))
		return false;
	return u->hold_until_us == 0 || clock_mono_us() >= u->hold_until_us;
}

/* One write; false when there is nothing more to write now. */
static bool
flush_once(struct uplink *u)
{
	struct batch b;
	ssize_t n;

	batch_build(&b, u);
	if (b.niov == 0)
		return false;
	n = u->link.carrier->write(&u->link, b.iov, b.niov);
	if (n > 0) {
		if (!uplink_has_room(u))
			note_moved(u);
		batch_account(&b, u, (size_t)n);
		return true;
	}
	if (n == -1 && errno == EINTR)
		return true;
	if (n == -1 && errno == EAGAIN)
		u->blocked = true;
	else
		uplink_lose(u);
	return false;
}

void
uplink_flush(struct uplink *u)
{
	/* Frames that waited because the queue was full. */
	if (u->state != UPLINK_DOWN && buf_len(&u->in) > 0)
		take_frames(u);
	if (!flush_is_due(u)) {
		set_events(u);
		return;
	}
	u->hold_until_us = 0;
	/* A few at most: output and commands must get their turn. */
	for (int i = 0; i < 4 && flush_once(u); i++)
		continue;
	if (u->state != UPLINK_DOWN && u->out.cap > UPLINK_OUT_HIGH)
		buf_shrink(&u->out);
	set_events(u);
}

/* In ms from now, when there is something to send; -1: nothing is. */
static int
next_flush_ms(const struct uplink *u)
{
	uint64_t now;

	if (u->blocked || (buf_len(&u->out) == 0 && TAILQ_EMPTY(&u->queue)))
		return -1;
	if (u->hold_until_us == 0)
		return 0;
	now = clock_mono_us();
	return u->hold_until_us > now ?
	    (int)((u->hold_until_us - now + 999) / 1000) :
	    0;
}

static int
ms_until(uint64_t at_ms)
{
	uint64_t now = clock_mono_ms();

	if (at_ms <= now)
		return 0;
	return at_ms - now < INT_MAX ? (int)(at_ms - now) : INT_MAX;
}

int
uplink_next_ms(const struct uplink *u)
{
	int flush, quiet;

	if (u->state == UPLINK_DOWN)
		return u->link.carrier->open == NULL ? -1 :
						       ms_until(u->retry_at_ms);
	flush = next_flush_ms(u);
	if (u->quiet_ms == 0)
		return flush;
	quiet = ms_until(give_up_at_ms(u));
	return flush == -1 || quiet < flush ? quiet : flush;
}

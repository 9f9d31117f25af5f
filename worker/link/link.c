/*
 * A link has at most one stream at a time: a descriptor that its carrier gives
 * to link_begin.
 *
 * Reading: what is there, up to LINK_TURN_BYTES, is cut into frames in one
 * buffer that all links share.  A link keeps only a frame that is not whole
 * yet, and of a DATA frame no more than its head: its user gets the bytes that
 * have come as a frame of its own.  The user may free the link in any
 * callback: the stream's generation tells read_turn that it did, and memory is
 * freed in a later turn of the loop.
 *
 * Each link has a budget of bytes (struct pace), so that a sandbox that prints
 * without end does not take the loop, the disk and the front from the others.
 *
 * Writing: at the end of a turn, or at once outside of one.
 */
#include "worker/link/link.h"

#include <errno.h>
#include <sys/socket.h>

#include <event2/event.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/later.h"

#define READ_BYTES 262144
/* A shorter piece of a DATA frame waits for the rest of it. */
#define CUT_MIN_BYTES 1024
/* An output buffer above this gives its memory back. */
#define OUT_KEEP_BYTES 16384

/* The read buffer of all links: empty between two calls of read_turn. */
static uint8_t *spare;
#define SPARE_BYTES (FRAME_UP_MAX + READ_BYTES)

/* ---- the pace */

/* Beyond this no product below overflows. */
#define RATE_MAX (UINT64_C(1) << 50)

void
pace_init(struct pace *p, uint64_t most, uint64_t now_ms)
{
	p->most = most < RATE_MAX ? most : RATE_MAX;
	p->rate = p->most;
	p->budget = (int64_t)p->rate;
	p->at_ms = now_ms;
}

void
pace_set(struct pace *p, uint64_t rate, uint64_t now_ms)
{
	uint64_t was = p->rate;

	if (rate == 0 || (p->most != 0 && rate > p->most))
		rate = p->most;
	p->rate = rate < RATE_MAX ? rate : RATE_MAX;
	/* What was saved up is not spent at a lower rate. */
	if (was == 0 || p->budget > (int64_t)p->rate) {
		p->budget = (int64_t)p->rate;
		p->at_ms = now_ms;
	}
}

uint64_t
pace_charge(struct pace *p, size_t n, uint64_t now_ms)
{
	int64_t rate = (int64_t)p->rate;
	uint64_t ms = now_ms - p->at_ms;

	if (rate == 0)
		return 0;
	if (ms >= 1000 || p->budget + (int64_t)ms * rate / 1000 > rate)
		p->budget = rate;
	else
		p->budget += (int64_t)ms * rate / 1000;
	p->at_ms = now_ms;
	p->budget -= (int64_t)n;
	if (p->budget >= 0)
		return 0;
	return (uint64_t)(-p->budget) * 1000 / p->rate + 1;
}

/* ---- the end of a stream */

static void
stream_end(struct link *l)
{
	if (l->fd == -1)
		return;
	later_event_free(l->base, l->on_read);
	later_event_free(l->base, l->on_write);
	(void)close(l->fd);
	l->fd = -1;
	l->failed = 0;
	l->generation++;
	buf_clear(&l->in);
	buf_clear(&l->out);
}

static void
stream_lose(struct link *l, const struct err *why)
{
	struct err copy = *why;

	stream_end(l);
	l->user->on_close(&copy, l->arg);
}

static void
stream_lose_errno(struct link *l, const char *what, int number)
{
	struct err e;

	(void)err_set(&e, ERR_LOST, "%s: %s", what, strerror(number));
	stream_lose(l, &e);
}

/* ---- writing */

static void
stream_write(struct link *l)
{
	struct buf *out = &l->out;
	ssize_t n;

	while (buf_len(out) > 0) {
		n = send(l->fd, buf_data(out), buf_len(out), MSG_NOSIGNAL);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && errno == EAGAIN) {
			(void)event_add(l->on_write, NULL);
			return;
		}
		if (n == -1) {
			/* on_close comes from the loop: the sender is not
			 * ready for it. */
			l->failed = errno;
			event_active(l->on_write, EV_WRITE, 0);
			return;
		}
		buf_consume(out, (size_t)n);
	}
	if (timer_is_set(l->soon))
		timer_stop(l->soon);
	if (out->cap > OUT_KEEP_BYTES)
		buf_shrink(out);
}

static void
write_cb(evutil_socket_t fd, short what, void *arg)
{
	struct link *l = arg;

	(void)fd;
	(void)what;
	if (l->failed == 0)
		stream_write(l);
	if (l->failed != 0)
		stream_lose_errno(l, "send", l->failed);
	else if (buf_len(&l->out) == 0)
		l->user->on_drain(l->arg);
}

void
link_send(struct link *l)
{
	if (l->fd == -1 || l->failed != 0)
		buf_clear(&l->out);
	else if (l->in_turn)
		l->sends = true;
	else if (!event_pending(l->on_write, EV_WRITE, NULL))
		stream_write(l);
}

static void
soon_cb(void *arg)
{
	link_send(arg);
}

void
link_send_soon(struct link *l)
{
	if (l->fd == -1 || l->failed != 0)
		buf_clear(&l->out);
	else if (!timer_is_set(l->soon))
		timer_set_ms(l->soon, LINK_SOON_MS);
}

/* ---- reading */

/* Frames at p; what is left over stays at p's beginning and is returned.  -1:
 * the stream is gone. */
static ssize_t
take_frames(struct link *l, uint8_t *p, size_t n)
{
	struct buf view = {.mem = p, .end = n, .cap = n, .max = n};
	uint32_t generation = l->generation;
	struct frame f;
	struct err e;
	int rc;

	while ((rc = frame_next(&view, FRAME_UP_MAX, &f, &e)) == 1) {
		size_t size = f.size;

		rc = l->user->on_frame(&f, l->arg, &e);
		if (l->generation != generation)
			return -1;
		if (rc < 0)
			break;
		buf_consume(&view, size);
	}
	if (rc < 0) {
		e.code = ERR_PROTO;
		stream_lose(l, &e);
		return -1;
	}
	memmove(p, p + view.start, buf_len(&view));
	return (ssize_t)buf_len(&view);
}

static bool
is_read(const struct link *l)
{
	return l->fd != -1 && !l->paused && !timer_is_set(l->refill);
}

static void
refill_cb(void *arg)
{
	struct link *l = arg;

	if (is_read(l))
		(void)event_add(l->on_read, NULL);
}

/* n bytes were read: stop reading for as long as the pace wants. */
static void
charge(struct link *l, size_t n)
{
	uint64_t ms = pace_charge(&l->pace, n, clock_mono_ms());

	if (ms == 0)
		return;
	timer_set_ms(l->refill, ms);
	if (l->fd != -1)
		(void)event_del(l->on_read);
}

/* One read and its frames: 1 there may be more, 0 not now, -1 gone.  *have:
 * the bytes of a beginning frame in spare. */
static int
read_some(struct link *l, size_t *have, size_t *total)
{
	ssize_t n = recv(l->fd, spare + *have, READ_BYTES, 0);
	bool full = n == READ_BYTES;
	struct err e;

	if (n == -1 && errno == EINTR)
		return 1;
	if (n == -1 && errno == EAGAIN)
		return 0;
	if (n == -1) {
		stream_lose_errno(l, "receive", errno);
		return -1;
	}
	if (n == 0) {
		(void)err_set(&e, ERR_LOST, "the agent closed the link");
		stream_lose(l, &e);
		return -1;
	}
	*total += (size_t)n;
	n = take_frames(l, spare, *have + (size_t)n);
	if (n < 0)
		return -1;
	*have = (size_t)n;
	return full ? 1 : 0;
}

/* The end of a turn, with the first n bytes of a frame in spare.  Of a DATA
 * frame they are passed on now: keeping them would cost memory and a copy.
 * Returns as take_frames. */
static ssize_t
take_beginning(struct link *l, size_t n)
{
	struct buf view = {
	    .mem = spare, .end = n, .cap = SPARE_BYTES, .max = SPARE_BYTES};
	uint32_t generation = l->generation;
	struct frame_data rest;
	struct frame f;
	struct err e;
	int rc;

	if (n < CUT_MIN_BYTES || !frame_cut(&view, &f, &rest))
		return (ssize_t)n;
	rc = l->user->on_frame(&f, l->arg, &e);
	if (l->generation != generation)
		return -1;
	if (rc < 0) {
		e.code = ERR_PROTO;
		stream_lose(l, &e);
		return -1;
	}
	view.end = 0;
	if (frame_put_data(&view, &rest) != 0)
		fatal(EXIT_BUG, "link: the head of a frame");
	return (ssize_t)buf_len(&view);
}

/* False: the stream is gone. */
static bool
read_turn(struct link *l)
{
	size_t have = buf_len(&l->in), total = 0;
	ssize_t kept;
	int more = 1;

	if (spare == NULL)
		spare = xmalloc(SPARE_BYTES);
	if (have > 0)
		memcpy(spare, buf_data(&l->in), have);
	buf_consume(&l->in, have);
	while (more == 1 && total < LINK_TURN_BYTES && !l->paused)
		more = read_some(l, &have, &total);
	if (more < 0)
		return false;
	charge(l, total);
	kept = take_beginning(l, have);
	if (kept < 0)
		return false;
	if (kept == 0)
		buf_shrink(&l->in);
	else if (buf_append(&l->in, spare, (size_t)kept) != 0)
		fatal(EXIT_BUG, "link: %zd bytes of a frame", kept);
	return true;
}

static void
read_cb(evutil_socket_t fd, short what, void *arg)
{
	struct link *l = arg;
	uint32_t generation = l->generation;
	bool good;

	(void)fd;
	(void)what;
	l->in_turn = true;
	l->sends = false;
	good = read_turn(l);
	if (good)
		l->user->on_turn(l->arg);
	l->in_turn = false;
	/* link_send_soon alone does not send here. */
	if (good && l->generation == generation && l->sends)
		link_send(l);
}

void
link_pause(struct link *l)
{
	l->paused = true;
	if (l->fd != -1)
		(void)event_del(l->on_read);
}

void
link_resume(struct link *l)
{
	l->paused = false;
	if (is_read(l))
		(void)event_add(l->on_read, NULL);
}

/* A wait that has begun keeps the old rate. */
void
link_pace(struct link *l, uint64_t bytes_per_s)
{
	pace_set(&l->pace, bytes_per_s, clock_mono_ms());
}

/* ---- life */

struct link *
link_new(struct event_base *base, uint64_t bytes_per_s)
{
	struct link *l = xcalloc(1, sizeof(*l));

	l->base = base;
	l->fd = -1;
	buf_init(&l->out, LINK_OUT_MAX);
	buf_init(&l->in, FRAME_UP_MAX);
	l->refill = timer_new(base, refill_cb, l);
	l->soon = timer_new(base, soon_cb, l);
	pace_init(&l->pace, bytes_per_s, clock_mono_ms());
	return l;
}

void
link_set_user(struct link *l, const struct link_user *user, void *arg)
{
	l->user = user;
	l->arg = arg;
}

static struct event *
new_event(struct link *l, short what, event_callback_fn cb)
{
	struct event *ev = event_new(l->base, l->fd, what, cb, l);

	if (ev == NULL)
		fatal(EXIT_MEMORY, "no memory for an event");
	return ev;
}

void
link_begin(struct link *l, int fd)
{
	struct err e;

	if (l->fd != -1) {
		(void)err_set(&e, ERR_LOST, "the agent connected anew");
		stream_lose(l, &e);
		if (l->dead) {
			(void)close(fd);
			return;
		}
	}
	l->fd = fd;
	l->on_read = new_event(l, EV_READ | EV_PERSIST, read_cb);
	l->on_write = new_event(l, EV_WRITE, write_cb);
	if (is_read(l))
		(void)event_add(l->on_read, NULL);
	l->user->on_open(l->arg);
}

/* on_close comes from the loop, as after a failed send. */
void
link_hang_up(struct link *l)
{
	buf_clear(&l->out);
	if (l->fd == -1)
		return;
	l->failed = ENOBUFS;
	event_active(l->on_write, EV_WRITE, 0);
}

static void
free_cb(void *arg)
{
	struct link *l = arg;

	timer_free(l->refill);
	timer_free(l->soon);
	free(l);
}

void
link_free(struct link *l)
{
	if (l == NULL)
		return;
	stream_end(l);
	l->dead = true;
	timer_stop(l->refill);
	timer_stop(l->soon);
	later(l->base, free_cb, l);
}

/*
 * Two ways that work alike: bytes are read at one side, made over, and written
 * at the other.  What that one does not take is left over, and then its being
 * writable is waited for instead of the other's being readable.
 *
 *	runs	both ways
 *	ended	user->ended was called, nothing is watched
 *	leaves	up drops what it reads, down only writes what is left over
 *
 * Memory is two buffers of all pumps, empty between two turns, and of each what
 * the other side did not take of it.
 */
#include "worker/pump.h"

#include <errno.h>
#include <sys/socket.h>

#include <event2/event.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/http/api.h"
#include "worker/later.h"

#define TURN_BYTES (4 * PUMP_PIECE_BYTES) /* before others have their turn */
#define LEFT_OVER_MAX (4 * PUMP_PIECE_BYTES)
#define SOCKET_BYTES (256 * 1024)

enum pump_way {
	WAY_UP,
	WAY_DOWN
};

enum pump_state {
	PUMP_RUNS,
	PUMP_ENDED,
	PUMP_LEAVES
};

struct pump {
	struct event_base *base;
	struct api_call *call;
	const struct pump_user *user;
	void *arg;
	int fd; /* our socket of the pair; -1: closed */
	enum pump_state state;
	bool is_stopped;        /* by the user, when rest[WAY_UP] is out */
	struct event *read[2];  /* of where bytes of that way come from */
	struct event *write[2]; /* of where they go */
	struct buf rest[2];     /* left over */
	struct timer *patience; /* of PUMP_LEAVES; NULL: none */
};

static uint8_t piece[PUMP_PIECE_BYTES];
static struct buf made = {.max = PUMP_PIECE_BYTES + PUMP_HEAD_MAX};

/* ---- the two ways */

static ssize_t
read_piece(struct pump *p, enum pump_way w)
{
	return w == WAY_UP ? api_recv(p->call, piece, sizeof(piece)) :
			     recv(p->fd, piece, sizeof(piece), 0);
}

static ssize_t
write_once(struct pump *p, enum pump_way w, const uint8_t *from, size_t n)
{
	return w == WAY_UP ? send(p->fd, from, n, MSG_NOSIGNAL) :
			     api_send(p->call, from, n);
}

/* How many were taken; -1: that side is gone. */
static ssize_t
write_some(struct pump *p, enum pump_way w, const uint8_t *from, size_t n)
{
	size_t done = 0;
	ssize_t got;

	while (done < n) {
		got = write_once(p, w, from + done, n - done);
		if (got == -1 && errno == EINTR)
			continue;
		if (got == -1 && errno == EAGAIN)
			break;
		if (got == -1)
			return -1;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

/* 1: nothing is left over; 0: something is; -1: that side is gone. */
static int
write_rest(struct pump *p, enum pump_way w)
{
	struct buf *rest = &p->rest[w];
	ssize_t n;

	if (buf_len(rest) == 0)
		return 1;
	n = write_some(p, w, buf_data(rest), buf_len(rest));
	if (n < 0)
		return -1;
	buf_consume(rest, (size_t)n);
	if (buf_len(rest) > 0)
		return 0;
	buf_shrink(rest);
	return 1;
}

/* The first n bytes of piece, made over. */
static struct span
make_over(struct pump *p, enum pump_way w, size_t n)
{
	const struct pump_user *u = p->user;

	if (p->state == PUMP_LEAVES)
		return (struct span){piece, 0};
	if (w == WAY_DOWN && u->down == NULL)
		return (struct span){piece, n};
	buf_consume(&made, buf_len(&made));
	if (w == WAY_DOWN)
		u->down(piece, n, &made, p->arg);
	else if (u->up(piece, n, &made, &p->rest[WAY_DOWN], p->arg) != 0)
		p->is_stopped = true;
	return (struct span){buf_data(&made), buf_len(&made)};
}

/* From read to written, for one turn: how it ended. */
enum passed {
	PASSED_ALL,  /* nothing more is there */
	PASSED_FULL, /* the other side takes no more */
	PASSED_MORE, /* a turn's worth, and there may be more */
	PASSED_OVER  /* *end says how */
};

static enum passed
pass_over(enum pump_end how, enum pump_end *end)
{
	*end = how;
	return PASSED_OVER;
}

static enum pump_end
other_side_gone(enum pump_way w)
{
	return w == WAY_UP ? PUMP_ASKER_LEFT : PUMP_PEER_BROKE;
}

static void
keep(struct buf *rest, const uint8_t *p, size_t n)
{
	if (n > 0 && buf_append(rest, p, n) != 0)
		fatal(EXIT_BUG, "pump: %zu bytes are left over", n);
}

static enum passed
pass_rest(struct pump *p, enum pump_way w, enum pump_end *end)
{
	int rc = write_rest(p, w);

	if (rc < 0)
		return pass_over(other_side_gone(w), end);
	if (rc == 0)
		return PASSED_FULL;
	if (w == WAY_UP && p->is_stopped)
		return pass_over(PUMP_STOPPED, end);
	return PASSED_MORE;
}

static enum passed
pass_piece(struct pump *p, enum pump_way w, size_t *total, enum pump_end *end)
{
	struct span out;
	ssize_t n = read_piece(p, w);

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return PASSED_ALL;
	if (n <= 0 && w == WAY_DOWN)
		return pass_over(PUMP_ASKER_LEFT, end);
	if (n <= 0)
		return pass_over(
		    n == 0 ? PUMP_PEER_ENDED : PUMP_PEER_BROKE, end);
	*total += (size_t)n;
	out = make_over(p, w, (size_t)n);
	if (out.n == 0)
		return PASSED_MORE;
	n = write_some(p, w, out.p, out.n);
	if (n < 0)
		return pass_over(other_side_gone(w), end);
	keep(&p->rest[w], out.p + n, out.n - (size_t)n);
	return PASSED_MORE;
}

static enum passed
pass(struct pump *p, enum pump_way w, enum pump_end *end)
{
	enum passed how = PASSED_MORE;
	size_t total = 0;

	while (how == PASSED_MORE && total < TURN_BYTES) {
		how = pass_rest(p, w, end);
		if (how == PASSED_MORE)
			how = pass_piece(p, w, &total, end);
	}
	return how;
}

/* ---- both */

static void
unwatch(struct pump *p)
{
	for (size_t w = 0; w < ARRAY_LEN(p->read); w++) {
		later_event_free(p->base, p->read[w]);
		later_event_free(p->base, p->write[w]);
		p->read[w] = p->write[w] = NULL;
	}
}

static void
close_socket(struct pump *p)
{
	if (p->fd != -1)
		(void)close(p->fd);
	p->fd = -1;
}

static void
finish(struct pump *p, enum pump_end how)
{
	bool leaves = p->state == PUMP_LEAVES;

	p->state = PUMP_ENDED;
	unwatch(p);
	if (leaves)
		p->user->left(p->arg);
	else
		p->user->ended(how, p->arg);
}

static void
go_on(struct pump *p, enum pump_way w, enum passed how)
{
	if (how == PASSED_FULL) {
		(void)event_del(p->read[w]);
		(void)event_add(p->write[w], NULL);
		return;
	}
	(void)event_add(p->read[w], NULL);
	/* Bytes that TLS has read already make no descriptor readable. */
	if (how == PASSED_MORE)
		event_active(p->read[w], EV_READ, 0);
}

static void
up_cb(evutil_socket_t fd, short what, void *arg)
{
	enum pump_end end = PUMP_PEER_BROKE;
	struct pump *p = arg;
	enum passed how = pass(p, WAY_UP, &end);

	(void)fd;
	(void)what;
	if (how == PASSED_OVER) {
		finish(p, end);
		return;
	}
	go_on(p, WAY_UP, how);
	if (buf_len(&p->rest[WAY_DOWN]) > 0) /* what up had to answer */
		(void)event_add(p->write[WAY_DOWN], NULL);
}

static void
down_cb(evutil_socket_t fd, short what, void *arg)
{
	enum pump_end end = PUMP_PEER_BROKE;
	struct pump *p = arg;
	enum passed how = pass(p, WAY_DOWN, &end);

	(void)fd;
	(void)what;
	if (how == PASSED_OVER)
		finish(p, end);
	else
		go_on(p, WAY_DOWN, how);
}

/* ---- public */

static struct event *
watch(struct pump *p, int fd, short what, event_callback_fn cb)
{
	struct event *ev = event_new(p->base, fd, what, cb, p);

	if (ev == NULL)
		fatal(EXIT_MEMORY, "no memory for an event");
	return ev;
}

int
pump_open(struct event_base *base, struct api_call *call,
    const struct pump_user *user, void *arg, struct pump **out, int *theirs,
    struct err *e)
{
	int fds[2], size = SOCKET_BYTES;
	struct pump *p;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
		fds) == -1)
		return err_set(
		    e, ERR_BACKEND, "socketpair: %s", strerror(errno));
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		(void)setsockopt(
		    fds[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	p = xcalloc(1, sizeof(*p));
	p->base = base;
	p->call = call;
	p->user = user;
	p->arg = arg;
	p->fd = fds[0];
	buf_init(&p->rest[WAY_UP], LEFT_OVER_MAX);
	buf_init(&p->rest[WAY_DOWN], LEFT_OVER_MAX);
	p->read[WAY_UP] = watch(p, api_fd(call), EV_READ | EV_PERSIST, up_cb);
	p->write[WAY_UP] = watch(p, p->fd, EV_WRITE, up_cb);
	p->read[WAY_DOWN] = watch(p, p->fd, EV_READ | EV_PERSIST, down_cb);
	p->write[WAY_DOWN] = watch(p, api_fd(call), EV_WRITE, down_cb);
	(void)event_add(p->read[WAY_DOWN], NULL);
	(void)event_add(p->read[WAY_UP], NULL);
	event_active(p->read[WAY_UP], EV_READ, 0); /* some may have come */
	*theirs = fds[1];
	*out = p;
	return 0;
}

static void
leaving_cb(evutil_socket_t fd, short what, void *arg)
{
	struct pump *p = arg;
	int rc = write_rest(p, WAY_DOWN);

	(void)fd;
	(void)what;
	if (rc < 0)
		finish(p, PUMP_PEER_BROKE);
	else if (rc == 0)
		(void)event_add(p->write[WAY_DOWN], NULL);
}

static void
patience_cb(void *arg)
{
	finish(arg, PUMP_PEER_BROKE);
}

void
pump_leave(struct pump *p, const struct buf *last, uint32_t ms)
{
	unwatch(p);
	close_socket(p);
	buf_clear(&p->rest[WAY_UP]);
	p->state = PUMP_LEAVES;
	p->is_stopped = false;
	buf_set_max(&p->rest[WAY_DOWN], 0); /* it may be full */
	keep(&p->rest[WAY_DOWN], buf_data(last), buf_len(last));
	p->read[WAY_UP] =
	    watch(p, api_fd(p->call), EV_READ | EV_PERSIST, up_cb);
	p->write[WAY_DOWN] = watch(p, api_fd(p->call), EV_WRITE, leaving_cb);
	p->patience = timer_new(p->base, patience_cb, p);
	timer_set_ms(p->patience, ms);
	(void)event_add(p->write[WAY_DOWN], NULL);
	(void)event_add(p->read[WAY_UP], NULL);
	event_active(p->read[WAY_UP], EV_READ, 0);
}

void
pump_free(struct pump *p)
{
	if (p == NULL)
		return;
	unwatch(p);
	close_socket(p);
	timer_free(p->patience);
	api_cancel(p->call);
	buf_clear(&p->rest[WAY_UP]);
	buf_clear(&p->rest[WAY_DOWN]);
	free(p);
}

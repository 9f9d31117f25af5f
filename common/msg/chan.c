/*
 * chan.c - a channel's life
 *
 * Sending: msg_send_... encodes into `next`, the packet being said.  It goes
 * to the socket at once, or at ipc_chan_uncork, or when the next message does
 * not fit or has descriptors; what the kernel does not take now waits in
 * `queue`, in order, until the socket is writable (or, when the kernel is
 * short of memory, for a moment).  What nobody waits for (ipc_chan_late) is
 * gathered in `late`, for a timer.  A long queue makes the channel full, which
 * its owner asks for and is told the end of (on_drain); at IPC_QUEUE_HARD the
 * peer is taken for dead.
 *
 * Receiving: one packet at a time into rx, its messages one by one to
 * on_message; after IPC_TURN_MAX of them other events have their turn.
 *
 * The end: of file, a failure to receive, what a peer got wrong, or a failure
 * to send.  The last is not told from where it happened, inside a send: what
 * the peer said before it went away is still read, and then on_close is called
 * (tx_dead).  The descriptor is closed before on_close, which is called once.
 *
 * Any callback may free the channel: see ipc_chan_enter.
 */
#include "common/msg/chan.h"

#include <errno.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "common/exit.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/msg/codec.h"
#include "common/timer.h"
#include "common/xmalloc.h"

#define IPC_TURN_MAX 64 /* messages, then other events have their turn */
#define IPC_SNDBUF_BYTES (1 << 20)
#define IPC_RETRY_MS 10 /* the kernel is short of something */

struct ipc_node {
	STAILQ_ENTRY(ipc_node) link;
	struct ipc_out out;
};

struct ipc_chan {
	int fd; /* -1: closed, by whichever side */
	char *name;
	const struct ipc_ops *ops;
	void *arg;
	struct event ev_read;
	struct event ev_write;
	struct timer *retry;
	struct timer *late_timer;
	uint8_t *rx; /* IPC_MSG_MAX bytes */
	STAILQ_HEAD(ipc_queue, ipc_node) queue;
	struct ipc_out next; /* what is being said: one packet */
	struct ipc_out late; /* what goes when late_timer is due */
	bool corked;
	bool is_late;  /* what is said now */
	size_t queued; /* bytes in the queue with its own memory */
	bool full;     /* said so, on_drain not yet called */
	bool tx_dead;  /* why_tx says what happened */
	bool freed;    /* by ipc_chan_free, inside a callback */
	unsigned int depth;
	struct err why_tx;
};

static void
ipc_chan_destroy(struct ipc_chan *c)
{
	ipc_out_clear(&c->next);
	ipc_out_clear(&c->late);
	timer_free(c->retry);
	timer_free(c->late_timer);
	free(c->rx);
	free(c->name);
	free(c);
}

/*
 * Every way from the loop into this file stands between enter and leave:
 * what a callback frees stays readable until the last one has returned.
 */
static void
ipc_chan_enter(struct ipc_chan *c)
{
	c->depth++;
}

static void
ipc_chan_leave(struct ipc_chan *c)
{
	c->depth--;
	if (c->depth == 0 && c->freed)
		ipc_chan_destroy(c);
}

static void
ipc_chan_drop_queue(struct ipc_chan *c)
{
	struct ipc_node *node;

	while ((node = STAILQ_FIRST(&c->queue)) != NULL) {
		STAILQ_REMOVE_HEAD(&c->queue, link);
		ipc_out_clear(&node->out);
		free(node);
	}
	c->queued = 0;
}

static void
ipc_chan_shut(struct ipc_chan *c)
{
	if (c->fd < 0)
		return;
	(void)event_del(&c->ev_read);
	(void)event_del(&c->ev_write);
	timer_stop(c->retry);
	timer_stop(c->late_timer);
	(void)close(c->fd);
	c->fd = -1;
	ipc_chan_drop_queue(c);
}

static void
ipc_chan_end(struct ipc_chan *c, const struct err *why)
{
	if (c->fd < 0)
		return;
	ipc_chan_shut(c);
	c->ops->on_close(c, why, c->arg);
}

/*
 * Sending is over; on_close is not called from here, because the caller may
 * be sending, and because what the peer sent before it went away is
 * still to be delivered: reading will find the end.
 */
static void
ipc_chan_stop_sending(struct ipc_chan *c, const char *what, int error)
{
	c->tx_dead = true;
	if (error != 0)
		(void)err_set(&c->why_tx, ERR_SYS, "%s: %s: %s", c->name, what,
		    strerror(error));
	else
		(void)err_set(&c->why_tx, ERR_LIMIT, "%s: %s", c->name, what);
	(void)event_del(&c->ev_write);
	ipc_chan_drop_queue(c);
	timer_set_ms(c->retry, 0);
}

static ssize_t
ipc_chan_sendmsg(int fd, const struct ipc_out *o)
{
	union {
		char space[CMSG_SPACE(sizeof(int) * IPC_FDS_MAX)];
		struct cmsghdr align;
	} control;
	struct iovec iov = {buf_data(&o->b), buf_len(&o->b)};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (o->nfds > 0) {
		struct cmsghdr *cm = &control.align; /* the first */

		memset(&control, 0, sizeof(control));
		mh.msg_control = control.space;
		mh.msg_controllen = CMSG_SPACE(sizeof(int) * o->nfds);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(int) * o->nfds);
		memcpy(CMSG_DATA(cm), o->fds, sizeof(int) * o->nfds);
	}
	do
		n = sendmsg(fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n;
}

enum ipc_sent {
	IPC_SENT,
	IPC_SENT_LATER,
	IPC_SENT_NEVER
};

/* Send one packet, or arrange for the next attempt. */
static enum ipc_sent
ipc_chan_try(struct ipc_chan *c, const struct ipc_out *o)
{
	int error;

	if (ipc_chan_sendmsg(c->fd, o) >= 0)
		return IPC_SENT;
	error = errno;
	switch (error) {
	case EAGAIN:
		(void)event_add(&c->ev_write, NULL);
		return IPC_SENT_LATER;
	case ENOBUFS:
	case ENOMEM:
	case ETOOMANYREFS: /* descriptors that the peer has not taken */
		/* The socket stays writable: only time helps. */
		(void)event_del(&c->ev_write);
		timer_set_ms(c->retry, IPC_RETRY_MS);
		return IPC_SENT_LATER;
	default:
		ipc_chan_stop_sending(c, "send", error);
		return IPC_SENT_NEVER;
	}
}

static size_t
ipc_node_bytes(const struct ipc_node *node)
{
	return sizeof(*node) + node->out.b.cap;
}

static void
ipc_chan_flush(struct ipc_chan *c)
{
	struct ipc_node *node;

	while ((node = STAILQ_FIRST(&c->queue)) != NULL) {
		if (ipc_chan_try(c, &node->out) != IPC_SENT)
			return;
		STAILQ_REMOVE_HEAD(&c->queue, link);
		c->queued -= ipc_node_bytes(node);
		ipc_out_clear(&node->out);
		free(node);
	}
	(void)event_del(&c->ev_write);
}

static void
ipc_chan_tell_drained(struct ipc_chan *c)
{
	if (!c->full || c->tx_dead || c->queued >= IPC_QUEUE_BYTES / 2)
		return;
	c->full = false;
	if (c->ops->on_drain != NULL)
		c->ops->on_drain(c, c->arg);
}

static void
ipc_chan_write_cb(int fd, short what, void *arg)
{
	struct ipc_chan *c = arg;

	(void)fd;
	(void)what;
	ipc_chan_enter(c);
	ipc_chan_flush(c);
	ipc_chan_tell_drained(c);
	ipc_chan_leave(c);
}

/* The descriptors of a packet; those over the limit are closed at once. */
static unsigned int
ipc_chan_take_fds(struct msghdr *mh, struct ipc_msg *m)
{
	unsigned int got = 0;

	for (struct cmsghdr *cm = CMSG_FIRSTHDR(mh); cm != NULL;
	     cm = CMSG_NXTHDR(mh, cm)) {
		size_t n;

		if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS)
			continue;
		n = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(cm) + i * sizeof(fd), sizeof(fd));
			got++;
			if (m->nfds < IPC_FDS_MAX)
				m->fds[m->nfds++] = fd;
			else
				(void)close(fd);
		}
	}
	return got;
}

enum ipc_read {
	IPC_READ_PACKET,
	IPC_READ_NONE,
	IPC_READ_END
};

struct ipc_packet {
	size_t n;              /* bytes in rx */
	unsigned int nfds;     /* that came with it, all in the first message */
	unsigned int messages; /* delivered */
	struct ipc_msg first;
};

/* One packet into rx.  At the end *why says which: code 0 is end of file. */
static enum ipc_read
ipc_chan_recv(struct ipc_chan *c, struct ipc_packet *p, struct err *why)
{
	union {
		char space[CMSG_SPACE(sizeof(int) * IPC_FDS_MAX)];
		struct cmsghdr align;
	} control;
	struct iovec iov = {c->rx, IPC_MSG_MAX};
	struct msghdr mh = {.msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = control.space,
	    .msg_controllen = sizeof(control.space)};
	ssize_t n;

	/* ECONNRESET: the peer left without having read all of ours.  Linux
	 * says so once, and then still gives what it had sent to us. */
	do
		n = recvmsg(c->fd, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0 && errno == EAGAIN)
		return IPC_READ_NONE;
	if (n < 0) {
		(void)err_errno(why, "%s: receive", c->name);
		return IPC_READ_END;
	}
	memset(p, 0, sizeof(*p));
	p->nfds = ipc_chan_take_fds(&mh, &p->first);
	p->n = (size_t)n;
	if (n == 0) { /* an empty packet looks the same, and is as bad */
		ipc_msg_close_fds(&p->first);
		(void)err_set(why, 0, "%s: closed by the peer", c->name);
		return IPC_READ_END;
	}
	if ((mh.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 ||
	    p->nfds > p->first.nfds) {
		ipc_msg_close_fds(&p->first);
		(void)err_set(why, ERR_PROTO, "%s: packet with too many %s",
		    c->name,
		    (mh.msg_flags & MSG_TRUNC) != 0 ? "bytes" : "descriptors");
		return IPC_READ_END;
	}
	return IPC_READ_PACKET;
}

static int
ipc_chan_handle(struct ipc_chan *c, struct ipc_msg *m, struct err *why)
{
	int rc = c->ops->on_message(c, m, c->arg, why);

	if (rc != 0 && why->code == 0)
		(void)err_set(why, ERR_PROTO, "message refused");
	return rc;
}

/* The messages of a packet; not 0: *why says what was wrong with one. */
static int
ipc_chan_deliver(struct ipc_chan *c, struct ipc_packet *p, struct err *why)
{
	struct ipc_msg m = p->first;
	size_t size = 0, at = 0;
	int rc = 0;

	while (rc == 0 && at < p->n && c->fd >= 0) {
		rc = ipc_msg_parse(&m, c->rx + at, p->n - at,
		    at == 0 ? p->nfds : 0, &size, why);
		if (rc == 0 && p->nfds > 0 && size < p->n)
			rc = err_set(why, ERR_PROTO,
			    "message %u with descriptors is not alone in its "
			    "packet",
			    m.type);
		if (rc == 0)
			rc = ipc_chan_handle(c, &m, why);
		if (rc != 0)
			(void)err_wrap(why, "%s", c->name);
		ipc_msg_close_fds(&m);
		at += size;
		p->messages++;
	}
	return rc;
}

static void
ipc_chan_read(struct ipc_chan *c)
{
	struct err why = {0};
	struct ipc_packet p;

	for (unsigned int n = 0; n < IPC_TURN_MAX && c->fd >= 0;
	     n += p.messages) {
		switch (ipc_chan_recv(c, &p, &why)) {
		case IPC_READ_NONE:
			if (c->tx_dead) /* nothing left and no way back */
				ipc_chan_end(c, &c->why_tx);
			return;
		case IPC_READ_END:
			ipc_chan_end(c, &why);
			return;
		case IPC_READ_PACKET:
			break;
		}
		if (ipc_chan_deliver(c, &p, &why) != 0) {
			ipc_chan_end(c, &why);
			return;
		}
	}
	/* More may be there: ev_read is level-triggered, but after a failed
	 * send the last look must not depend on it. */
	if (c->fd >= 0 && c->tx_dead)
		timer_set_ms(c->retry, 0);
}

static void
ipc_chan_read_cb(int fd, short what, void *arg)
{
	struct ipc_chan *c = arg;

	(void)fd;
	(void)what;
	ipc_chan_enter(c);
	ipc_chan_read(c);
	ipc_chan_leave(c);
}

static void
ipc_chan_retry_cb(void *arg)
{
	struct ipc_chan *c = arg;

	ipc_chan_enter(c);
	if (c->tx_dead) {
		ipc_chan_read(c);
	} else {
		ipc_chan_flush(c);
		ipc_chan_tell_drained(c);
	}
	ipc_chan_leave(c);
}

static void
ipc_chan_queue(struct ipc_chan *c, struct ipc_out *o)
{
	struct ipc_node *node = xmalloc(sizeof(*node));

	node->out = *o; /* the node's from here on */
	ipc_out_init(o);
	STAILQ_INSERT_TAIL(&c->queue, node, link);
	c->queued += ipc_node_bytes(node);
	if (c->queued > IPC_QUEUE_BYTES)
		c->full = true;
	if (c->queued > IPC_QUEUE_HARD)
		ipc_chan_stop_sending(
		    c, "the peer does not read: queue overflow", 0);
}

/* The packet goes, or into the queue. */
static void
ipc_chan_pass(struct ipc_chan *c, struct ipc_out *o)
{
	if (buf_len(&o->b) == 0)
		return;
	if (c->fd >= 0 && !c->tx_dead) {
		/* What waits goes first. */
		if (!STAILQ_EMPTY(&c->queue) ||
		    ipc_chan_try(c, o) == IPC_SENT_LATER)
			ipc_chan_queue(c, o);
	}
	ipc_out_reset(o);
}

static void
ipc_chan_late_cb(void *arg)
{
	struct ipc_chan *c = arg;

	ipc_chan_enter(c);
	ipc_chan_pass(c, &c->late);
	ipc_chan_leave(c);
}

/* A larger send buffer saves wake-ups; it is fine without.  FORCE needs
 * CAP_NET_ADMIN and goes over the system's limit. */
static void
ipc_chan_raise_sndbuf(int fd)
{
	int want = IPC_SNDBUF_BYTES;

	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &want, sizeof(want)) ==
	    0)
		return;
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &want, sizeof(want));
}

struct ipc_chan *
ipc_chan_new(struct event_base *base, int fd, const char *name,
    const struct ipc_ops *ops, void *arg)
{
	struct ipc_chan *c = xcalloc(1, sizeof(*c));
	struct err e;

	if (fd_set_nonblock(fd, &e) != 0)
		fatal(EXIT_BUG, "ipc channel %s: %s", name, e.msg);
	ipc_chan_raise_sndbuf(fd);
	c->fd = fd;
	c->name = xstrdup(name);
	c->ops = ops;
	c->arg = arg;
	c->rx = xmalloc(IPC_MSG_MAX);
	c->retry = timer_new(base, ipc_chan_retry_cb, c);
	c->late_timer = timer_new(base, ipc_chan_late_cb, c);
	STAILQ_INIT(&c->queue);
	ipc_out_init(&c->next);
	ipc_out_init(&c->late);
	if (event_assign(&c->ev_read, base, fd, EV_READ | EV_PERSIST,
		ipc_chan_read_cb, c) != 0 ||
	    event_assign(&c->ev_write, base, fd, EV_WRITE | EV_PERSIST,
		ipc_chan_write_cb, c) != 0 ||
	    event_add(&c->ev_read, NULL) != 0)
		fatal(EXIT_BUG, "ipc channel %s: no events", name);
	return c;
}

void
ipc_chan_free(struct ipc_chan *c)
{
	if (c == NULL || c->freed)
		return;
	ipc_chan_shut(c);
	if (c->depth > 0)
		c->freed = true; /* ipc_chan_leave does the rest */
	else
		ipc_chan_destroy(c);
}

bool
ipc_chan_is_full(const struct ipc_chan *c)
{
	return c->full;
}

/* Into the packet that is being built; what does not fit there goes before. */
static void
ipc_chan_put(struct ipc_chan *c, struct ipc_out *o, const struct codec *codec,
    const void *m)
{
	if (!ipc_out_may_share(o, codec, m))
		ipc_chan_pass(c, o);
	ipc_out_put(o, codec, m);
}

void
ipc_chan_send(struct ipc_chan *c, const struct codec *codec, const void *m)
{
	if (c == NULL || c->fd < 0 || c->tx_dead) {
		packet_drop(codec, m);
		return;
	}
	if (c->is_late) {
		ipc_chan_put(c, &c->late, codec, m);
		if (!timer_is_set(c->late_timer))
			timer_set_ms(c->late_timer, IPC_LATE_MS);
		return;
	}
	ipc_chan_put(c, &c->next, codec, m);
	if (!c->corked || c->next.nfds > 0)
		ipc_chan_pass(c, &c->next);
}

void
ipc_chan_cork(struct ipc_chan *c)
{
	c->corked = true;
}

void
ipc_chan_uncork(struct ipc_chan *c)
{
	c->corked = false;
	ipc_chan_pass(c, &c->next);
}

void
ipc_chan_late(struct ipc_chan *c, bool is_late)
{
	c->is_late = is_late;
}

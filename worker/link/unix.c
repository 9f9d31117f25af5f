/*
 * A link is a listening socket and at most one stream.  The door (on_accept)
 * opens when the box's process is known and shuts for a moment when someone
 * connects in a loop.
 *
 * Reading: whatever is there, up to UNIX_TURN_BYTES, is cut into frames in one
 * buffer that all links share; only a frame that is not whole yet is kept by
 * its link, and of a DATA frame no more than its head: its user is given what
 * has come of it as a frame of its own.  A link's user may drop or free the
 * link in any callback: the stream's generation tells read_turn that it did,
 * and memory goes in a later turn of the loop.
 *
 * So that a sandbox that prints without end does not take the loop, the disk
 * and the front from the others, each has a budget of bytes: as much as it
 * prints in a second may come at once, and then so much each second.
 *
 * Writing: at the end of a turn, or at once outside of one.  A failed send is
 * told from the loop, because who sends is not ready to be told.
 */
#include "worker/link/unix.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>

#include <event2/event.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/msg/frame_gen.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/later.h"
#include "worker/link/linkdir.h"
#include "worker/link/pace.h"

#define BACKLOG 128
#define ACCEPTS_PER_TURN 8
#define READ_BYTES 262144
/* Connections per second; beyond it the door is shut for a moment: code in
 * the sandbox can connect in a loop. */
#define ACCEPTS_MAX 50
#define SHUT_MS 200
/* So much of a DATA frame is passed on before the rest is there. */
#define CUT_MIN_BYTES 1024
/* Give an output buffer's memory back above this. */
#define OUT_KEEP_BYTES 16384

struct unix_carrier {
	struct carrier c;
	struct event_base *base;
	struct linkdirs *dirs;
	uint64_t bytes_per_s; /* of each link; 0: any */
};

struct unix_link {
	struct link l;
	struct event_base *base;
	struct linkdirs *dirs;
	struct uuid box;
	int listen_fd;
	struct event *on_accept;
	struct timer *reopen; /* the door, after it was shut */
	int64_t pid;          /* 0: not known yet */
	uint64_t window_ms;
	unsigned int accepts;

	int fd;     /* the agent's stream, -1: none */
	int failed; /* errno of a send */
	struct event *on_read;
	struct event *on_write;
	struct timer *soon;  /* set: what is in out waits for company */
	struct buf in;       /* a frame that is not whole yet */
	uint32_t generation; /* of the stream: changed by drop */
	struct pace pace;
	struct timer *refill; /* set while nothing may be read for it */
	bool in_turn;
	bool sends; /* in this turn: link_send was called */
	bool paused;
	bool dead;
};

/* The read buffer of all links: empty between two calls of read_turn. */
static uint8_t *spare;
#define SPARE_BYTES (FRAME_UP_MAX + READ_BYTES)

static struct log_limit strangers;

static struct unix_link *
unix_of(struct link *l)
{
	return (struct unix_link *)l;
}

static struct event *
new_event(struct unix_link *u, int fd, short what, event_callback_fn cb)
{
	struct event *ev = event_new(u->base, fd, what, cb, u);

	if (ev == NULL)
		fatal(EXIT_MEMORY, "no memory for an event");
	return ev;
}

/* ---- the end of a stream */

static void
event_free_later(void *arg)
{
	event_free(arg);
}

static void
stream_end(struct unix_link *u)
{
	struct event *evs[] = {u->on_read, u->on_write};

	if (u->fd == -1)
		return;
	for (size_t i = 0; i < ARRAY_LEN(evs); i++) {
		(void)event_del(evs[i]);
		/* it may be in its callback */
		later(u->base, event_free_later, evs[i]);
	}
	(void)close(u->fd);
	u->fd = -1;
	u->failed = 0;
	u->generation++;
	buf_clear(&u->in);
	buf_clear(&u->l.out);
}

static void
stream_lose(struct unix_link *u, const struct err *why)
{
	struct err copy = *why;

	stream_end(u);
	u->l.user->on_close(&u->l, &copy, u->l.arg);
}

static void
stream_lose_errno(struct unix_link *u, const char *what, int number)
{
	struct err e;

	(void)err_set(&e, ERR_LOST, "%s: %s", what, strerror(number));
	stream_lose(u, &e);
}

/* ---- writing */

static void
stream_write(struct unix_link *u)
{
	struct buf *out = &u->l.out;
	ssize_t n;

	while (buf_len(out) > 0) {
		n = send(u->fd, buf_data(out), buf_len(out), MSG_NOSIGNAL);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && errno == EAGAIN) {
			(void)event_add(u->on_write, NULL);
			return;
		}
		if (n == -1) {
			/* Told from the loop: who sends is not ready for it. */
			u->failed = errno;
			event_active(u->on_write, EV_WRITE, 0);
			return;
		}
		buf_consume(out, (size_t)n);
	}
	if (timer_is_set(u->soon))
		timer_stop(u->soon);
	if (out->cap > OUT_KEEP_BYTES)
		buf_shrink(out);
}

static void
write_cb(evutil_socket_t fd, short what, void *arg)
{
	struct unix_link *u = arg;

	(void)fd;
	(void)what;
	if (u->failed == 0)
		stream_write(u);
	if (u->failed != 0)
		stream_lose_errno(u, "send", u->failed);
	else if (buf_len(&u->l.out) == 0)
		u->l.user->on_drain(&u->l, u->l.arg);
}

static void
unix_send(struct link *l)
{
	struct unix_link *u = unix_of(l);

	if (u->fd == -1 || u->failed != 0)
		buf_clear(&l->out);
	else if (u->in_turn)
		u->sends = true;
	else if (!event_pending(u->on_write, EV_WRITE, NULL))
		stream_write(u);
}

static void
soon_cb(void *arg)
{
	struct unix_link *u = arg;

	unix_send(&u->l);
}

static void
unix_send_soon(struct link *l)
{
	struct unix_link *u = unix_of(l);

	if (u->fd == -1 || u->failed != 0)
		buf_clear(&l->out);
	else if (!timer_is_set(u->soon))
		timer_set_ms(u->soon, LINK_SOON_MS);
}

/* ---- reading */

/* Frames at p; what is left over stays at p's beginning and is returned.  -1:
 * the stream is gone. */
static ssize_t
take_frames(struct unix_link *u, uint8_t *p, size_t n)
{
	struct buf view = {.mem = p, .end = n, .cap = n, .max = n};
	uint32_t generation = u->generation;
	struct frame f;
	struct err e;
	int rc;

	while ((rc = frame_next(&view, FRAME_UP_MAX, &f, &e)) == 1) {
		size_t size = f.size;

		rc = u->l.user->on_frame(&u->l, &f, u->l.arg, &e);
		if (u->generation != generation)
			return -1;
		if (rc < 0)
			break;
		buf_consume(&view, size);
	}
	if (rc < 0) {
		e.code = ERR_PROTO;
		stream_lose(u, &e);
		return -1;
	}
	memmove(p, p + view.start, buf_len(&view));
	return (ssize_t)buf_len(&view);
}

static bool
is_read(const struct unix_link *u)
{
	return u->fd != -1 && !u->paused && !timer_is_set(u->refill);
}

static void
refill_cb(void *arg)
{
	struct unix_link *u = arg;

	if (is_read(u))
		(void)event_add(u->on_read, NULL);
}

/* That much was read: when more may be. */
static void
charge(struct unix_link *u, size_t n)
{
	uint64_t ms = pace_charge(&u->pace, n, clock_mono_ms());

	if (ms == 0)
		return;
	timer_set_ms(u->refill, ms);
	if (u->fd != -1)
		(void)event_del(u->on_read);
}

/* One read and its frames: 1 there may be more, 0 not now, -1 gone.  *have:
 * the bytes of a beginning frame in spare. */
static int
read_some(struct unix_link *u, size_t *have, size_t *total)
{
	ssize_t n = recv(u->fd, spare + *have, READ_BYTES, 0);
	bool full = n == READ_BYTES;
	struct err e;

	if (n == -1 && errno == EINTR)
		return 1;
	if (n == -1 && errno == EAGAIN)
		return 0;
	if (n == -1) {
		stream_lose_errno(u, "receive", errno);
		return -1;
	}
	if (n == 0) {
		(void)err_set(&e, ERR_LOST, "the agent closed the link");
		stream_lose(u, &e);
		return -1;
	}
	*total += (size_t)n;
	n = take_frames(u, spare, *have + (size_t)n);
	if (n < 0)
		return -1;
	*have = (size_t)n;
	return full ? 1 : 0;
}

/* Nothing more is read in this turn, n bytes of a frame are in spare: of DATA
 * they are not kept, which would take memory and a copy.  As take_frames. */
static ssize_t
take_beginning(struct unix_link *u, size_t n)
{
	struct buf view = {
	    .mem = spare, .end = n, .cap = SPARE_BYTES, .max = SPARE_BYTES};
	uint32_t generation = u->generation;
	struct frame_data rest;
	struct frame f;
	struct err e;
	int rc;

	if (n < CUT_MIN_BYTES || !frame_cut(&view, &f, &rest))
		return (ssize_t)n;
	rc = u->l.user->on_frame(&u->l, &f, u->l.arg, &e);
	if (u->generation != generation)
		return -1;
	if (rc < 0) {
		e.code = ERR_PROTO;
		stream_lose(u, &e);
		return -1;
	}
	view.end = 0;
	if (frame_put_data(&view, &rest) != 0)
		fatal(EXIT_BUG, "link: the head of a frame");
	return (ssize_t)buf_len(&view);
}

/* False: the stream is gone. */
static bool
read_turn(struct unix_link *u)
{
	size_t have = buf_len(&u->in), total = 0;
	ssize_t kept;
	int more = 1;

	if (spare == NULL)
		spare = xmalloc(SPARE_BYTES);
	if (have > 0)
		memcpy(spare, buf_data(&u->in), have);
	buf_consume(&u->in, have);
	while (more == 1 && total < UNIX_TURN_BYTES && !u->paused)
		more = read_some(u, &have, &total);
	if (more < 0)
		return false;
	charge(u, total);
	kept = take_beginning(u, have);
	if (kept < 0)
		return false;
	if (kept == 0)
		buf_shrink(&u->in);
	else if (buf_append(&u->in, spare, (size_t)kept) != 0)
		fatal(EXIT_BUG, "link: %zd bytes of a frame", kept);
	return true;
}

static void
read_cb(evutil_socket_t fd, short what, void *arg)
{
	struct unix_link *u = arg;
	uint32_t generation = u->generation;
	bool good;

	(void)fd;
	(void)what;
	u->in_turn = true;
	u->sends = false;
	good = read_turn(u);
	if (good)
		u->l.user->on_turn(&u->l, u->l.arg);
	u->in_turn = false;
	/* What can wait goes on waiting for company. */
	if (good && u->generation == generation && u->sends)
		unix_send(&u->l);
}

static void
unix_set_reading(struct link *l, bool on)
{
	struct unix_link *u = unix_of(l);

	u->paused = !on;
	if (u->fd == -1)
		return;
	if (is_read(u))
		(void)event_add(u->on_read, NULL);
	else
		(void)event_del(u->on_read);
}

/* What waits already waits on, at the old rate. */
static void
unix_pace(struct link *l, uint64_t bytes_per_s)
{
	pace_set(&unix_of(l)->pace, bytes_per_s, clock_mono_ms());
}

/* ---- accepting the agent */

static void
stream_begin(struct unix_link *u, int fd)
{
	struct err e;

	if (u->fd != -1) {
		(void)err_set(&e, ERR_LOST, "the agent connected anew");
		stream_lose(u, &e);
		if (u->dead) {
			(void)close(fd);
			return;
		}
	}
	u->fd = fd;
	u->on_read = new_event(u, fd, EV_READ | EV_PERSIST, read_cb);
	u->on_write = new_event(u, fd, EV_WRITE, write_cb);
	if (is_read(u))
		(void)event_add(u->on_read, NULL);
	u->l.user->on_open(&u->l, u->l.arg);
}

static void
door_open(struct unix_link *u)
{
	if (u->pid != 0 && !u->dead)
		(void)event_add(u->on_accept, NULL);
}

static void
door_shut(struct unix_link *u)
{
	(void)event_del(u->on_accept);
	timer_set_ms(u->reopen, SHUT_MS);
}

static void
reopen_cb(void *arg)
{
	door_open(arg);
}

static bool
is_too_often(struct unix_link *u)
{
	uint64_t now = clock_mono_ms();

	if (now - u->window_ms >= 1000) {
		u->window_ms = now;
		u->accepts = 0;
	}
	return ++u->accepts > ACCEPTS_MAX;
}

static bool
is_agent(struct unix_link *u, int fd)
{
	socklen_t len = sizeof(struct ucred);
	struct ucred who;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == -1)
		return false;
	if (who.pid == u->pid)
		return true;
	log_warn_limited(&strangers,
	    "link: process %ld (user %ld) connected, want the sandbox's "
	    "process %ld: closed",
	    (long)who.pid, (long)who.uid, (long)u->pid);
	return false;
}

static void
accept_cb(evutil_socket_t listen_fd, short what, void *arg)
{
	struct unix_link *u = arg;

	(void)what;
	for (int i = 0; i < ACCEPTS_PER_TURN && !u->dead; i++) {
		int fd = accept4(
		    listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd == -1 &&
		    (errno == EAGAIN || errno == ECONNABORTED ||
			errno == EINTR))
			return;
		if (fd == -1) {
			log_warn_limited(
			    &strangers, "link: accept: %s", strerror(errno));
			door_shut(u); /* no descriptors: later perhaps */
			return;
		}
		if (is_agent(u, fd))
			stream_begin(u, fd);
		else
			(void)close(fd);
		if (!u->dead && is_too_often(u)) {
			door_shut(u);
			return;
		}
	}
}

/* What setxattr(2) takes: the owner and one user may read and write. */
static int
put_acl(const char *path, uid_t user)
{
	enum {
		ACL_USER_OBJ = 1,
		ACL_USER = 2,
		ACL_GROUP_OBJ = 4,
		ACL_MASK = 0x10,
		ACL_OTHER = 0x20
	};
	const struct {
		uint32_t version;
		struct {
			uint16_t tag, perm;
			uint32_t id;
		} entries[5];
	} acl = {2,
	    {{ACL_USER_OBJ, 6, UINT32_MAX}, {ACL_USER, 6, user},
		{ACL_GROUP_OBJ, 0, UINT32_MAX}, {ACL_MASK, 6, UINT32_MAX},
		{ACL_OTHER, 0, UINT32_MAX}}};

	return setxattr(path, "system.posix_acl_access", &acl, sizeof(acl), 0);
}

/*
 * The socket is its owner's alone, so that a sandbox's user cannot crowd its
 * agent out.  An agent that is this host's root needs no leave; one that is
 * remapped has no power over our files, and gets leave as that user.
 */
static int
admit(struct unix_link *u, struct err *e)
{
	AUTO(auto_close) int dir = -1;
	AUTO(auto_free) char *ignored = NULL;
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%lld", (long long)u->pid);
	if (stat(path, &st) == -1 || st.st_uid == 0 || st.st_uid == geteuid())
		return 0; /* gone already, or let in as it is */
	dir = linkdirs_make(u->dirs, &u->box, &ignored, e);
	if (dir < 0)
		return dir;
	(void)snprintf(
	    path, sizeof(path), "/proc/self/fd/%d/%s", dir, UNIX_SOCKET_NAME);
	if (put_acl(path, st.st_uid) == 0)
		return 0;
	log_warn_limited(&strangers,
	    "link: no access list for the agent's user %ld: %s; all users of "
	    "the sandbox may connect",
	    (long)st.st_uid, strerror(errno));
	if (chmod(path, 0666) == -1)
		return err_set(e, ERR_SYS, "link: chmod: %s", strerror(errno));
	return 0;
}

static void
unix_expect(struct link *l, const struct backend_container *c)
{
	struct unix_link *u = unix_of(l);
	struct err e;

	u->pid = c->pid;
	if (u->pid != 0 && admit(u, &e) != 0)
		log_warn_limited(&strangers, "%s", e.msg);
	door_open(u);
}

/* ---- life */

static void
unix_drop(struct link *l)
{
	stream_end(unix_of(l));
}

/* Told from the loop, as a failed send is. */
static void
unix_hang_up(struct link *l)
{
	struct unix_link *u = unix_of(l);

	buf_clear(&l->out);
	if (u->fd == -1)
		return;
	u->failed = ENOBUFS;
	event_active(u->on_write, EV_WRITE, 0);
}

static void
unix_free_cb(void *arg)
{
	struct unix_link *u = arg;

	event_free(u->on_accept);
	timer_free(u->reopen);
	timer_free(u->refill);
	timer_free(u->soon);
	free(u);
}

static void
unix_free(struct link *l)
{
	struct unix_link *u = unix_of(l);

	stream_end(u);
	u->dead = true;
	(void)event_del(u->on_accept);
	timer_stop(u->reopen);
	timer_stop(u->refill);
	timer_stop(u->soon);
	(void)close(u->listen_fd);
	u->listen_fd = -1;
	later(u->base, unix_free_cb, u);
}

static const struct link_ops unix_ops = {.expect = unix_expect,
    .send = unix_send,
    .send_soon = unix_send_soon,
    .drop = unix_drop,
    .hang_up = unix_hang_up,
    .set_reading = unix_set_reading,
    .pace = unix_pace,
    .free = unix_free};

/* A path of a directory may be longer than a socket's may be. */
static int
listen_in(int dir, struct err *e)
{
	AUTO(auto_close) int fd = -1;
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int out;

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return err_set(e, ERR_SYS, "socket: %s", strerror(errno));
	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d/%s",
	    dir, UNIX_SOCKET_NAME);
	if (unlinkat(dir, UNIX_SOCKET_NAME, 0) == -1 && errno != ENOENT)
		return err_set(
		    e, ERR_SYS, "link: unlink socket: %s", strerror(errno));
	if (bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) == -1)
		return err_set(e, ERR_SYS, "link: bind: %s", strerror(errno));
	if (fchmodat(dir, UNIX_SOCKET_NAME, 0600, 0) == -1)
		return err_set(e, ERR_SYS, "link: chmod: %s", strerror(errno));
	if (listen(fd, BACKLOG) == -1)
		return err_set(e, ERR_SYS, "link: listen: %s", strerror(errno));
	out = fd;
	fd = -1;
	return out;
}

static int
link_new(const struct unix_carrier *c, const struct uuid *box, int dir,
    struct link **out, struct err *e)
{
	int fd = listen_in(dir, e);
	struct unix_link *u;

	if (fd < 0)
		return fd;
	u = xcalloc(1, sizeof(*u));
	u->l.ops = &unix_ops;
	buf_init(&u->l.out, LINK_OUT_MAX);
	buf_init(&u->in, FRAME_UP_MAX);
	u->base = c->base;
	u->dirs = c->dirs;
	u->box = *box;
	u->listen_fd = fd;
	u->fd = -1;
	u->on_accept = new_event(u, fd, EV_READ | EV_PERSIST, accept_cb);
	u->reopen = timer_new(c->base, reopen_cb, u);
	u->refill = timer_new(c->base, refill_cb, u);
	u->soon = timer_new(c->base, soon_cb, u);
	pace_init(&u->pace, c->bytes_per_s, clock_mono_ms());
	*out = &u->l;
	return 0;
}

/* ---- the carrier */

static struct linkdirs *
dirs_of(struct carrier *c)
{
	return ((struct unix_carrier *)c)->dirs;
}

static int
carrier_prepare(struct carrier *c, const struct uuid *box,
    struct backend_wishes *out, struct err *e)
{
	static const char *const command[] = {
	    FRAME_DIR_IN_SANDBOX "/agent", NULL};
	AUTO(auto_close) int dir = -1;
	AUTO(auto_free) char *path = NULL;
	struct backend_mount *m = &out->mounts[0];

	dir = linkdirs_make(dirs_of(c), box, &path, e);
	if (dir < 0)
		return dir;
	*out = (struct backend_wishes){.nmounts = 1, .command = command};
	m->target = FRAME_DIR_IN_SANDBOX;
	(void)snprintf(m->source, sizeof(m->source), "%s", path);
	return 0;
}

static int
carrier_listen(
    struct carrier *c, const struct uuid *box, struct link **out, struct err *e)
{
	AUTO(auto_close) int dir = -1;
	AUTO(auto_free) char *path = NULL;

	dir = linkdirs_make(dirs_of(c), box, &path, e);
	if (dir < 0)
		return dir;
	return link_new((struct unix_carrier *)c, box, dir, out, e);
}

static void
carrier_forget(struct carrier *c, const struct uuid *box)
{
	linkdirs_remove(dirs_of(c), box);
}

static uint32_t
carrier_sweep(struct carrier *c, int64_t before_ms,
    bool (*keep)(const struct uuid *, void *), void *arg)
{
	return linkdirs_sweep(dirs_of(c), before_ms, keep, arg);
}

static void
carrier_free(struct carrier *c)
{
	linkdirs_close(dirs_of(c));
	free(c);
}

static const struct carrier_ops carrier_ops = {.name = "unix",
    .needs = BACKEND_HAS_PID | BACKEND_HAS_MOUNTS,
    .free = carrier_free,
    .prepare = carrier_prepare,
    .listen = carrier_listen,
    .forget = carrier_forget,
    .sweep = carrier_sweep};

int
unix_carrier_new(struct event_base *base, const char *data_dir,
    const char *agent, uint64_t bytes_per_s, struct carrier **out,
    struct err *e)
{
	struct unix_carrier *u = xcalloc(1, sizeof(*u));
	int rc = linkdirs_open(data_dir, agent, &u->dirs, e);

	if (rc != 0) {
		free(u);
		return rc;
	}
	u->c.ops = &carrier_ops;
	u->base = base;
	u->bytes_per_s = bytes_per_s;
	*out = &u->c;
	return 0;
}

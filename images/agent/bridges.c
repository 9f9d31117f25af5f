/*
 * bridges.c - the inner door: a caller comes in, knocks, and is handed over
 *
 *	accept -> a process of the sandbox: closed, counted
 *	accept -> from outside: a caller -> KNOCK is right: handed over
 *					 -> KNOCK is wrong, or another frame:
 *					    closed, a line for the server's log
 *					 -> hung up, too late, or too many wait:
 *					    closed
 */
#include "images/agent/bridges.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/epoll.h>

#include "common/clock.h"
#include "images/agent/say.h"
#include "images/agent/tree.h"

#define BACKLOG 128
#define SNDBUF_BYTES (1 << 20)
#define KNOCK_BYTES (FRAME_HEADER_BYTES + BRIDGES_SECRET_BYTES)
/* A stranger costs some 20 us: these bounds keep all of them together below a
 * tenth of a processor, and let a bridge through BACKLOG of them in 25 ms. */
#define STRANGERS_MAX 32
#define STRANGERS_MS 5
#define NO_FILES_MS 200
#define LINE_MS 60000

/* ---- who is there */

/* By the kernel's word; -1: unknown. */
static pid_t
pid_behind(int fd)
{
	socklen_t len = sizeof(struct ucred);
	struct ucred who;

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
		who.pid > 0 ?
	    who.pid :
	    -1;
}

static bool
is_from_outside(pid_t pid)
{
	return pid != -1 && tree_parent(pid) == 0;
}

void
bridges_hang_up(int fd)
{
	pid_t pid = pid_behind(fd);

	(void)close(fd);
	if (is_from_outside(pid))
		(void)kill(pid, SIGCONT);
}

/* ---- callers */

/* The caller's place is free then, and its descriptor the receiver's. */
static int
caller_release(struct bridge_caller *c)
{
	int fd = c->fd;

	loop_del(c->of->loop, &c->token);
	c->fd = -1;
	if (buf_len(&c->in) > 0)
		explicit_bzero(buf_data(&c->in), buf_len(&c->in));
	buf_clear(&c->in);
	return fd;
}

static void
caller_close(struct bridge_caller *c)
{
	if (c->fd != -1)
		bridges_hang_up(caller_release(c));
}

/* Takes the same time whatever differs. */
static bool
is_same_secret(const uint8_t *a, const uint8_t *b)
{
	uint8_t differs = 0;

	for (size_t i = 0; i < BRIDGES_SECRET_BYTES; i++)
		differs |= (uint8_t)(a[i] ^ b[i]);
	return differs == 0;
}

/* Not 0: this is no worker of ours. */
static int
take_knock(struct bridges *b, struct frame *f, struct err *e)
{
	struct frame_knock m;

	if (f->type != FRAME_KNOCK)
		return err_set(e, ERR_PROTO, "a bridge began with %s",
		    frame_type_name(f->type));
	if (frame_get_knock(f, &m, e) != 0)
		return ERR_PROTO;
	if (b->has_secret && !is_same_secret(b->secret, m.secret))
		return err_set(
		    e, ERR_PROTO, "a bridge knocked with another secret");
	memcpy(b->secret, m.secret, sizeof(b->secret));
	b->has_secret = true;
	return 0;
}

/* Never beyond KNOCK: what follows is for who takes the stream over. */
static void
caller_read(struct bridge_caller *c)
{
	struct bridges *b = c->of;
	uint8_t *p = buf_reserve(&c->in, KNOCK_BYTES - buf_len(&c->in));
	struct frame f;
	struct err e;
	ssize_t n;
	int rc;

	if (p == NULL) { /* cannot be: a whole KNOCK was taken */
		caller_close(c);
		return;
	}
	n = recv(c->fd, p, KNOCK_BYTES - buf_len(&c->in), 0);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		caller_close(c);
		return;
	}
	buf_commit(&c->in, (size_t)n);
	rc = frame_next(&c->in, KNOCK_BYTES, &f, &e);
	if (rc == 0)
		return;
	if (rc < 0 || take_knock(b, &f, &e) != 0) {
		say_line(FRAME_SAID_LEVEL_WARN, FRAME_SAID_WHAT_LINK_REFUSED,
		    NULL, "%s", e.msg);
		caller_close(c);
		return;
	}
	b->on_proven(caller_release(c), b->arg);
}

static void
caller_event_cb(uint32_t events, void *arg)
{
	struct bridge_caller *c = arg;

	if ((events & EPOLLIN) != 0)
		caller_read(c);
	else if ((events & (EPOLLHUP | EPOLLERR)) != 0)
		caller_close(c);
}

/* A free place, or that of who waits longest. */
static struct bridge_caller *
find_place(struct bridges *b)
{
	struct bridge_caller *oldest = &b->callers[0];

	for (size_t i = 0; i < BRIDGES_UNPROVEN_MAX; i++) {
		struct bridge_caller *c = &b->callers[i];

		if (c->fd == -1)
			return c;
		if (c->order < oldest->order)
			oldest = c;
	}
	caller_close(oldest);
	return oldest;
}

void
bridges_admit(struct bridges *b, int fd)
{
	struct bridge_caller *c = find_place(b);
	int size = SNDBUF_BYTES;

	/* Less than asked is fine; the peer's reading sets the pace. */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	c->token = loop_add(b->loop, fd, EPOLLIN, caller_event_cb, c);
	if (c->token == 0) {
		bridges_hang_up(fd);
		return;
	}
	c->fd = fd;
	c->since_ms = clock_mono_ms();
	c->order = ++b->orders;
}

/* ---- the door */

static void
door_rest(struct bridges *b, uint64_t now_ms, uint64_t ms)
{
	loop_mod(b->loop, b->token, 0);
	b->reopen_ms = now_ms + ms;
}

static void
tell_refused(struct bridges *b, uint64_t now_ms)
{
	if (b->refused == 0 || now_ms < b->next_line_ms)
		return;
	say_line(FRAME_SAID_LEVEL_WARN, FRAME_SAID_WHAT_LINK_REFUSED, NULL,
	    "connections of the sandbox's own processes: %llu",
	    (unsigned long long)b->refused);
	b->refused = 0;
	b->next_line_ms = now_ms + LINE_MS;
}

/* False: enough of them for now. */
static bool
count_stranger(struct bridges *b)
{
	uint64_t now = clock_mono_ms();

	b->refused++;
	tell_refused(b, now);
	if (now - b->window_ms >= STRANGERS_MS) {
		b->window_ms = now;
		b->strangers = 0;
	}
	if (++b->strangers < STRANGERS_MAX)
		return true;
	b->strangers = 0;
	door_rest(b, now, STRANGERS_MS);
	return false;
}

static void
accept_event_cb(uint32_t events, void *arg)
{
	struct bridges *b = arg;

	(void)events;
	for (;;) {
		int fd =
		    accept4(b->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd == -1 && errno == EINTR)
			continue;
		if (fd == -1 &&
		    (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
			errno == ENOBUFS))
			door_rest(b, clock_mono_ms(), NO_FILES_MS);
		if (fd == -1)
			return;
		if (is_from_outside(pid_behind(fd))) {
			bridges_admit(b, fd);
			return; /* others in the next turn */
		}
		(void)close(fd);
		if (!count_stranger(b))
			return;
	}
}

/* ---- life */

socklen_t
bridges_address(struct sockaddr_un *sa)
{
	*sa = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(sa->sun_path + 1, BRIDGES_NAME, sizeof(BRIDGES_NAME) - 1);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
	    sizeof(BRIDGES_NAME));
}

void
bridges_init(struct bridges *b, struct loop *loop,
    void (*on_proven)(int fd, void *arg), void *arg)
{
	*b = (struct bridges){
	    .loop = loop, .on_proven = on_proven, .arg = arg, .fd = -1};
	for (size_t i = 0; i < BRIDGES_UNPROVEN_MAX; i++) {
		b->callers[i] = (struct bridge_caller){.of = b, .fd = -1};
		buf_init(&b->callers[i].in, KNOCK_BYTES);
	}
}

int
bridges_open(struct bridges *b, struct err *e)
{
	AUTO(auto_close) int fd = -1;
	struct sockaddr_un sa;
	socklen_t len = bridges_address(&sa);

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1)
		return err_set(e, ERR_SYS, "socket: %s", strerror(errno));
	if (bind(fd, (const struct sockaddr *)&sa, len) == -1 ||
	    listen(fd, BACKLOG) == -1)
		return err_set(e, ERR_SYS, "listen at @" BRIDGES_NAME ": %s",
		    strerror(errno));
	b->token = loop_add(b->loop, fd, EPOLLIN, accept_event_cb, b);
	if (b->token == 0)
		return err_set(e, ERR_SYS, "epoll_ctl: %s", strerror(errno));
	b->fd = fd;
	fd = -1;
	return 0;
}

void
bridges_close(struct bridges *b)
{
	for (size_t i = 0; i < BRIDGES_UNPROVEN_MAX; i++)
		caller_close(&b->callers[i]);
	loop_del(b->loop, &b->token);
	if (b->fd != -1)
		(void)close(b->fd);
	b->fd = -1;
}

void
bridges_tick(struct bridges *b, uint64_t now_ms)
{
	for (size_t i = 0; i < BRIDGES_UNPROVEN_MAX; i++) {
		struct bridge_caller *c = &b->callers[i];

		if (c->fd != -1 && now_ms >= c->since_ms + BRIDGES_KNOCK_MS)
			caller_close(c);
	}
	if (b->reopen_ms != 0 && now_ms >= b->reopen_ms) {
		b->reopen_ms = 0;
		loop_mod(b->loop, b->token, EPOLLIN);
	}
}

uint64_t
bridges_next_ms(const struct bridges *b)
{
	uint64_t next = b->reopen_ms != 0 ? b->reopen_ms : UINT64_MAX;

	for (size_t i = 0; i < BRIDGES_UNPROVEN_MAX; i++) {
		const struct bridge_caller *c = &b->callers[i];

		if (c->fd != -1 && c->since_ms + BRIDGES_KNOCK_MS < next)
			next = c->since_ms + BRIDGES_KNOCK_MS;
	}
	return next;
}

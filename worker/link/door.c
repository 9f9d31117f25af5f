/*
 * A door is the listening socket of one box.  It opens when the box's process
 * is known, and shuts for a moment when processes inside connect in a loop.
 */
#include "worker/link/door.h"

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
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/later.h"
#include "worker/link/linkdir.h"

#define BACKLOG 128
#define ACCEPTS_PER_TURN 8
/* Connections per second, beyond which the door is shut for SHUT_MS. */
#define ACCEPTS_MAX 50
#define SHUT_MS 200

struct door_carrier {
	struct carrier c;
	struct event_base *base;
	struct linkdirs *dirs;
};

struct unix_door {
	struct door d;
	const struct door_carrier *in;
	struct uuid box;
	struct link *link;
	int listen_fd;
	struct event *on_accept;
	struct timer *reopen;
	int64_t pid; /* of the box's first process; 0: not known yet */
	uint64_t window_ms;
	unsigned int accepts; /* since window_ms */
	bool dead;            /* freed in a later turn of the loop */
};

static struct log_limit strangers;

/* ---- who comes in */

static void
door_open(struct unix_door *d)
{
	if (d->pid != 0 && !d->dead)
		(void)event_add(d->on_accept, NULL);
}

static void
door_shut(struct unix_door *d)
{
	(void)event_del(d->on_accept);
	timer_set_ms(d->reopen, SHUT_MS);
}

static void
reopen_cb(void *arg)
{
	door_open(arg);
}

static bool
is_too_often(struct unix_door *d)
{
	uint64_t now = clock_mono_ms();

	if (now - d->window_ms >= 1000) {
		d->window_ms = now;
		d->accepts = 0;
	}
	return ++d->accepts > ACCEPTS_MAX;
}

static bool
is_agent(struct unix_door *d, int fd)
{
	socklen_t len = sizeof(struct ucred);
	struct ucred who;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == -1)
		return false;
	if (who.pid == d->pid)
		return true;
	log_warn_limited(&strangers,
	    "link: process %ld (user %ld) connected, want the sandbox's "
	    "process %ld: closed",
	    (long)who.pid, (long)who.uid, (long)d->pid);
	return false;
}

static void
accept_cb(evutil_socket_t listen_fd, short what, void *arg)
{
	struct unix_door *d = arg;

	(void)what;
	for (int i = 0; i < ACCEPTS_PER_TURN && !d->dead; i++) {
		int fd = accept4(
		    listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd == -1 &&
		    (errno == EAGAIN || errno == ECONNABORTED ||
			errno == EINTR))
			return;
		if (fd == -1) {
			log_warn_limited(
			    &strangers, "link: accept: %s", strerror(errno));
			door_shut(d); /* no descriptors: later perhaps */
			return;
		}
		if (is_agent(d, fd))
			link_begin(d->link, fd);
		else
			(void)close(fd);
		if (!d->dead && is_too_often(d)) {
			door_shut(d);
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
admit(struct unix_door *d, struct err *e)
{
	AUTO(auto_close) int dir = -1;
	AUTO(auto_free) char *ignored = NULL;
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%lld", (long long)d->pid);
	if (stat(path, &st) == -1 || st.st_uid == 0 || st.st_uid == geteuid())
		return 0; /* gone already, or let in as it is */
	dir = linkdirs_make(d->in->dirs, &d->box, &ignored, e);
	if (dir < 0)
		return dir;
	(void)snprintf(
	    path, sizeof(path), "/proc/self/fd/%d/%s", dir, DOOR_SOCKET_NAME);
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
door_expect(struct door *door, const struct backend_container *c)
{
	struct unix_door *d = (struct unix_door *)door;
	struct err e;

	d->pid = c->pid;
	if (d->pid != 0 && admit(d, &e) != 0)
		log_warn_limited(&strangers, "%s", e.msg);
	door_open(d);
}

/* ---- life */

static void
door_free_cb(void *arg)
{
	struct unix_door *d = arg;

	event_free(d->on_accept);
	timer_free(d->reopen);
	free(d);
}

static void
door_close(struct door *door)
{
	struct unix_door *d = (struct unix_door *)door;

	d->dead = true;
	(void)event_del(d->on_accept);
	timer_stop(d->reopen);
	(void)close(d->listen_fd);
	later(d->in->base, door_free_cb, d);
}

/* By a path below /proc: a directory's may be longer than a socket's. */
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
	    dir, DOOR_SOCKET_NAME);
	if (unlinkat(dir, DOOR_SOCKET_NAME, 0) == -1 && errno != ENOENT)
		return err_set(
		    e, ERR_SYS, "link: unlink socket: %s", strerror(errno));
	if (bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) == -1)
		return err_set(e, ERR_SYS, "link: bind: %s", strerror(errno));
	if (fchmodat(dir, DOOR_SOCKET_NAME, 0600, 0) == -1)
		return err_set(e, ERR_SYS, "link: chmod: %s", strerror(errno));
	if (listen(fd, BACKLOG) == -1)
		return err_set(e, ERR_SYS, "link: listen: %s", strerror(errno));
	out = fd;
	fd = -1;
	return out;
}

static int
door_listen(struct carrier *c, const struct uuid *box, struct link *link,
    struct door **out, struct err *e)
{
	const struct door_carrier *dc = (const struct door_carrier *)c;
	AUTO(auto_close) int dir = -1;
	AUTO(auto_free) char *path = NULL;
	struct unix_door *d;
	int fd;

	dir = linkdirs_make(dc->dirs, box, &path, e);
	if (dir < 0)
		return dir;
	fd = listen_in(dir, e);
	if (fd < 0)
		return fd;
	d = xcalloc(1, sizeof(*d));
	d->d.ops = dc->c.ops;
	d->in = dc;
	d->box = *box;
	d->link = link;
	d->listen_fd = fd;
	d->on_accept =
	    event_new(d->in->base, fd, EV_READ | EV_PERSIST, accept_cb, d);
	if (d->on_accept == NULL)
		fatal(EXIT_MEMORY, "no memory for an event");
	d->reopen = timer_new(d->in->base, reopen_cb, d);
	*out = &d->d;
	return 0;
}

/* ---- the carrier */

static struct linkdirs *
dirs_of(struct carrier *c)
{
	return ((struct door_carrier *)c)->dirs;
}

static int
carrier_prepare(struct carrier *c, const struct uuid *box,
    struct backend_wishes *out, struct err *e)
{
	out->carrier = c->ops->name;
	return linkdirs_mount(dirs_of(c), box, out, e);
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

static const struct carrier_ops carrier_ops = {.name = "unix",
    .needs = BACKEND_HAS_PID | BACKEND_HAS_MOUNTS,
    .prepare = carrier_prepare,
    .listen = door_listen,
    .expect = door_expect,
    .close = door_close,
    .forget = carrier_forget,
    .sweep = carrier_sweep};

struct carrier *
door_carrier_new(struct event_base *base, struct linkdirs *dirs)
{
	struct door_carrier *c = xcalloc(1, sizeof(*c));

	c->c.ops = &carrier_ops;
	c->base = base;
	c->dirs = dirs;
	return &c->c;
}

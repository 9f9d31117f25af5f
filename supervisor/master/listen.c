#include "supervisor/master/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#define PATIENCE_MS 2000
#define PATIENCE_STEP_MS 20

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_storage room;
};

static int
address_parse(const char *bind, uint16_t port, union address *a, socklen_t *len,
    struct err *e)
{
	memset(a, 0, sizeof(*a));
	if (inet_pton(AF_INET, bind, &a->v4.sin_addr) == 1) {
		a->v4.sin_family = AF_INET;
		a->v4.sin_port = htons(port);
		*len = sizeof(a->v4);
		return 0;
	}
	if (inet_pton(AF_INET6, bind, &a->v6.sin6_addr) == 1) {
		a->v6.sin6_family = AF_INET6;
		a->v6.sin6_port = htons(port);
		*len = sizeof(a->v6);
		return 0;
	}
	return err_set(e, ERR_INVAL,
	    "BIND: \"%s\" is not an IPv4 or IPv6 address, want one such as "
	    "127.0.0.1 or ::1",
	    bind);
}

/* The address as it is now, with the port the kernel chose. */
static int
listener_describe(struct listener *l, struct err *e)
{
	char text[INET6_ADDRSTRLEN];
	union address a;
	socklen_t len = sizeof(a);

	memset(&a, 0, sizeof(a));
	if (getsockname(l->fd, &a.any, &len) == -1)
		return err_errno(e, "getsockname");
	if (a.any.sa_family == AF_INET) {
		l->port = ntohs(a.v4.sin_port);
		(void)inet_ntop(AF_INET, &a.v4.sin_addr, text, sizeof(text));
		(void)snprintf(
		    l->address, sizeof(l->address), "%s:%u", text, l->port);
	} else {
		l->port = ntohs(a.v6.sin6_port);
		(void)inet_ntop(AF_INET6, &a.v6.sin6_addr, text, sizeof(text));
		(void)snprintf(
		    l->address, sizeof(l->address), "[%s]:%u", text, l->port);
	}
	return 0;
}

static int
bind_failed(const char *bind, uint16_t port, struct err *e)
{
	if (errno == EADDRINUSE)
		return err_set(e, ERR_CONFLICT,
		    "port %u on %s is in use: stop the other server or set "
		    "PORT",
		    port, bind);
	if (errno == EACCES)
		return err_set(e, ERR_SYS,
		    "port %u on %s needs root: set PORT to 1024 or more", port,
		    bind);
	if (errno == EADDRNOTAVAIL)
		return err_set(e, ERR_SYS,
		    "this machine has no address %s: set BIND", bind);
	return err_errno(e, "listen on %s port %u", bind, port);
}

/* A socket that listens; -1 and errno. */
static int
try_listen(const union address *a, socklen_t len)
{
	AUTO(auto_close) int fd = -1;
	const int on = 1;
	int out;

	fd = socket(
	    a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* Connections of a server that was here before may still linger. */
	if (fd == -1 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == -1 ||
	    bind(fd, &a->any, len) == -1 || listen(fd, LISTEN_BACKLOG) == -1)
		return -1;
	out = fd; /* the caller's */
	fd = -1;
	return out;
}

/* The front of a server that was killed has the port until it has ended, too:
 * who starts the next one at once need not hear of that. */
static int
listen_patiently(const union address *a, socklen_t len)
{
	const struct timespec pause = {.tv_nsec = PATIENCE_STEP_MS * 1000000L};
	int fd = try_listen(a, len);

	for (int i = 0; fd == -1 && errno == EADDRINUSE &&
	     i < PATIENCE_MS / PATIENCE_STEP_MS;
	     i++) {
		(void)nanosleep(&pause, NULL);
		fd = try_listen(a, len);
	}
	return fd;
}

int
listen_open(
    const char *bind_to, uint16_t port, struct listener *l, struct err *e)
{
	AUTO(auto_close) int fd = -1;
	struct listener made = LISTENER_INIT;
	union address a;
	socklen_t len;
	int rc;

	rc = address_parse(bind_to, port, &a, &len, e);
	if (rc != 0)
		return rc;
	fd = listen_patiently(&a, len);
	if (fd == -1)
		return bind_failed(bind_to, port, e);
	made.fd = fd;
	rc = listener_describe(&made, e);
	if (rc != 0)
		return rc;
	*l = made; /* the caller's to close */
	fd = -1;
	return 0;
}

/* By its directory's descriptor: a path may be longer than sun_path. */
static int
bind_admin(int fd, int data, const char *name)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	union {
		struct sockaddr_un *sun;
		struct sockaddr *sa;
	} p = {.sun = &sun};
	mode_t before;
	int rc;

	(void)snprintf(sun.sun_path, sizeof(sun.sun_path),
	    "/proc/self/fd/%d/%.60s", data, name);
	if (unlinkat(data, name, 0) == -1 && errno != ENOENT)
		return -1;
	before = umask(0177);
	rc = bind(fd, p.sa, sizeof(sun));
	(void)umask(before);
	return rc == 0 ? listen(fd, LISTEN_BACKLOG) : -1;
}

int
listen_open_admin(int data, const char *name, struct listener *l, struct err *e)
{
	AUTO(auto_close) int fd = -1;

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1 || bind_admin(fd, data, name) != 0)
		return err_errno(e, "DATA_DIR: listen on %s", name);
	*l = (struct listener){.fd = fd}; /* the caller's to close */
	fd = -1;
	(void)snprintf(l->address, sizeof(l->address), "%s", name);
	return 0;
}

void
listen_close(struct listener *l)
{
	if (l->fd >= 0)
		(void)close(l->fd);
	l->fd = -1;
}

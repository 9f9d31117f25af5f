/* http_accept.c - listening sockets, and a pause when descriptors run out */
#include "supervisor/http/http_int.h"

#include <fcntl.h>
#include <sys/socket.h>

#include "common/fd.h"
#include "common/log.h"

/* A listener's error callback is given evhttp's pointer and not ours. */
static TAILQ_HEAD(, http_server) servers = TAILQ_HEAD_INITIALIZER(servers);

void
http_accept_init(struct http_server *s)
{
	TAILQ_INSERT_TAIL(&servers, s, link);
}

void
http_accept_clear(struct http_server *s)
{
	TAILQ_REMOVE(&servers, s, link);
}

void
http_accept_update(struct http_server *s)
{
	bool on = !s->paused && !s->draining;

	for (unsigned int i = 0; i < s->nlisteners; i++)
		(void)(on ? evconnlistener_enable(s->listeners[i]) :
			    evconnlistener_disable(s->listeners[i]));
}

void
http_accept_pause(struct http_server *s)
{
	static struct log_limit limit;

	if (s->paused)
		return;
	log_warn_limited(&limit,
	    "descriptors are running out (limit %zu): accepting pauses",
	    s->fd_limit);
	s->paused = true;
	http_accept_update(s);
}

/* accept() failed; out of descriptors or memory it would fail without end. */
static void
accept_error_cb(struct evconnlistener *listener, void *arg)
{
	struct http_server *s;

	(void)listener;
	TAILQ_FOREACH (s, &servers, link)
		if (s->evhttp == arg || s->evhttp_local == arg)
			http_accept_pause(s);
}

static bool
is_local(int fd)
{
	int family = AF_UNSPEC;
	socklen_t len = sizeof(family);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len) == 0 &&
	    family == AF_UNIX;
}

int
http_server_listen(struct http_server *s, int fd, struct err *e)
{
	struct evhttp_bound_socket *bound;
	struct evconnlistener *listener;

	if (s->nlisteners == HTTP_LISTENERS_MAX) {
		(void)close(fd);
		return err_set(e, ERR_LIMIT, "more than %d listening sockets",
		    HTTP_LISTENERS_MAX);
	}
	/* libevent accepts until there is nothing more: must not block. */
	if (fd_set_nonblock(fd, e) != 0) {
		(void)close(fd);
		return e->code;
	}
	bound = evhttp_accept_socket_with_handle(
	    is_local(fd) ? s->evhttp_local : s->evhttp, fd);
	if (bound == NULL) {
		(void)close(fd);
		return err_set(e, ERR_SYS, "cannot accept on socket %d", fd);
	}
	listener = evhttp_bound_socket_get_listener(bound);
	evconnlistener_set_error_cb(listener, accept_error_cb);
	s->listeners[s->nlisteners++] = listener;
	http_accept_update(s);
	return 0;
}

void
http_server_tick(struct http_server *s)
{
	int fd;

	if (!s->paused || s->nlisteners == 0)
		return;
	/* Which number would the next descriptor get? */
	fd = fcntl(evconnlistener_get_fd(s->listeners[0]), F_DUPFD_CLOEXEC, 0);
	if (fd >= 0)
		(void)close(fd);
	if (fd >= 0 && (size_t)fd + 2 * HTTP_FREE_FDS < s->fd_limit) {
		s->paused = false;
		http_accept_update(s);
	}
}

#include "supervisor/front/http_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/resource.h>

#include "common/fd.h"
#include "common/log.h"
#include "common/xmalloc.h"

/* CONNECT stays out: evhttp reads its target in another way. */
#define METHODS                                                                \
	(EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT | \
	    EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE |        \
	    EVHTTP_REQ_PATCH)

/* A listener's error callback is given evhttp's pointer and not ours. */
static TAILQ_HEAD(, http_server) servers = TAILQ_HEAD_INITIALIZER(servers);

static size_t
descriptor_limit(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) != 0 || rl.rlim_cur == RLIM_INFINITY)
		return SIZE_MAX / 2;
	return (size_t)rl.rlim_cur;
}

struct http_server *
http_server_new(struct event_base *base, const struct http_limits *limits,
    http_request_cb on_request, void *arg)
{
	struct http_server *s = xcalloc(1, sizeof(*s));

	s->base = base;
	s->limits = *limits;
	s->on_request = on_request;
	s->arg = arg;
	s->fd_limit = descriptor_limit();
	if (getrandom(&s->id_start, sizeof(s->id_start), 0) < 0)
		fatal(70, "getrandom: %s", strerror(errno));
	TAILQ_INIT(&s->fresh);
	TAILQ_INIT(&s->conns);
	TAILQ_INIT(&s->dead);
	TAILQ_INIT(&s->lingers);
	(void)evtimer_assign(&s->adopt, base, http_conn_adopt_cb, s);
	(void)evtimer_assign(&s->reap, base, http_conn_reap_cb, s);
	s->evhttp = evhttp_new(base);
	if (s->evhttp == NULL)
		fatal(71, "out of memory");
	evhttp_set_allowed_methods(s->evhttp, METHODS);
	evhttp_set_default_content_type(s->evhttp, NULL);
	evhttp_set_max_headers_size(s->evhttp, (ev_ssize_t)limits->head_max);
	evhttp_set_max_body_size(s->evhttp, (ev_ssize_t)limits->body_max);
	evhttp_set_bevcb(s->evhttp, http_conn_new_cb, s);
	evhttp_set_gencb(s->evhttp, http_request_cb_from_evhttp, s);
	TAILQ_INSERT_TAIL(&servers, s, link);
	return s;
}

void
http_server_free(struct http_server *s)
{
	if (s == NULL)
		return;
	http_conn_adopt_cb(-1, 0, s); /* what was accepted in this turn */
	evhttp_free(s->evhttp);
	http_refuse_free_lingers(s);
	http_conn_reap_cb(-1, 0, s);
	(void)event_del(&s->adopt);
	(void)event_del(&s->reap);
	TAILQ_REMOVE(&servers, s, link);
	free(s->by_fd);
	free(s);
}

/* ---- accepting */

static void
set_accepting(struct http_server *s)
{
	bool on = !s->paused && !s->draining;

	for (unsigned int i = 0; i < s->nlisteners; i++)
		(void)(on ? evconnlistener_enable(s->listeners[i]) :
			    evconnlistener_disable(s->listeners[i]));
}

void
http_server_pause(struct http_server *s)
{
	static struct log_limit limit;

	if (s->paused)
		return;
	log_warn_limited(&limit,
	    "descriptors are running out (limit %zu): accepting pauses",
	    s->fd_limit);
	s->paused = true;
	set_accepting(s);
}

/* accept() failed; out of descriptors or memory it would fail without end. */
static void
accept_error_cb(struct evconnlistener *listener, void *arg)
{
	struct http_server *s;

	(void)listener;
	TAILQ_FOREACH (s, &servers, link)
		if (s->evhttp == arg)
			http_server_pause(s);
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
	bound = evhttp_accept_socket_with_handle(s->evhttp, fd);
	if (bound == NULL) {
		(void)close(fd);
		return err_set(e, ERR_SYS, "cannot accept on socket %d", fd);
	}
	listener = evhttp_bound_socket_get_listener(bound);
	evconnlistener_set_error_cb(listener, accept_error_cb);
	s->listeners[s->nlisteners++] = listener;
	set_accepting(s);
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
		set_accepting(s);
	}
}

void
http_server_drain(struct http_server *s)
{
	struct http_conn *c;

	s->draining = true;
	set_accepting(s);
	TAILQ_FOREACH (c, &s->conns, link)
		if (c->state == HTTP_CONN_IDLE || c->state == HTTP_CONN_FRESH)
			http_conn_refuse_later(c, -1);
}

/* ---- small things */

void
http_server_set_log(struct http_server *s, http_log_cb on_log)
{
	s->on_log = on_log;
}

void
http_server_stats(const struct http_server *s, struct http_stats *out)
{
	*out = s->stats;
}

void
http_server_next_id(struct http_server *s, char out[HTTP_ID_MAX])
{
	(void)snprintf(
	    out, HTTP_ID_MAX, "%08x-%08x", s->id_start, s->id_next++);
}

void
http_server_count(struct http_server *s, int status)
{
	s->stats.requests++;
	if (status >= 100 && status < 600)
		s->stats.by_class[status / 100]++;
}

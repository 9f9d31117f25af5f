/*
 * http_refuse.c - answers in our own words beside evhttp, and the close
 *
 * For what never becomes a request: too slow, too large, too many.  The answer
 * is one send(2); what the client still sends is read for a while, so that it
 * gets to see why (lingering).
 */
#include "supervisor/http/http_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "common/timer.h"
#include "common/xmalloc.h"

#define LINGERS_MAX 64
#define LINGER_MS 2000
#define LINGER_BYTES (32u << 20)

/* ---- lingering */

/* A close with bytes unread resets the connection, and the client may never
 * see why; so what still comes is read for a while. */

struct http_linger {
	struct http_server *server;
	TAILQ_ENTRY(http_linger) link;
	struct event ev;
	uint64_t until_ms;
	size_t left;
	int fd;
};

static void
linger_free(struct http_linger *l)
{
	TAILQ_REMOVE(&l->server->lingers, l, link);
	l->server->nlingers--;
	(void)event_del(&l->ev);
	(void)close(l->fd);
	free(l);
}

static void
linger_cb(evutil_socket_t fd, short what, void *arg)
{
	struct http_linger *l = arg;
	char sink[16384];
	ssize_t n;

	if ((what & EV_TIMEOUT) != 0 || clock_mono_ms() >= l->until_ms) {
		linger_free(l);
		return;
	}
	n = recv(fd, sink, sizeof(sink), MSG_DONTWAIT);
	if (n <= 0 || (size_t)n >= l->left)
		linger_free(l);
	else
		l->left -= (size_t)n;
}

static void
linger_start(struct http_server *s, int fd)
{
	const struct timeval tv = timer_timeval(LINGER_MS);
	struct http_linger *l;

	if (fd < 0)
		return;
	l = xcalloc(1, sizeof(*l));
	l->server = s;
	l->fd = fd;
	l->left = LINGER_BYTES;
	l->until_ms = clock_mono_ms() + LINGER_MS;
	(void)event_assign(
	    &l->ev, s->base, fd, EV_READ | EV_PERSIST, linger_cb, l);
	(void)event_add(&l->ev, &tv);
	TAILQ_INSERT_TAIL(&s->lingers, l, link);
	s->nlingers++;
}

void
http_refuse_free_lingers(struct http_server *s)
{
	struct http_linger *l;

	while ((l = TAILQ_FIRST(&s->lingers)) != NULL)
		linger_free(l);
}

/* ---- refusing */

static size_t
refusal_text(
    struct http_server *s, const struct http_refusal *r, char *out, size_t size)
{
	char id[HTTP_ID_MAX], body[400];
	int n;

	http_stat_next_id(s, id);
	n = snprintf(body, sizeof(body),
	    "{\"error\":{\"code\":\"%s\",\"message\":\"%s\","
	    "\"request_id\":\"%s\"}}",
	    r->code, r->message, id);
	n = snprintf(out, size,
	    "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n"
	    "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n"
	    "X-Request-Id: %s\r\nContent-Length: %d\r\n%s"
	    "Connection: close\r\n\r\n%s",
	    r->status, r->reason, id, n,
	    r->status == 429 || r->status == 503 ? "Retry-After: 1\r\n" : "",
	    body);
	return (size_t)n;
}

void
http_refuse_now(struct http_conn *c, int status)
{
	struct http_server *s = c->server;
	const struct http_refusal *r = http_refusal(status);
	char text[1024];
	int fd = -1;
	size_t n;

	n = refusal_text(s, r, text, sizeof(text));
	http_stat_count(s, r->status);
	/* No answer is under way in these states, so this is the first byte
	 * of one; a socket that cannot take it at once gets none. */
	if (c->ssl == NULL)
		(void)!send(c->fd, text, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	else if (!c->shakes)
		http_tls_say(c, text, n);
	(void)bufferevent_disable(c->bev, EV_READ | EV_WRITE);
	if (!c->shakes && s->nlingers < LINGERS_MAX && !s->paused &&
	    !s->draining)
		fd = fcntl(c->fd, F_DUPFD_CLOEXEC, 3);
	evhttp_connection_free(c->evcon); /* shuts our direction down */
	linger_start(s, fd);
}

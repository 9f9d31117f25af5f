/*
 * http_refuse.c - answers in our own words beside evhttp, and the close
 *
 * For what never becomes a request: too slow, too large, too many.  The answer
 * is one send(2).  A close with bytes unread would reset the connection, and
 * the client might never see why: what it still sends is read for a while
 * (lingering).
 *
 * What every error answer says (RFC 9457, and our own member):
 *
 *	{"type":"about:blank", "title", "status", "detail",
 *	 "instance":"urn:mcp-sandboxd:request:ID", "code", "request_id",
 *	 "error":{"code","message","request_id", of a quota more}}
 *
 * Clients that know RFC 9457 read the former, and decide by code; "error" is
 * what was there before it, and stays for those who read that.
 */
#include "supervisor/http/http_int.h"

#include <endian.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "common/hex.h"
#include "common/js.h"
#include "common/timer.h"
#include "common/xmalloc.h"

#define INSTANCE "urn:mcp-sandboxd:request:"
#define LINGERS_MAX 64
#define LINGER_MS 2000
#define LINGER_BYTES (32u << 20)

/* Reasons as RFC 9110, section 15, and its relatives have them; those of evhttp
 * are older, or missing.  Those with a code are said beside evhttp, too. */
static const struct http_refusal refusals[] = {
    {400, "Bad Request", "bad_request", "this is not an HTTP/1.1 request"},
    {401, "Unauthorized", NULL, NULL},
    {403, "Forbidden", NULL, NULL},
    {404, "Not Found", NULL, NULL},
    {405, "Method Not Allowed", NULL, NULL},
    {408, "Request Timeout", "request_timeout",
	"the request did not arrive whole in time (REQUEST_TIMEOUT_MS)"},
    {409, "Conflict", NULL, NULL},
    {410, "Gone", NULL, NULL},
    {412, "Precondition Failed", NULL, NULL},
    {413, "Content Too Large", "body_too_large",
	"the body is larger than MAX_BODY_BYTES"},
    {415, "Unsupported Media Type", NULL, NULL},
    {416, "Range Not Satisfiable", NULL, NULL},
    {417, "Expectation Failed", "expectation_failed",
	"only Expect: 100-continue is understood"},
    {421, "Misdirected Request", NULL, NULL},
    {429, "Too Many Requests", "too_many_connections",
	"too many connections from this address (CONNECTIONS_PER_ADDRESS)"},
    {431, "Request Header Fields Too Large", "headers_too_large",
	"request line and headers are larger than the limit"},
    {500, "Internal Server Error", NULL, NULL},
    {501, "Not Implemented", "not_implemented", "unknown method"},
    {503, "Service Unavailable", "busy",
	"too many connections (MAX_CONNECTIONS): try again later"},
    {505, "HTTP Version Not Supported", NULL, NULL},
    {507, "Insufficient Storage", NULL, NULL},
};

static const struct http_refusal *
find(int status)
{
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++)
		if (refusals[i].status == status)
			return &refusals[i];
	return NULL;
}

const char *
http_reason(int status)
{
	const struct http_refusal *r = find(status);

	return r == NULL ? NULL : r->reason;
}

const struct http_refusal *
http_refusal(int status)
{
	const struct http_refusal *r = find(status);

	return r == NULL || r->code == NULL ? find(400) : r;
}

json_t *
http_problem_member(const char *code, const char *message, const char *id)
{
	return json_pack("{s:s, s:o, s:s}", "code", code, "message",
	    js_string_bytes(message, strlen(message), NULL), "request_id", id);
}

char *
http_problem_dump(int status, json_t *error)
{
	/* With this type the title is to be the status line's (RFC 9457,
	 * section 4.2.1). */
	const char *title = http_reason(status);
	AUTO(auto_free)
	char *instance = xasprintf(INSTANCE "%s", js_text(error, "request_id"));
	json_t *o = json_pack("{s:s, s:s, s:i, s:O, s:s, s:O, s:O, s:o}",
	    "type", "about:blank", "title", title == NULL ? "Error" : title,
	    "status", status, "detail", json_object_get(error, "message"),
	    "instance", instance, "code", json_object_get(error, "code"),
	    "request_id", json_object_get(error, "request_id"), "error", error);
	char *text = js_dump(o);

	json_decref(o);
	return text;
}

void
http_stat_next_id(struct http_server *s, char out[HTTP_ID_MAX])
{
	const uint32_t start = htobe32(s->id_start), n = htobe32(s->id_next++);

	hex_encode(&start, sizeof(start), out);
	out[8] = '-';
	hex_encode(&n, sizeof(n), out + 9);
}

void
http_stat_count(struct http_server *s, int status)
{
	s->stats.requests++;
	if (status >= 100 && status < 600)
		s->stats.by_class[status / 100]++;
}

/* ---- lingering */

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

static char *
refusal_text(
    struct http_server *s, const struct http_refusal *r, const char *message)
{
	AUTO(auto_free) char *body = NULL;
	char id[HTTP_ID_MAX];

	http_stat_next_id(s, id);
	body = http_problem_dump(
	    r->status, http_problem_member(r->code, message, id));
	return xasprintf("HTTP/1.1 %d %s\r\nContent-Type: " HTTP_PROBLEM_TYPE
			 "\r\nX-Content-Type-Options: nosniff\r\n"
			 "Cache-Control: no-store\r\nX-Request-Id: %s\r\n"
			 "Content-Length: %zu\r\n%sConnection: close\r\n\r\n%s",
	    r->status, http_reason(r->status), id, strlen(body),
	    r->status == 429 || r->status == 503 ? "Retry-After: 1\r\n" : "",
	    body);
}

void
http_refuse_later(struct http_conn *c, int status)
{
	if (c->refuse == 0)
		c->refuse = status;
	event_active(&c->timer, EV_TIMEOUT, 1);
}

void
http_refuse_now(struct http_conn *c, int status)
{
	struct http_server *s = c->server;
	const struct http_refusal *r = http_refusal(status);
	AUTO(auto_free)
	char *text = refusal_text(s, r,
	    c->refuse_text != NULL && status == c->refuse ? c->refuse_text :
							    r->message);
	size_t n = strlen(text);
	int fd = -1;

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
		/* epoll may report c->fd as long as the duplicate is open;
		 * such an event finds no connection, or nothing to read. */
		fd = fcntl(c->fd, F_DUPFD_CLOEXEC, 3);
	evhttp_connection_free(c->evcon); /* shuts our direction down */
	linger_start(s, fd);
}

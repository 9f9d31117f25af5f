/*
 *	sent		the request, as the connection takes it
 *	  |
 *	heads		interim answers are passed over
 *	  |
 *	101 or body	then on_end.  Bytes behind a 101's head are the
 *			stream's first, and kept for upgrade_recv
 */
#include "worker/http/upgrade.h"

#include <errno.h>
#include <strings.h>

#include <event2/event.h>

#include "common/buf.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "worker/later.h"

#define FIRST_FINAL 200
#define PIECE_BYTES 4096

struct upgrade {
	struct event_base *base;
	CURL *curl;
	curl_socket_t fd;
	struct event *on_ready;
	struct buf out, in;
	size_t nheaders; /* bytes of heads that came */
	size_t max_headers, max_body, body_len;
	long status;
	char *head; /* the final one; NULL: it has not come */
	size_t over_limit;
	void (*on_end)(const struct upgrade_end *, void *);
	void *arg;
};

/* ---- the answer's head */

/* The value of a header, or NULL; head ends with its empty line. */
static const char *
find_header(const char *head, const char *name)
{
	size_t n = strlen(name);

	for (const char *s = strstr(head, "\r\n"); s != NULL;
	     s = strstr(s + 2, "\r\n"))
		if (strncasecmp(s + 2, name, n) == 0 && s[2 + n] == ':')
			return s + 3 + n + strspn(s + 3 + n, " \t");
	return NULL;
}

/* Of "HTTP/1.1 101 ...", or 0. */
static long
read_status(const char *head)
{
	const char *at = head + strlen("HTTP/1.1 ");

	if (strncmp(head, "HTTP/1.", 7) != 0 ||
	    (head[7] != '0' && head[7] != '1') || head[8] != ' ' ||
	    at[0] == '0' || strspn(at, "0123456789") != 3 ||
	    (at[3] != ' ' && at[3] != '\r'))
		return 0;
	return strtol(at, NULL, 10);
}

/* What has no length has no body.  Ten digits are no overflow, and above any
 * bound. */
static int
read_length(const char *head, size_t *out)
{
	const char *length = find_header(head, "Content-Length");

	*out = 0;
	if (length == NULL)
		return 0;
	if (strspn(length, "0123456789") > 10)
		return -1;
	*out = (size_t)strtoul(length, NULL, 10);
	return 0;
}

/* ---- what comes and goes */

/* Takes heads off the bytes that came, those of interim answers too.
 * CURLE_OK: the final one is there; CURLE_AGAIN: not yet. */
static CURLcode
upgrade_take_head(struct upgrade *u)
{
	while (u->status == 0) {
		AUTO(auto_free) char *head = NULL;
		const uint8_t *p = buf_data(&u->in);
		const uint8_t *end = memmem(p, buf_len(&u->in), "\r\n\r\n", 4);
		size_t n =
		    end == NULL ? buf_len(&u->in) : (size_t)(end - p) + 4;
		long status;

		if (u->nheaders + n > u->max_headers) {
			u->over_limit = u->max_headers;
			return CURLE_WRITE_ERROR;
		}
		if (end == NULL)
			return CURLE_AGAIN;
		u->nheaders += n;
		head = xstrndup((const char *)p, n);
		buf_consume(&u->in, n);
		status = read_status(head);
		if (status == 0 || read_length(head, &u->body_len) != 0)
			return CURLE_WEIRD_SERVER_REPLY;
		if (status == UPGRADE_SWITCHED || status >= FIRST_FINAL) {
			u->status = status;
			u->head = xstrndup(head, n);
		}
	}
	return CURLE_OK;
}

/* As upgrade_take_head, of the whole answer. */
static CURLcode
upgrade_look(struct upgrade *u)
{
	CURLcode code = upgrade_take_head(u);

	if (code != CURLE_OK || u->status == UPGRADE_SWITCHED)
		return code;
	if (u->body_len > u->max_body) {
		u->over_limit = u->max_body;
		return CURLE_WRITE_ERROR;
	}
	if (buf_len(&u->in) < u->body_len)
		return CURLE_AGAIN;
	buf_truncate(&u->in, u->body_len);
	return CURLE_OK;
}

static CURLcode
upgrade_read(struct upgrade *u)
{
	CURLcode code;
	size_t n = 0;

	do {
		uint8_t *p = buf_reserve(&u->in, PIECE_BYTES);

		if (p == NULL)
			fatal(EXIT_BUG, "an answer is larger than its bounds");
		code = curl_easy_recv(u->curl, p, PIECE_BYTES, &n);
		if (code != CURLE_OK)
			return code;
		buf_commit(&u->in, n);
		code = n == 0 ? CURLE_GOT_NOTHING : upgrade_look(u);
	} while (code == CURLE_AGAIN);
	return code;
}

static CURLcode
upgrade_write(struct upgrade *u)
{
	CURLcode code = CURLE_OK;
	size_t n = 0;

	while (code == CURLE_OK && buf_len(&u->out) > 0) {
		code = curl_easy_send(
		    u->curl, buf_data(&u->out), buf_len(&u->out), &n);
		if (code == CURLE_OK)
			buf_consume(&u->out, n);
	}
	return code;
}

static void
upgrade_finish(struct upgrade *u, CURLcode code)
{
	const struct upgrade_end end = {.code = code,
	    .status = u->status,
	    .head = u->head,
	    .head_len = u->head != NULL ? strlen(u->head) : 0,
	    .over_limit = u->over_limit,
	    .body = buf_data(&u->in),
	    .len = u->status == UPGRADE_SWITCHED ? 0 : buf_len(&u->in)};

	later_event_free(u->base, u->on_ready);
	u->on_ready = NULL;
	u->on_end(&end, u->arg);
}

static void upgrade_watch(struct upgrade *u, short what);

static void
upgrade_ready_cb(evutil_socket_t fd, short what, void *arg)
{
	struct upgrade *u = arg;
	CURLcode code = upgrade_write(u);

	(void)fd;
	if (code == CURLE_OK && (what & EV_WRITE) != 0)
		upgrade_watch(u, EV_READ);
	if (code == CURLE_OK)
		code = upgrade_read(u);
	if (code != CURLE_AGAIN)
		upgrade_finish(u, code);
}

static void
upgrade_watch(struct upgrade *u, short what)
{
	later_event_free(u->base, u->on_ready);
	u->on_ready =
	    event_new(u->base, u->fd, what | EV_PERSIST, upgrade_ready_cb, u);
	if (u->on_ready == NULL || event_add(u->on_ready, NULL) == -1)
		fatal(EXIT_MEMORY, "no memory for an event");
}

/* ---- public */

static int
put_request(struct buf *b, const struct upgrade_ask *ask)
{
	int rc = buf_printf(b,
	    "%s %s HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: %s\r\n",
	    ask->method, ask->path, ask->protocol);

	for (const struct curl_slist *s = ask->headers; s != NULL && rc == 0;
	     s = s->next)
		if (s->data[strlen(s->data) - 1] != ':')
			rc = buf_printf(b, "%s\r\n", s->data);
	if (rc == 0)
		rc =
		    buf_printf(b, "Content-Length: %zu\r\n\r\n", ask->body_len);
	return rc != 0 ? rc : buf_append(b, ask->body, ask->body_len);
}

struct upgrade *
upgrade_new(struct event_base *base, CURL *curl, const struct upgrade_ask *ask,
    void (*on_end)(const struct upgrade_end *end, void *arg), void *arg)
{
	struct upgrade *u = xcalloc(1, sizeof(*u));

	u->base = base;
	u->curl = curl;
	u->max_headers = ask->max_headers;
	u->max_body = ask->max_body;
	u->on_end = on_end;
	u->arg = arg;
	u->fd = CURL_SOCKET_BAD;
	buf_init(&u->out, 0);
	buf_init(&u->in, ask->max_headers + ask->max_body + PIECE_BYTES);
	(void)curl_easy_getinfo(curl, CURLINFO_ACTIVESOCKET, &u->fd);
	if (put_request(&u->out, ask) != 0 || u->fd == CURL_SOCKET_BAD)
		fatal(EXIT_BUG, "no connection, or no room for a request");
	upgrade_watch(u, EV_READ | EV_WRITE);
	return u;
}

void
upgrade_free(struct upgrade *u)
{
	if (u == NULL)
		return;
	later_event_free(u->base, u->on_ready);
	buf_clear(&u->out);
	buf_clear(&u->in);
	free(u->head);
	free(u);
}

int
upgrade_fd(const struct upgrade *u)
{
	return u->fd;
}

static ssize_t
stream_result(CURLcode code, size_t n)
{
	if (code == CURLE_OK)
		return (ssize_t)n;
	errno = code == CURLE_AGAIN ? EAGAIN : EIO;
	return -1;
}

ssize_t
upgrade_recv(struct upgrade *u, void *p, size_t n)
{
	size_t early = buf_len(&u->in), got = 0;
	CURLcode code;

	if (early == 0) {
		code = curl_easy_recv(u->curl, p, n, &got);
		return stream_result(code, got);
	}
	if (n > early)
		n = early;
	memcpy(p, buf_data(&u->in), n);
	buf_consume(&u->in, n);
	return (ssize_t)n;
}

ssize_t
upgrade_send(struct upgrade *u, const void *p, size_t n)
{
	size_t sent = 0;
	CURLcode code = curl_easy_send(u->curl, p, n, &sent);

	return stream_result(code, sent);
}

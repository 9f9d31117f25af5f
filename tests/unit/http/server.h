/* server.h - an HTTP server with a small handler, for the tests of http*.c. */
#ifndef TESTS_HTTP_SERVER_H
#define TESTS_HTTP_SERVER_H

#include <signal.h>

#include "tests/unit/http/raw.h"

#include <event2/buffer.h>

#include "common/fd.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/http/http.h"
#include "tests/unit/test.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: h\r\n\r\n"
#define SERVER_BODY_MAX (2u << 20)
#define SERVER_BIG (16u << 20) /* an answer no socket buffer swallows */

struct server {
	struct event_base *base;
	struct http_server *http;
	uint16_t port;
	struct http_exchange *held[8];
	unsigned int nheld;
	unsigned int gone;
	unsigned int requests;
	uint64_t streamed; /* bytes given to streams */
	size_t pending_max;
};

static inline void
server_gone_cb(void *arg)
{
	((struct server *)arg)->gone++;
}

static inline void
server_hold(struct server *s, struct http_exchange *x)
{
	assert_true(s->nheld < ARRAY_LEN(s->held));
	s->held[s->nheld++] = x;
	http_hold(x, server_gone_cb, s);
}

/* An endless stream that stops at HTTP_STREAM_HIGH, as sse.c does. */
static inline void
server_fill(struct server *s, struct http_exchange *x)
{
	struct evbuffer *out = evbuffer_new();
	char event[4000];

	memset(event, 'x', sizeof(event));
	while (http_stream_pending(x) + evbuffer_get_length(out) <
	    HTTP_STREAM_HIGH) {
		(void)evbuffer_add(out, event, sizeof(event));
		s->streamed += sizeof(event);
	}
	http_stream_write(x, out);
	if (http_stream_pending(x) > s->pending_max)
		s->pending_max = http_stream_pending(x);
	evbuffer_free(out);
}

static inline void
server_writable_cb(void *arg)
{
	struct server *s = arg;

	if (s->nheld > 0)
		server_fill(s, s->held[0]);
}

static inline void
server_reply_file(struct http_exchange *x)
{
	struct err e;
	int fd = fd_memfd_sealed("file", "0123456789", 10, &e);

	assert_true(fd >= 0);
	http_reply_file(x, 200, "application/octet-stream", fd, 2, 5);
}

static inline void
server_request_cb(struct http_exchange *x, void *arg)
{
	const char *text, *path = http_path(x);
	int fault = http_fault(x, &text);
	struct server *s = arg;
	const void *body;
	size_t n;

	s->requests++;
	if (fault != 0) {
		http_error(x, fault, "bad_request", "%s", text);
	} else if (http_is_guest(x) && strcmp(path, "/probe") != 0) {
		http_busy(x);
	} else if (strcmp(path, "/echo") == 0) {
		body = http_body(x, &n);
		http_reply(x, 200, "text/plain", body, n);
	} else if (strcmp(path, "/hold") == 0) {
		server_hold(s, x);
	} else if (strcmp(path, "/watch") == 0) {
		server_hold(s, x);
		http_watch(x);
	} else if (strcmp(path, "/stream") == 0) {
		server_hold(s, x);
		http_stream_start(x, NULL);
	} else if (strcmp(path, "/flood") == 0) {
		server_hold(s, x);
		http_stream_start(x, server_writable_cb);
		server_fill(s, x);
	} else if (strcmp(path, "/big") == 0) {
		http_reply_owned(x, 200, "application/octet-stream",
		    xcalloc(1, SERVER_BIG), SERVER_BIG);
	} else if (strcmp(path, "/file") == 0) {
		server_reply_file(x);
	} else if (strcmp(path, "/query") == 0) {
		text = http_query(x, "a");
		text = text != NULL ? text : "none";
		http_reply(x, 200, "text/plain", text, strlen(text));
	} else if (strcmp(path, "/nothing") == 0) {
		http_reply(x, 204, NULL, NULL, 0);
	} else {
		http_reply(x, 200, "text/plain", path, strlen(path));
	}
}

static inline void
server_open(struct server *s, const struct http_limits *limits)
{
	struct err e;
	int fd;

	/* As main does: a client that left is an error of the write. */
	(void)signal(SIGPIPE, SIG_IGN);
	*s = (struct server){.base = event_base_new()};
	assert_non_null(s->base);
	s->http = http_server_new(s->base, limits, server_request_cb, s);
	fd = raw_listen(&s->port);
	assert_int_equal(http_server_listen(s->http, fd, &e), 0);
}

static inline void
server_close(struct server *s)
{
	http_server_free(s->http);
	for (unsigned int i = 0; i < 3; i++) /* libevent frees a turn later */
		(void)event_base_loop(s->base, EVLOOP_NONBLOCK);
	event_base_free(s->base);
}

static inline uint64_t
server_connections(const struct server *s)
{
	struct http_stats st;

	http_server_stats(s->http, &st);
	return st.connections;
}

#define SERVER_LIMITS(request, idle)                                           \
	{                                                                      \
		.head_max = 16384, .body_max = SERVER_BODY_MAX,                \
		.request_ms = (request), .idle_ms = (idle),                    \
		.connections_max = 1000, .waiting_memory = 16u << 20,          \
		.waiting_files = 64u << 20                                     \
	}

static const struct http_limits server_usual = SERVER_LIMITS(30000, 60000);
static const struct http_limits server_hasty = SERVER_LIMITS(300, 400);

/* ---- the server of a test, and a client */

#define GET(path) "GET " path " HTTP/1.1\r\nHost: h\r\n\r\n"

static struct server server;
static struct raw c;

static inline int
open_usual(void **state)
{
	(void)state;
	server_open(&server, &server_usual);
	raw_open(&c, server.port, 0);
	return 0;
}

static inline int
open_hasty(void **state)
{
	(void)state;
	server_open(&server, &server_hasty);
	raw_open(&c, server.port, 0);
	return 0;
}

static inline int
close_all(void **state)
{
	(void)state;
	raw_close(&c);
	server_close(&server);
	return 0;
}

#endif

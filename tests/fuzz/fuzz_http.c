/*
 * fuzz_http.c - whatever bytes a client can send to the listening socket
 *
 * The first byte says in how many pieces the rest arrives.  What is checked
 * besides memory: the server still has exactly the connections it should,
 * every answer begins as HTTP does, and nothing is left when the client goes.
 * Build: clang -fsanitize=fuzzer,address,undefined with libhttp and its
 * libraries.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include <event2/event.h>

#include "common/base.h"
#include "supervisor/http/http.h"
#include "supervisor/http/range.h"
#include "tests/fuzz/fuzz.h"

static struct event_base *base;
static struct http_server *server;
static struct sockaddr_in address;
static struct http_exchange *held;

static bool held_streaming;
static struct http_router *router;

static void
gone_cb(void *arg)
{
	held = NULL;
	http_drop(arg);
}

static bool
is_any(const char *text)
{
	return *text != '\0';
}

static const struct http_param_kind kinds[] = {{"any", is_any}};

static void
answer_path(struct http_exchange *x)
{
	const char *path = http_path(x), *rest;
	const char *text = http_header(x, HTTP_H_RANGE);
	const void *route;
	struct range r;

	if (http_route(x, router, &route) == HTTP_FIT_WHOLE) {
		rest = http_param(x, "path");
		REQUIRE(strncmp(rest, "../", 3) != 0 &&
		    strstr(rest, "/../") == NULL && rest[0] != '/');
	}
	rest = http_query(x, "a");
	REQUIRE(rest == NULL || strlen(rest) <= strlen(path) + 4096);
	if (text != NULL && range_parse(text, 100, &r) == RANGE_PART)
		REQUIRE(r.length > 0 && r.first + r.length <= 100);
	http_reply(x, 200, "text/plain", path, strlen(path));
}

static void
request_cb(struct http_exchange *x, void *arg)
{
	const char *text, *path = http_path(x);
	int fault = http_fault(x, &text);
	const void *body;
	size_t n;

	(void)arg;
	if (fault != 0) {
		http_error(x, fault, "bad", "%s", text);
		return;
	}
	REQUIRE(path[0] == '/' || strcmp(path, "*") == 0);
	REQUIRE(http_host(x) != NULL);
	if (path[1] == 's' || path[1] == 'h') {
		held = x;
		held_streaming = path[1] == 's';
		http_hold(x, gone_cb, x);
		if (held_streaming)
			http_stream_start(x, NULL);
	} else if (http_method(x) == HTTP_METHOD_POST) {
		body = http_body(x, &n);
		http_reply(x, 200, "text/plain", body, n);
	} else {
		answer_path(x);
	}
}

static void
start(void)
{
	const struct http_limits limits = {
	    2048, 4096, 60000, 60000, 16, 1u << 20, 1u << 20, NULL};
	socklen_t len = sizeof(address);
	struct err e;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	REQUIRE(fd >= 0);
	REQUIRE(bind(fd, (void *)&address, sizeof(address)) == 0);
	REQUIRE(listen(fd, 16) == 0);
	REQUIRE(getsockname(fd, (void *)&address, &len) == 0);
	router = http_router_new(kinds, ARRAY_LEN(kinds));
	http_router_add(router, "/", ":any/*path", router);
	base = event_base_new();
	REQUIRE(base != NULL);
	server = http_server_new(base, &limits, request_cb, NULL);
	REQUIRE(http_server_listen(server, fd, &e) == 0);
}

static void
turns(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		(void)event_base_loop(base, EVLOOP_NONBLOCK);
}

static uint64_t
connections(void)
{
	struct http_stats st;

	http_server_stats(server, &st);
	return st.connections;
}

static void
check_answer(int fd)
{
	char text[4096];
	ssize_t n = recv(fd, text, sizeof(text), MSG_DONTWAIT);

	REQUIRE(n <= 0 || (n >= 7 && memcmp(text, "HTTP/1.", 7) == 0));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct linger hard = {1, 0}; /* no ports left in TIME_WAIT */
	size_t pieces, at = 1, piece;
	int fd;

	if (size < 2)
		return 0;
	if (base == NULL)
		start();
	pieces = (size_t)data[0] % 4 + 1;
	piece = size / pieces + 1;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	REQUIRE(fd >= 0);
	REQUIRE(connect(fd, (void *)&address, sizeof(address)) == 0);
	for (; at < size; at += piece) {
		if (piece > size - at)
			piece = size - at;
		(void)!send(fd, data + at, piece, MSG_NOSIGNAL | MSG_DONTWAIT);
		turns(3);
		REQUIRE(connections() <= 1);
	}
	if (held != NULL && !held_streaming) {
		http_reply(held, 200, "text/plain", "late", 4);
		held = NULL;
		turns(3);
	}
	check_answer(fd);
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	(void)close(fd);
	for (unsigned int i = 0; i < 1000 && connections() > 0; i++) {
		turns(1);
		if (held != NULL && !held_streaming) {
			http_reply(held, 200, "text/plain", "late", 4);
			held = NULL;
		}
	}
	REQUIRE(connections() == 0);
	REQUIRE(held == NULL);
	return 0;
}

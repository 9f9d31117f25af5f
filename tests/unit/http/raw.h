/* raw.h - a client that sends bytes as they are, in the server's own loop. */
#ifndef TESTS_HTTP_RAW_H
#define TESTS_HTTP_RAW_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <event2/event.h>

#include "common/buf.h"
#include "common/clock.h"
#include "tests/unit/test.h"

#define RAW_PATIENCE_MS 30000

struct raw {
	int fd;
	bool ended; /* end of file, or a reset */
	bool reset;
	struct buf in;
};

/* One turn of the loop; a millisecond of rest when there is nothing to do. */
static inline void
raw_turn(struct event_base *base)
{
	(void)event_base_loop(base, EVLOOP_NONBLOCK);
	(void)poll(NULL, 0, 1);
}

static inline int
raw_listen(uint16_t *port)
{
	struct sockaddr_in sin = {
	    .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (void *)&sin, sizeof(sin)), 0);
	assert_int_equal(listen(fd, 4096), 0);
	assert_int_equal(getsockname(fd, (void *)&sin, &len), 0);
	*port = ntohs(sin.sin_port);
	return fd;
}

/* rcvbuf 0: the kernel's own choice */
static inline void
raw_open(struct raw *r, uint16_t port, int rcvbuf)
{
	struct sockaddr_in sin = {.sin_family = AF_INET,
	    .sin_port = htons(port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	*r = (struct raw){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	assert_true(r->fd >= 0);
	if (rcvbuf > 0)
		(void)setsockopt(
		    r->fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof(rcvbuf));
	assert_int_equal(connect(r->fd, (void *)&sin, sizeof(sin)), 0);
	assert_int_equal(fcntl(r->fd, F_SETFL, O_NONBLOCK), 0);
}

static inline void
raw_close(struct raw *r)
{
	if (r->fd >= 0)
		(void)close(r->fd);
	r->fd = -1;
	buf_clear(&r->in);
}

/* What the socket takes; the number of bytes. */
static inline size_t
raw_try_send(struct raw *r, const void *p, size_t n)
{
	ssize_t sent = send(r->fd, p, n, MSG_NOSIGNAL);

	return sent < 0 ? 0 : (size_t)sent;
}

static inline void
raw_send(struct raw *r, struct event_base *base, const char *text)
{
	uint64_t until = clock_mono_ms() + RAW_PATIENCE_MS;
	size_t n = strlen(text), at = 0;

	while (at < n && clock_mono_ms() < until) {
		size_t sent = raw_try_send(r, text + at, n - at);

		at += sent;
		if (sent == 0)
			raw_turn(base);
	}
	assert_int_equal(at, n);
}

static inline void
raw_receive(struct raw *r)
{
	char chunk[65536];
	ssize_t n;

	while ((n = recv(r->fd, chunk, sizeof(chunk), 0)) > 0)
		assert_int_equal(buf_append(&r->in, chunk, (size_t)n), 0);
	if (n == 0 || (n < 0 && errno != EAGAIN))
		r->ended = true;
	if (n < 0 && errno == ECONNRESET)
		r->reset = true;
}

/* What came so far, as a string. */
static inline const char *
raw_text(struct raw *r)
{
	assert_int_equal(buf_append(&r->in, "", 1), 0);
	r->in.end--;
	return (const char *)buf_data(&r->in);
}

static inline bool
raw_has(struct raw *r, const char *text)
{
	return buf_len(&r->in) > 0 &&
	    memmem(buf_data(&r->in), buf_len(&r->in), text, strlen(text)) !=
	    NULL;
}

static inline size_t
raw_count(struct raw *r, const char *text)
{
	const char *p = raw_text(r);
	size_t n = 0;

	while ((p = strstr(p, text)) != NULL) {
		n++;
		p += strlen(text);
	}
	return n;
}

static inline void
raw_wait_for(struct raw *r, struct event_base *base, const char *text)
{
	uint64_t until = clock_mono_ms() + RAW_PATIENCE_MS;

	while (!raw_has(r, text) && !r->ended && clock_mono_ms() < until) {
		raw_turn(base);
		raw_receive(r);
	}
	if (!raw_has(r, text))
		fail_msg("wanted %s, got: %.1500s", text, raw_text(r));
}

static inline void
raw_wait_end(struct raw *r, struct event_base *base)
{
	uint64_t until = clock_mono_ms() + RAW_PATIENCE_MS;

	while (!r->ended && clock_mono_ms() < until) {
		raw_turn(base);
		raw_receive(r);
	}
	if (!r->ended)
		fail_msg("the connection stays open: %.1500s", raw_text(r));
}

#define raw_wait_until(base, condition)                                        \
	do {                                                                   \
		uint64_t raw_until = clock_mono_ms() + RAW_PATIENCE_MS;        \
		while (!(condition) && clock_mono_ms() < raw_until)            \
			raw_turn(base);                                        \
		assert_true(condition);                                        \
	} while (0)

/* Send, wait for text, forget what came. */
static inline void
raw_ask(struct raw *r, struct event_base *base, const char *request,
    const char *text)
{
	raw_send(r, base, request);
	raw_wait_for(r, base, text);
	buf_consume(&r->in, buf_len(&r->in));
}

static inline void
raw_allow_descriptors(rlim_t n)
{
	struct rlimit rl;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &rl), 0);
	if (rl.rlim_cur < n) {
		rl.rlim_cur = n < rl.rlim_max ? n : rl.rlim_max;
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &rl), 0);
	}
}

#endif

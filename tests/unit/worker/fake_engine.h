/*
 * fake_engine.h - an engine that can misbehave as no real one would on demand
 *
 * Listens at a Unix socket on the test's loop.  answer decides by method and
 * path what is written back, byte for byte; NULL: nothing, ever.
 */
#ifndef TESTS_WORKER_FAKE_ENGINE_H
#define TESTS_WORKER_FAKE_ENGINE_H

#include <signal.h>
#include <sys/un.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/ssl.h>

#include "tests/unit/test.h"
#include "tests/unit/worker/fixture.h"

struct fake_engine {
	struct event_base *base;
	int fd;
	struct event *on_accept;
	char path[64];
	const char *(*answer)(
	    struct fake_engine *f, const char *method, const char *path);
	bool close_after; /* this connection, when the answer is out */
	unsigned int asked;
	char last[4096];          /* "METHOD path" */
	struct bufferevent *from; /* and by whom */
	char head[4096];          /* of the last request, without its end */
	char body[4096];          /* likewise, what fits */
	struct bufferevent *conns[64];
	size_t nconns;
	SSL_CTX *tls; /* NULL: plain text */
};

/* fake_engine_reply - an answer of this status and body; good until the next
 * call */
static inline const char *
fake_engine_reply(int status, const char *body)
{
	static char *kept;

	free(kept);
	kept = xasprintf("HTTP/1.1 %d X\r\nContent-Type: application/json\r\n"
			 "Content-Length: %zu\r\n\r\n%s",
	    status, strlen(body), body);
	return kept;
}

static inline void
fake_engine_drop(struct fake_engine *f, struct bufferevent *bev)
{
	for (size_t i = 0; i < f->nconns; i++)
		if (f->conns[i] == bev)
			f->conns[i] = f->conns[--f->nconns];
	bufferevent_free(bev);
}

static inline void
fake_engine_written_cb(struct bufferevent *bev, void *arg)
{
	struct fake_engine *f = arg;

	if (f->close_after &&
	    evbuffer_get_length(bufferevent_get_output(bev)) == 0) {
		f->close_after = false;
		fake_engine_drop(f, bev);
	}
}

static inline void
fake_engine_keep_body(struct fake_engine *f, struct evbuffer *in, size_t n)
{
	size_t kept = n < sizeof(f->body) ? n : sizeof(f->body) - 1;

	(void)evbuffer_remove(in, f->body, kept);
	f->body[kept] = '\0';
	(void)evbuffer_drain(in, n - kept);
}

/* One whole request at the front of the buffer, or false. */
static inline bool
fake_engine_take(
    struct fake_engine *f, struct evbuffer *in, char *method, char *path)
{
	struct evbuffer_ptr end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
	size_t length = 0, all = evbuffer_get_length(in);
	char *head, *at;

	if (end.pos < 0)
		return false;
	head = xcalloc(1, (size_t)end.pos + 1);
	(void)evbuffer_copyout(in, head, (size_t)end.pos);
	at = strstr(head, "Content-Length: ");
	if (at != NULL)
		length = strtoul(at + 16, NULL, 10);
	assert_int_equal(sscanf(head, "%15s %4000s", method, path), 2);
	(void)snprintf(f->head, sizeof(f->head), "%s", head);
	free(head);
	if (all < (size_t)end.pos + 4 + length)
		return false;
	(void)evbuffer_drain(in, (size_t)end.pos + 4);
	fake_engine_keep_body(f, in, length);
	return true;
}

static inline void
fake_engine_read_cb(struct bufferevent *bev, void *arg)
{
	struct fake_engine *f = arg;
	char method[16], path[4001];
	const char *s;

	while (fake_engine_take(f, bufferevent_get_input(bev), method, path)) {
		f->asked++;
		f->from = bev;
		(void)snprintf(
		    f->last, sizeof(f->last), "%s %.4000s", method, path);
		s = f->answer(f, method, path);
		if (s != NULL)
			(void)bufferevent_write(bev, s, strlen(s));
	}
}

static inline void
fake_engine_event_cb(struct bufferevent *bev, short what, void *arg)
{
	if ((what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) != 0)
		fake_engine_drop(arg, bev);
}

static inline void
fake_engine_accept_cb(evutil_socket_t fd, short what, void *arg)
{
	struct fake_engine *f = arg;
	int c = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct bufferevent *bev;

	(void)what;
	if (c == -1)
		return;
	if (f->tls != NULL)
		bev =
		    bufferevent_openssl_socket_new(f->base, c, SSL_new(f->tls),
			BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
	else
		bev = bufferevent_socket_new(f->base, c, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(bev, fake_engine_read_cb, fake_engine_written_cb,
	    fake_engine_event_cb, f);
	(void)bufferevent_enable(bev, EV_READ | EV_WRITE);
	assert_true(f->nconns < ARRAY_LEN(f->conns));
	f->conns[f->nconns++] = bev;
}

/* fake_engine_accept - at fd, which is bound */
static inline void
fake_engine_accept(struct fake_engine *f)
{
	assert_int_equal(listen(f->fd, 64), 0);
	f->on_accept = event_new(
	    f->base, f->fd, EV_READ | EV_PERSIST, fake_engine_accept_cb, f);
	assert_int_equal(event_add(f->on_accept, NULL), 0);
}

/* fake_engine_listen - at its path; anew after fake_engine_clear */
static inline void
fake_engine_listen(struct fake_engine *f)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", f->path);
	(void)unlink(f->path);
	f->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(
	    bind(f->fd, (const struct sockaddr *)&sa, sizeof(sa)), 0);
	fake_engine_accept(f);
}

static inline void
fake_engine_init(struct fake_engine *f, struct event_base *base)
{
	static int number;

	memset(f, 0, sizeof(*f));
	/* Who asked may be gone when it answers. */
	(void)signal(SIGPIPE, SIG_IGN);
	f->base = base;
	(void)snprintf(f->path, sizeof(f->path), "/tmp/fake-engine-%ld-%d",
	    (long)getpid(), ++number);
	fake_engine_listen(f);
}

static inline void
fake_engine_clear(struct fake_engine *f)
{
	while (f->nconns > 0)
		fake_engine_drop(f, f->conns[0]);
	event_free(f->on_accept);
	(void)close(f->fd);
	(void)unlink(f->path);
}

#endif

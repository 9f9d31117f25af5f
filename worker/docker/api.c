/*
 * A call is its request's bytes, a connection for as long as it is under way,
 * and one timer.  It ends by its whole answer, by its time, or by what is
 * wrong with its connection; on_done comes from the loop.
 *
 * A connection serves one call at a time and is kept for the next (newest
 * first).  The engine may close a kept one at any moment: one that broke
 * before a byte of its answer came gives its call to a new connection, once.
 *
 * Calls are started and cancelled in callbacks of other calls and of
 * themselves.  So a connection that ends is taken out of everything at once
 * and freed in a later turn (conn_drop, on_sweep), and who calls out looks
 * afterwards whether its connection and its call are still each other's.
 */
#include "worker/docker/api.h"

#include <errno.h>
#include <stdio.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/docker/operation.h"
#include "worker/docker/reply.h"

#define CONNECT_MS 2000 /* while the engine's queue is full */
#define CONNECT_AGAIN_MS 10
#define KEPT_CONNECTIONS 4
#define READ_BYTES 65536 /* in a turn of the loop */
#define BODY_MAX 65536   /* of calls that name no limit */

enum call_outcome {
	CALL_WHOLE,
	CALL_BODY_LARGE,
	CALL_HEADERS_LARGE,
	CALL_LATE,
	CALL_NOBODY, /* at the socket */
	CALL_BROKEN,
	CALL_UNSENDABLE,
	CALL_ABANDONED /* by api_free */
};

struct api_call {
	struct api *h;
	struct api_conn *conn; /* NULL: not yet, or not any more */
	char *path;            /* for texts */
	const char *method;
	struct buf out; /* the request; kept whole, it may be sent again */
	size_t sent;
	struct timer *timer;
	uint32_t timeout_ms;
	uint64_t started_us;
	struct buf in;
	enum call_outcome outcome; /* of one that never got a connection */
	int number;                /* errno with it, 0: none */
	void (*on_data)(const uint8_t *, size_t, void *);
	void (*on_done)(const struct api_answer *, void *);
	void *arg;
	TAILQ_ENTRY(api_call) link;
};
TAILQ_HEAD(api_calls, api_call);

struct api_conn {
	struct api *h;
	int fd;
	struct event *on_read;
	struct event *on_write;
	struct api_call *call; /* NULL: kept, or dropped */
	struct reply reply;
	bool used; /* it has brought an answer before */
	bool told; /* something of this answer has come */
	bool last; /* no other call may have it */
	TAILQ_ENTRY(api_conn) link;
};
TAILQ_HEAD(api_conns, api_conn);

struct api {
	struct event_base *base;
	char *socket;
	bool freeing;
	uint8_t *spare;              /* what was read just now */
	struct api_conns busy, kept; /* kept: the newest first */
	struct api_conns gone;       /* freed by sweep */
	struct timer *sweep;
	struct api_calls calls;
};

/* ---- connections */

static void
conn_free(struct api_conn *k)
{
	event_free(k->on_read);
	event_free(k->on_write);
	free(k);
}

static void
gone_free(struct api *h)
{
	struct api_conn *k;

	while ((k = TAILQ_FIRST(&h->gone)) != NULL) {
		TAILQ_REMOVE(&h->gone, k, link);
		conn_free(k);
	}
}

static void
sweep_cb(void *arg)
{
	gone_free(arg);
}

/* Its call and it part. */
static void
conn_part(struct api_conn *k)
{
	k->call->conn = NULL;
	k->call = NULL;
	TAILQ_REMOVE(&k->h->busy, k, link);
}

static void
conn_drop(struct api_conn *k)
{
	struct api *h = k->h;

	if (k->call != NULL)
		conn_part(k);
	else
		TAILQ_REMOVE(&h->kept, k, link);
	(void)event_del(k->on_read);
	(void)event_del(k->on_write);
	(void)close(k->fd);
	k->fd = -1;
	TAILQ_INSERT_TAIL(&h->gone, k, link);
	if (!timer_is_set(h->sweep))
		timer_set_ms(h->sweep, 0);
}

static void
kept_drop(struct api *h, size_t most)
{
	struct api_conn *k, *next;
	size_t n = 0;

	for (k = TAILQ_FIRST(&h->kept); k != NULL; k = next) {
		next = TAILQ_NEXT(k, link);
		if (++n > most)
			conn_drop(k);
	}
}

/* After a whole answer. */
static void
conn_keep(struct api_conn *k)
{
	struct api *h = k->h;

	if (!k->reply.keep || k->last ||
	    k->call->sent < buf_len(&k->call->out)) {
		conn_drop(k);
		return;
	}
	k->used = true;
	conn_part(k);
	TAILQ_INSERT_HEAD(&h->kept, k, link);
	kept_drop(h, KEPT_CONNECTIONS);
}

/* Nothing to read, not even its end. */
static bool
conn_is_alive(const struct api_conn *k)
{
	char c;

	return recv(k->fd, &c, 1, MSG_PEEK) == -1 && errno == EAGAIN;
}

static struct api_conn *
conn_take(struct api *h)
{
	struct api_conn *k;

	while ((k = TAILQ_FIRST(&h->kept)) != NULL) {
		if (conn_is_alive(k)) {
			TAILQ_REMOVE(&h->kept, k, link);
			return k;
		}
		conn_drop(k);
	}
	return NULL;
}

static void conn_read_cb(evutil_socket_t fd, short what, void *arg);
static void conn_write_cb(evutil_socket_t fd, short what, void *arg);

static struct event *
conn_event(struct api_conn *k, short what, event_callback_fn cb)
{
	struct event *ev = event_new(k->h->base, k->fd, what, cb, k);

	if (ev == NULL)
		fatal(EXIT_MEMORY, "no memory for an event");
	return ev;
}

/* The socket, or -1 with errno. */
static int
engine_connect(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd, number;

	if (strlen(path) >= sizeof(sa.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(sa.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return -1;
	if (connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) == 0)
		return fd;
	number = errno;
	(void)close(fd);
	errno = number;
	return -1;
}

static struct api_conn *
conn_open(struct api *h)
{
	int fd = engine_connect(h->socket);
	struct api_conn *k;

	if (fd == -1)
		return NULL;
	k = xcalloc(1, sizeof(*k));
	k->h = h;
	k->fd = fd;
	k->on_read = conn_event(k, EV_READ | EV_PERSIST, conn_read_cb);
	k->on_write = conn_event(k, EV_WRITE, conn_write_cb);
	(void)event_add(k->on_read, NULL);
	return k;
}

/* ---- the end of a call */

static void
call_free(struct api_call *c)
{
	TAILQ_REMOVE(&c->h->calls, c, link);
	if (c->conn != NULL)
		conn_drop(c->conn);
	timer_free(c->timer);
	buf_clear(&c->out);
	buf_clear(&c->in);
	free(c->path);
	free(c);
}

static int
call_explain_nobody(const struct api_call *c, struct err *e)
{
	if (c->number == EACCES || c->number == EPERM)
		return err_set(e, ERR_BACKEND,
		    "no permission on the engine's socket %s: let the "
		    "worker's user into its group (usually docker)",
		    c->h->socket);
	return err_set(e, ERR_BACKEND,
	    "no Docker engine at %s: %s; start it or set DOCKER_HOST",
	    c->h->socket, c->number != 0 ? strerror(c->number) : "no answer");
}

/* A text that says what a person can do about it. */
static int
call_explain(const struct api_call *c, enum call_outcome how, const char *why,
    struct err *e)
{
	switch (how) {
	case CALL_BODY_LARGE:
	case CALL_HEADERS_LARGE:
		return err_set(e, ERR_LIMIT,
		    "the engine's answer to %s %.100s is larger than %zu bytes",
		    c->method, c->path,
		    how == CALL_BODY_LARGE ? c->in.max : REPLY_HEADERS_MAX);
	case CALL_LATE:
		return err_set(e, ERR_BACKEND,
		    "the engine at %s did not answer %s %.100s within %u ms",
		    c->h->socket, c->method, c->path, c->timeout_ms);
	case CALL_NOBODY:
		return call_explain_nobody(c, e);
	case CALL_UNSENDABLE:
		return err_set(e, ERR_INVAL,
		    "a path for the engine has a blank or a control character");
	case CALL_ABANDONED:
		return err_set(e, ERR_WRONG_STATE, "the worker is ending");
	case CALL_WHOLE:
	case CALL_BROKEN:
	default:
		return err_set(e, ERR_BACKEND,
		    "the engine at %s broke off its answer to %s %.100s: %s",
		    c->h->socket, c->method, c->path, why);
	}
}

/* The NUL behind an answer. */
static void
finish_body(struct buf *in)
{
	uint8_t *end;

	buf_set_max(in, in->max + 1);
	end = buf_reserve(in, 1);
	if (end == NULL)
		fatal(EXIT_MEMORY, "no room for an answer's end");
	*end = '\0';
}

/* status and why as the outcome has them; the call is gone when it tells. */
static void
call_end(
    struct api_call *c, enum call_outcome how, long status, const char *why)
{
	void (*on_done)(const struct api_answer *, void *) = c->on_done;
	struct api_answer a = {.status = status};
	void *arg = c->arg;
	struct err e;
	struct buf in;

	a.took_us = clock_mono_us() - c->started_us;
	operation_ended(operation_of(c->method, c->path),
	    how == CALL_WHOLE ? status : 0, a.took_us);
	if (how != CALL_WHOLE)
		a.rc = call_explain(c, how, why, &e);
	a.why = &e;
	in = c->in;
	buf_init(&c->in, 0);
	call_free(c);
	if (a.rc == 0) {
		finish_body(&in);
		a.body = (const char *)buf_data(&in);
		a.len = buf_len(&in);
	}
	on_done(&a, arg);
	buf_clear(&in);
}

/* ---- sending */

/* What cannot be sent is told by the end of the connection, behind what the
 * engine may have said before it. */
static void
conn_send(struct api_conn *k)
{
	struct api_call *c = k->call;
	ssize_t n;

	while (c->sent < buf_len(&c->out)) {
		n = send(k->fd, buf_data(&c->out) + c->sent,
		    buf_len(&c->out) - c->sent, MSG_NOSIGNAL);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && errno == EAGAIN)
			(void)event_add(k->on_write, NULL);
		if (n == -1)
			return;
		c->sent += (size_t)n;
	}
}

static void
conn_write_cb(evutil_socket_t fd, short what, void *arg)
{
	struct api_conn *k = arg;

	(void)fd;
	(void)what;
	if (k->call != NULL)
		conn_send(k);
}

/* ---- a call's way to a connection */

static bool
reply_body_cb(unsigned int status, const uint8_t *p, size_t n, void *arg)
{
	struct api_conn *k = arg;
	struct api_call *c = k->call;

	if (c->on_data != NULL && status >= 200 && status < 300) {
		c->on_data(p, n, c->arg);
		return k->call == c; /* else it was cancelled */
	}
	return buf_append(&c->in, p, n) == 0;
}

static uint64_t
call_age_ms(const struct api_call *c)
{
	return (clock_mono_us() - c->started_us) / 1000;
}

/* From the loop: who starts a call is not ready to be told. */
static void
call_end_soon(struct api_call *c, enum call_outcome how, int number)
{
	c->outcome = how;
	c->number = number;
	timer_set_ms(c->timer, 0);
}

static void
call_wait(struct api_call *c)
{
	uint64_t age = call_age_ms(c);

	if (c->timeout_ms == 0)
		timer_stop(c->timer);
	else
		timer_set_ms(
		    c->timer, age < c->timeout_ms ? c->timeout_ms - age : 0);
}

static void
call_connect(struct api_call *c)
{
	struct api *h = c->h;
	struct api_conn *k = conn_take(h);

	if (k == NULL)
		k = conn_open(h);
	if (k == NULL && errno == EAGAIN && call_age_ms(c) < CONNECT_MS) {
		timer_set_ms(c->timer, CONNECT_AGAIN_MS);
		return;
	}
	if (k == NULL) {
		call_end_soon(c, CALL_NOBODY, errno == EAGAIN ? 0 : errno);
		return;
	}
	TAILQ_INSERT_TAIL(&h->busy, k, link);
	k->call = c;
	k->told = false;
	c->conn = k;
	c->sent = 0;
	reply_init(&k->reply, reply_body_cb, k);
	call_wait(c);
	conn_send(k);
}

static void
call_timer_cb(void *arg)
{
	struct api_call *c = arg;

	if (c->conn != NULL)
		call_end(c, CALL_LATE, 0, NULL);
	else if (c->outcome != CALL_WHOLE)
		call_end(c, c->outcome, 0, NULL);
	else
		call_connect(c);
}

/* ---- what comes in */

static void
conn_end_call(struct api_conn *k, enum call_outcome how, const char *why)
{
	struct api_call *c = k->call;
	long status = (long)reply_status(&k->reply);

	if (how == CALL_WHOLE)
		conn_keep(k);
	else
		conn_drop(k);
	call_end(c, how, status, why);
}

static void
conn_fed(struct api_conn *k, enum reply_state state, const char *why)
{
	switch (state) {
	case REPLY_WHOLE:
		conn_end_call(k, CALL_WHOLE, NULL);
		break;
	case REPLY_STOPPED:
		conn_end_call(k, CALL_BODY_LARGE, NULL);
		break;
	case REPLY_HEADERS:
		conn_end_call(k, CALL_HEADERS_LARGE, NULL);
		break;
	case REPLY_BROKEN:
		conn_end_call(k, CALL_BROKEN, why);
		break;
	case REPLY_MORE:
	default:
		break;
	}
}

/* The engine closed it, or the kernel did (number). */
static void
conn_lost(struct api_conn *k, int number)
{
	struct api_call *c = k->call;
	enum reply_state state;

	if (k->used && !k->told) {
		conn_drop(k);
		kept_drop(c->h, 0); /* an engine that started anew */
		call_connect(c);
		return;
	}
	state = number == 0 ? reply_end(&k->reply) : REPLY_BROKEN;
	if (k->call == c)
		conn_fed(k, state,
		    number == 0 ? reply_why(&k->reply) : strerror(number));
}

static void
conn_read_cb(evutil_socket_t fd, short what, void *arg)
{
	struct api_conn *k = arg;
	struct api_call *c = k->call;
	ssize_t n = recv(fd, k->h->spare, READ_BYTES, 0);
	int number = n == -1 ? errno : 0;
	enum reply_state state;

	(void)what;
	if (number == EINTR || number == EAGAIN)
		return;
	if (c == NULL) { /* kept: its end, or what nobody asked for */
		conn_drop(k);
		return;
	}
	if (n <= 0) {
		conn_lost(k, number);
		return;
	}
	k->told = true;
	state = reply_feed(&k->reply, k->h->spare, (size_t)n);
	if (k->call == c)
		conn_fed(k, state, reply_why(&k->reply));
}

/* ---- public */

struct api *
api_new(struct event_base *base)
{
	struct api *h = xcalloc(1, sizeof(*h));

	h->base = base;
	h->socket = xstrdup("");
	h->spare = xmalloc(READ_BYTES);
	h->sweep = timer_new(base, sweep_cb, h);
	TAILQ_INIT(&h->busy);
	TAILQ_INIT(&h->kept);
	TAILQ_INIT(&h->gone);
	TAILQ_INIT(&h->calls);
	return h;
}

void
api_free(struct api *h)
{
	struct api_call *c;

	if (h == NULL)
		return;
	h->freeing = true;
	while ((c = TAILQ_FIRST(&h->calls)) != NULL)
		call_end(c, CALL_ABANDONED, 0, NULL);
	kept_drop(h, 0);
	gone_free(h);
	timer_free(h->sweep);
	free(h->spare);
	free(h->socket);
	free(h);
}

void
api_set_socket(struct api *h, const char *path)
{
	struct api_conn *k;

	if (strcmp(h->socket, path) == 0)
		return;
	free(h->socket);
	h->socket = xstrdup(path);
	kept_drop(h, 0);
	TAILQ_FOREACH (k, &h->busy, link)
		k->last = true;
}

/* A blank or a control character would end the path, or its line. */
static bool
path_is_plain(const char *s)
{
	for (; *s != '\0'; s++)
		if ((unsigned char)*s <= ' ' || *s == 0x7f)
			return false;
	return true;
}

static void
call_write(struct api_call *c, const struct api_ask *ask)
{
	const char *type = ask->content_type;
	int rc = buf_printf(
	    &c->out, "%s %s HTTP/1.1\r\nHost: engine\r\n", c->method, c->path);

	if (rc == 0 && strcmp(c->method, "GET") != 0)
		rc = buf_printf(&c->out,
		    "Content-Type: %s\r\nContent-Length: %zu\r\n",
		    type != NULL ? type : "application/json", ask->body_len);
	if (rc == 0)
		rc = buf_append(&c->out, "\r\n", 2);
	if (rc == 0 && ask->body_len > 0)
		rc = buf_append(&c->out, ask->body, ask->body_len);
	if (rc != 0)
		fatal(EXIT_BUG, "no room for a request to the engine");
}

struct api_call *
api_start(struct api *h, const struct api_ask *ask)
{
	struct api_call *c = xcalloc(1, sizeof(*c));

	c->h = h;
	c->method = ask->method;
	c->path = xstrndup(ask->path, API_PATH_MAX);
	c->timeout_ms = ask->timeout_ms;
	c->started_us = clock_mono_us();
	c->on_data = ask->on_data;
	c->on_done = ask->on_done;
	c->arg = ask->arg;
	c->timer = timer_new(h->base, call_timer_cb, c);
	buf_init(&c->in, ask->max_body != 0 ? ask->max_body : BODY_MAX);
	buf_init(&c->out, 0);
	call_write(c, ask);
	TAILQ_INSERT_TAIL(&h->calls, c, link);
	if (h->freeing)
		return c; /* its end comes */
	if (path_is_plain(c->path))
		call_connect(c);
	else
		call_end_soon(c, CALL_UNSENDABLE, 0);
	return c;
}

void
api_cancel(struct api_call *c)
{
	call_free(c);
}

int
api_escape(struct buf *b, const char *s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLM"
				    "NOPQRSTUVWXYZ0123456789-._~";

	for (; *s != '\0'; s++) {
		int rc = strchr(plain, *s) != NULL ?
		    buf_append(b, s, 1) :
		    buf_printf(b, "%%%02X", (unsigned char)*s);

		if (rc != 0)
			return -1;
	}
	return 0;
}

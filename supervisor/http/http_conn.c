/*
 * http_conn.c - connections beside evhttp's own
 *
 * evhttp 2.1 has no hook for a new connection but the one that makes its
 * bufferevent, and no limit in time but one per read, which a byte a second
 * defeats.  So each bufferevent is made here, watched by callbacks on its two
 * buffers, and adopted in the same loop turn: by then it bears evhttp's
 * connection as its callback argument.
 *
 *	FRESH --bytes--> READING --whole--> BUSY --answer--> WRITING --out--+
 *	                    ^                 |                             |
 *	                    |                 +--> STREAM --end--> WRITING  |
 *	                    +-------bytes------- IDLE <--------------------+
 *
 * FRESH and READING end after request_ms, IDLE and a WRITING that makes no
 * progress after idle_ms.  BUSY and STREAM have no limit of ours: there the
 * handler's word counts.
 */
#include "supervisor/http/http_int.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <event2/bufferevent_struct.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"

/* ---- requests that are not whole, all of them together
 *
 * What came of a request counts until a handler has it, also the chunks of a
 * body that evhttp has put aside.  Beyond HTTP_INPUT_TOTAL_MAX the request that
 * is under way longest is refused, of those with more than HTTP_INPUT_FAIR.
 */

static void
input_count(struct http_conn *c, size_t n)
{
	c->server->input_bytes += n;
	c->server->input_bytes -= c->input_bytes;
	c->input_bytes = n;
}

static struct http_conn *
input_longest(const struct http_server *s)
{
	struct http_conn *c, *found = NULL;

	TAILQ_FOREACH (c, &s->conns, link)
		if (c->input_bytes > HTTP_INPUT_FAIR &&
		    c->state <= HTTP_CONN_READING &&
		    (found == NULL ||
			c->request_since_ms < found->request_since_ms))
			found = c;
	return found;
}

static struct http_conn *
input_take_excess(struct http_server *s)
{
	struct http_conn *c = NULL;

	if (s->input_bytes > HTTP_INPUT_TOTAL_MAX)
		c = input_longest(s);
	if (c != NULL)
		input_count(c, 0);
	return c;
}

/* ---- deadlines */

static void
conn_arm(struct http_conn *c, uint64_t now_ms)
{
	uint64_t left = c->deadline_ms > now_ms ? c->deadline_ms - now_ms : 0;
	const struct timeval tv = timer_timeval(left);

	(void)evtimer_add(&c->timer, &tv);
	c->armed_ms = c->deadline_ms;
}

/* The timer is only touched when it would fire too late: on a busy connection
 * that is once per request_ms and not twice per request. */
static void
conn_set_deadline(struct http_conn *c, uint32_t in_ms)
{
	uint64_t now = clock_mono_ms();

	c->deadline_ms = now + in_ms;
	if (c->armed_ms == 0 || c->deadline_ms < c->armed_ms)
		conn_arm(c, now);
}

/* Of a large answer over TLS libevent says nothing until all is taken. */
static bool
conn_moves(struct http_conn *c)
{
	uint64_t written = http_tls_written(c);
	bool moves = c->drained != c->drained_seen || written != c->tls_seen;

	c->drained_seen = c->drained;
	c->tls_seen = written;
	return moves;
}

static void
conn_expired(struct http_conn *c)
{
	switch (c->state) {
	case HTTP_CONN_WRITING:
		if (conn_moves(c)) {
			conn_set_deadline(c, c->server->limits.idle_ms);
			return;
		}
		evhttp_connection_free(c->evcon);
		return;
	case HTTP_CONN_FRESH:
	case HTTP_CONN_IDLE:
		evhttp_connection_free(c->evcon);
		return;
	case HTTP_CONN_READING:
		http_refuse_now(c, 408);
		return;
	case HTTP_CONN_BUSY:
	case HTTP_CONN_STREAM:
	default:
		return;
	}
}

static void
conn_timer_cb(evutil_socket_t fd, short what, void *arg)
{
	struct http_conn *c = arg;
	uint64_t now = clock_mono_ms();

	(void)fd;
	(void)what;
	c->armed_ms = 0;
	if (c->refuse > 0 && c->state <= HTTP_CONN_READING)
		http_refuse_now(c, c->refuse);
	else if (c->refuse != 0)
		evhttp_connection_free(c->evcon);
	else if (c->deadline_ms != 0 && now < c->deadline_ms)
		conn_arm(c, now);
	else if (c->deadline_ms != 0)
		conn_expired(c);
}

/* ---- who has a place when connections_max are taken
 *
 * A connection that rests (nothing came yet, or between two requests) gives
 * its place to a new one, that which rests longest first.  Left alone are one
 * whose bytes we have not read yet, because it is about to ask, and one that
 * has come within PLACES_YOUNG_MS and is in its TLS handshake, in which both
 * sides take turns.  When nobody rests, a request that is on its way in and
 * of which nothing came for PLACES_SILENT_MS is answered with 408, the one
 * that is silent longest first.  Else the next HTTP_GUESTS_MAX come as
 * guests: what they ask for is the handler's choice (http_is_guest), so that
 * a probe is answered even then.
 */

#define PLACES_YOUNG_MS 1000
#define PLACES_SILENT_MS 2000
#define PLACES_LOOKS_MAX 64 /* connections asked for unread bytes */

static struct http_conn_list *
list_of(struct http_conn *c)
{
	return c->rests == HTTP_RESTS_SILENT ? &c->server->resting :
					       &c->server->unfinished;
}

static void
places_leave(struct http_conn *c)
{
	if (c->rests != HTTP_RESTS_NOT)
		TAILQ_REMOVE(list_of(c), c, rest_link);
	c->rests = HTTP_RESTS_NOT;
}

/* From now on it waits for its client, as its state says. */
static void
places_rest(struct http_conn *c)
{
	places_leave(c);
	c->rests = c->state == HTTP_CONN_READING ? HTTP_RESTS_UNFINISHED :
						   HTTP_RESTS_SILENT;
	c->rests_since_ms = clock_mono_ms();
	TAILQ_INSERT_TAIL(list_of(c), c, rest_link);
}

/* What the kernel has of it: the loop reads that in its next turn. */
static bool
has_unread(const struct http_conn *c)
{
	char byte;

	return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* The lists are in the order in which connections came to rest. */
static struct http_conn *
oldest_of(struct http_conn_list *list, const struct http_conn *not_this)
{
	uint64_t now = clock_mono_ms();
	unsigned int looks = 0;
	struct http_conn *c;

	TAILQ_FOREACH (c, list, rest_link) {
		if (c->rests == HTTP_RESTS_UNFINISHED &&
		    now < c->rests_since_ms + PLACES_SILENT_MS)
			return NULL;
		if (c == not_this ||
		    (c->shakes && now < c->rests_since_ms + PLACES_YOUNG_MS))
			continue;
		if (!has_unread(c))
			return c;
		if (++looks == PLACES_LOOKS_MAX)
			return NULL;
	}
	return NULL;
}

/* False: nobody's can be taken. */
static bool
make_room(struct http_server *s, const struct http_conn *c)
{
	struct http_conn *old = oldest_of(&s->resting, c);

	if (old != NULL) {
		evhttp_connection_free(old->evcon);
	} else {
		old = oldest_of(&s->unfinished, c);
		if (old == NULL)
			return false;
		http_refuse_now(old, 408);
	}
	s->stats.displaced++;
	return true;
}

/* ---- the state of a connection */

static void
conn_set_read_max(struct http_conn *c, size_t max)
{
	bufferevent_setwatermark(c->bev, EV_READ, 0, max);
}

void
http_conn_set_state(struct http_conn *c, enum http_conn_state state)
{
	const struct http_limits *l = &c->server->limits;

	c->state = state;
	if (state > HTTP_CONN_READING || state == HTTP_CONN_IDLE)
		input_count(
		    c, evbuffer_get_length(bufferevent_get_input(c->bev)));
	if (state <= HTTP_CONN_READING)
		places_rest(c);
	else
		places_leave(c);
	switch (state) {
	case HTTP_CONN_FRESH:
	case HTTP_CONN_READING:
		conn_set_deadline(c, l->request_ms);
		break;
	case HTTP_CONN_IDLE:
		c->request_bytes = 0;
		http_head_begin(&c->head);
		conn_set_read_max(
		    c, l->head_max + l->body_max + HTTP_READ_SLACK);
		conn_set_deadline(c, l->idle_ms);
		break;
	case HTTP_CONN_WRITING:
		(void)conn_moves(c);
		conn_set_deadline(c, l->idle_ms);
		break;
	case HTTP_CONN_BUSY:
		/* Nothing of evhttp's drains what the client sends now. */
		conn_set_read_max(c, HTTP_BUSY_READ_MAX);
		c->deadline_ms = 0;
		c->refuse = 0;
		c->refuse_text = NULL;
		break;
	case HTTP_CONN_STREAM:
	default:
		c->deadline_ms = 0;
		break;
	}
}

/* Write in this turn; libevent would first ask epoll whether the socket
 * takes bytes.  If it does not, libevent waits for it. */
void
http_conn_write_now(const struct http_conn *c)
{
	struct event *ev = &c->bev->ev_write;

	if (c->ssl == NULL && event_pending(ev, EV_WRITE, NULL))
		event_active(ev, EV_WRITE, 0);
}

/* evhttp reads nothing between a request and the first byte of its answer, and
 * so does not see that the client closed.  What it would see it by stays: the
 * callbacks that it sets itself once it writes. */
void
http_conn_watch(const struct http_conn *c)
{
	bufferevent_data_cb on_read, on_write;
	bufferevent_event_cb on_event;
	void *arg;

	bufferevent_getcb(c->bev, &on_read, &on_write, &on_event, &arg);
	bufferevent_setcb(c->bev, NULL, on_write, on_event, arg);
	(void)bufferevent_enable(c->bev, EV_READ);
}

/* The answer is out; evhttp closes or waits for the next request. */
void
http_conn_request_done_cb(struct evhttp_request *req, void *arg)
{
	struct http_conn *c = arg;
	size_t waiting = evbuffer_get_length(bufferevent_get_input(c->bev));

	(void)req;
	http_conn_set_state(c, HTTP_CONN_IDLE);
	if (waiting > 0) { /* pipelined */
		c->request_bytes = waiting;
		c->request_since_ms = clock_mono_ms();
		http_head_take_end(
		    &c->head, bufferevent_get_input(c->bev), waiting);
		http_conn_set_state(c, HTTP_CONN_READING);
	} else if (c->server->draining) {
		http_refuse_later(c, -1);
	}
}

/* ---- what flows */

static void
conn_input_cb(
    struct evbuffer *buf, const struct evbuffer_cb_info *info, void *arg)
{
	struct http_conn *c = arg, *old;

	if (c->state > HTTP_CONN_READING)
		input_count(c, evbuffer_get_length(buf));
	if (info->n_added == 0 || c->state > HTTP_CONN_READING)
		return;
	if (c->request_bytes == 0)
		c->request_since_ms = clock_mono_ms();
	c->request_bytes += info->n_added;
	http_head_take_end(&c->head, buf, info->n_added);
	if (c->state == HTTP_CONN_IDLE) {
		http_conn_set_state(c, HTTP_CONN_READING);
	} else {
		c->state = HTTP_CONN_READING; /* FRESH: its time runs on */
		places_rest(c);
	}
	if (c->refuse != 0)
		return;
	if (c->head.chunks.fault != NULL) {
		c->refuse_text = c->head.chunks.fault;
		http_refuse_later(c, 400);
	}
	input_count(c, c->request_bytes);
	while ((old = input_take_excess(c->server)) != NULL)
		http_refuse_later(old, 503);
}

/* evhttp answers some errors itself, in HTML, before any handler is asked (an
 * unknown method even with status 0).  It only queues that answer, so ours
 * can take its place before the loop writes. */
static void
conn_watch_own_errors(struct http_conn *c, struct evbuffer *buf)
{
	struct evbuffer_iovec head;
	char line[24] = "";
	const char *space;
	long status;
	size_t n;

	/* Not evbuffer_copyout: it refuses a buffer whose start is frozen, and
	 * a bufferevent's output is, from the first write on. */
	if (evbuffer_peek(buf, -1, NULL, &head, 1) < 1)
		return;
	n = head.iov_len < sizeof(line) - 1 ? head.iov_len : sizeof(line) - 1;
	memcpy(line, head.iov_base, n);
	space = strchr(line, ' ');
	status = space != NULL ? strtol(space, NULL, 10) : 100;
	if (status == 100) /* Continue */
		return;
	if (status == 0)
		status = 501;
	else if (status == 400 && c->request_bytes > c->server->limits.head_max)
		status = 431;
	http_refuse_later(c, (int)status);
}

static void
conn_output_cb(
    struct evbuffer *buf, const struct evbuffer_cb_info *info, void *arg)
{
	struct http_conn *c = arg;

	c->drained += info->n_deleted;
	http_out_count(c, evbuffer_get_length(buf));
	if (info->n_added > 0 && info->orig_size == 0 && c->refuse == 0 &&
	    c->state <= HTTP_CONN_READING)
		conn_watch_own_errors(c, buf);
}

/* ---- birth and death */

/* The time for the request begins anew. */
static void
conn_opened(struct http_conn *c)
{
	http_conn_set_state(c, HTTP_CONN_FRESH);
}

static struct bufferevent *
conn_new(struct event_base *base, struct http_server *s, struct tls *tls)
{
	struct http_conn *c = xcalloc(1, sizeof(*c));
	struct bufferevent *bev;

	c->server = s;
	bev = tls != NULL ? http_tls_bufferevent(c, tls) :
			    bufferevent_socket_new(base, -1, 0);
	if (bev == NULL)
		fatal(EXIT_MEMORY, "out of memory");
	c->bev = bev;
	http_out_init(c);
	/* Ours until adopted: evhttp may give it up at once. */
	bufferevent_incref(bev);
	c->in_cb =
	    evbuffer_add_cb(bufferevent_get_input(bev), conn_input_cb, c);
	c->out_cb =
	    evbuffer_add_cb(bufferevent_get_output(bev), conn_output_cb, c);
	if (c->in_cb == NULL || c->out_cb == NULL)
		fatal(EXIT_MEMORY, "out of memory");
	(void)evtimer_assign(&c->timer, base, conn_timer_cb, c);
	TAILQ_INSERT_TAIL(&s->fresh, c, link);
	event_active(&s->adopt, EV_TIMEOUT, 1);
	return bev;
}

struct bufferevent *
http_conn_new_cb(struct event_base *base, void *arg)
{
	struct http_server *s = arg;

	return conn_new(base, s, s->tls);
}

struct bufferevent *
http_conn_new_local_cb(struct event_base *base, void *arg)
{
	return conn_new(base, arg, NULL);
}

static void
conn_unwatch(struct http_conn *c)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);

	input_count(c, 0);
	http_out_count(c, 0);
	(void)evbuffer_remove_cb_entry(in, c->in_cb);
	(void)evbuffer_remove_cb_entry(
	    bufferevent_get_output(c->bev), c->out_cb);
}

static void
conn_close_cb(struct evhttp_connection *evcon, void *arg)
{
	struct http_conn *c = arg;
	struct http_server *s = c->server;
	struct http_exchange *x = c->x;

	(void)evcon;
	(void)event_del(&c->timer);
	http_tls_bye(c);
	http_handshake_end(c);
	http_out_clear(c);
	conn_unwatch(c);
	places_leave(c);
	if ((size_t)c->fd < s->by_fd_len)
		s->by_fd[c->fd] = NULL;
	if (c->is_counted)
		limiter_disconnect(s->limiter, &c->peer);
	TAILQ_REMOVE(&s->conns, c, link);
	TAILQ_INSERT_TAIL(&s->dead, c, link);
	s->stats.connections--;
	event_active(&s->reap, EV_TIMEOUT, 1);
	c->x = NULL;
	if (x != NULL)
		c->on_close(x);
}

void
http_conn_reap_cb(evutil_socket_t fd, short what, void *arg)
{
	struct http_server *s = arg;
	struct http_conn *c;

	(void)fd;
	(void)what;
	while ((c = TAILQ_FIRST(&s->dead)) != NULL) {
		TAILQ_REMOVE(&s->dead, c, link);
		principal_unref(c->who);
		free(c);
	}
}

static void
conn_index(struct http_server *s, struct http_conn *c)
{
	size_t want = (size_t)c->fd + 1;

	if (want > s->by_fd_len) {
		want = want < 256 ? 256 : want * 2;
		s->by_fd = xreallocarray(s->by_fd, want, sizeof(*s->by_fd));
		memset(s->by_fd + s->by_fd_len, 0,
		    (want - s->by_fd_len) * sizeof(*s->by_fd));
		s->by_fd_len = want;
	}
	s->by_fd[c->fd] = c;
}

static void
conn_set_socket(int fd)
{
	const int on = 1;

	/* NODELAY: events are small writes.  KEEPALIVE: finds dead peers. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

static struct netaddr
peer_of(int fd)
{
	struct sockaddr_storage ss = {0};
	socklen_t len = sizeof(ss);
	union {
		struct sockaddr_storage *ss;
		struct sockaddr *sa;
	} p = {.ss = &ss};

	if (getpeername(fd, p.sa, &len) != 0)
		return (struct netaddr){.kind = NETADDR_NONE};
	return netaddr_from_sockaddr(p.sa);
}

/* A proxy of ours brings many clients, whose requests are counted as theirs. */
static bool
conn_is_one_too_many(struct http_conn *c)
{
	struct http_server *s = c->server;

	c->peer = peer_of(c->fd);
	if (forwarded_is_proxy(&s->proxies, &c->peer))
		return false;
	c->is_counted = limiter_connect(s->limiter, &c->peer);
	return !c->is_counted;
}

/* It was just counted; another may be closed for it. */
static void
conn_take_place(struct http_server *s, struct http_conn *c)
{
	const struct http_limits *l = &s->limits;
	bool takes = !s->paused && !s->draining, has_own;

	if (conn_is_one_too_many(c)) {
		http_refuse_now(c, 429);
		return;
	}
	has_own = takes &&
	    (s->stats.connections <= l->connections_max || make_room(s, c));
	c->guest = takes && !has_own &&
	    s->stats.connections <= l->connections_max + HTTP_GUESTS_MAX;
	if (!has_own && !c->guest)
		http_refuse_now(c, 503);
	else if (c->guest && l->request_ms > HTTP_GUEST_MS)
		conn_set_deadline(c, HTTP_GUEST_MS);
}

static void
conn_adopt(struct http_server *s, struct http_conn *c)
{
	void *evcon = NULL;

	TAILQ_REMOVE(&s->fresh, c, link);
	bufferevent_getcb(c->bev, NULL, NULL, NULL, &evcon);
	if (evcon == NULL) { /* evhttp could not take it and freed it */
		conn_unwatch(c);
		bufferevent_decref(c->bev);
		free(c);
		return;
	}
	bufferevent_decref(c->bev);
	c->evcon = evcon;
	c->fd = bufferevent_getfd(c->bev);
	conn_index(s, c);
	TAILQ_INSERT_TAIL(&s->conns, c, link);
	s->stats.connections++;
	evhttp_connection_set_closecb(c->evcon, conn_close_cb, c);
	conn_set_socket(c->fd);
	conn_set_read_max(
	    c, s->limits.head_max + s->limits.body_max + HTTP_READ_SLACK);
	http_conn_set_state(c, HTTP_CONN_FRESH);
	http_handshake_begin(c, conn_opened);
	if (c->shakes && s->limits.request_ms > HTTP_HANDSHAKE_MS)
		conn_set_deadline(c, HTTP_HANDSHAKE_MS);
	/* The kernel gives the lowest free number: all below are taken. */
	if ((size_t)c->fd + HTTP_FREE_FDS >= s->fd_limit)
		http_accept_pause(s);
	conn_take_place(s, c);
}

void
http_conn_adopt_cb(evutil_socket_t fd, short what, void *arg)
{
	struct http_server *s = arg;
	struct http_conn *c;

	(void)fd;
	(void)what;
	while ((c = TAILQ_FIRST(&s->fresh)) != NULL)
		conn_adopt(s, c);
}

struct http_conn *
http_conn_of(const struct http_server *s, const struct evhttp_request *req)
{
	/* evhttp's getter takes a request it does not change. */
	union {
		const struct evhttp_request *in;
		struct evhttp_request *out;
	} r = {.in = req};
	struct evhttp_connection *evcon = evhttp_request_get_connection(r.out);
	int fd = bufferevent_getfd(evhttp_connection_get_bufferevent(evcon));

	return fd >= 0 && (size_t)fd < s->by_fd_len ? s->by_fd[fd] : NULL;
}

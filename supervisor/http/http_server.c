/*
 * http_server.c - a server: what it is made of, and its end
 *
 * Layers of this room, each calling only those below it:
 *
 *	http_server                       made, drained, freed
 *	http_reply                        answers
 *	http_exchange                     one request, and who asks (router)
 *	http_conn                         one connection
 *	http_head                         lines of a head
 *	http_out                          what waits to be sent
 *	http_handshake                    TLS before the first request (tls)
 *	http_accept  http_refuse          listening; words, and answers beside
 *					  evhttp
 *	limiter      forwarded            what an address may; what a proxy says
 */
#include "supervisor/http/http_int.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/resource.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/xmalloc.h"

/* CONNECT stays out: evhttp reads its target in another way. */
#define METHODS                                                                \
	(EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT | \
	    EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE |        \
	    EVHTTP_REQ_PATCH)

static size_t
descriptor_limit(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) != 0 || rl.rlim_cur == RLIM_INFINITY)
		return SIZE_MAX / 2;
	return (size_t)rl.rlim_cur;
}

/* evhttp does not say by which listener a connection came, so those that are
 * never TLS have an evhttp of their own. */
static struct evhttp *
new_evhttp(struct http_server *s,
    struct bufferevent *(*on_connection)(struct event_base *, void *))
{
	struct evhttp *h = evhttp_new(s->base);

	if (h == NULL)
		fatal(EXIT_MEMORY, "out of memory");
	evhttp_set_allowed_methods(h, METHODS);
	evhttp_set_default_content_type(h, NULL);
	evhttp_set_max_headers_size(h, (ev_ssize_t)s->limits.head_max);
	evhttp_set_max_body_size(h, (ev_ssize_t)s->limits.body_max);
	evhttp_set_bevcb(h, on_connection, s);
	evhttp_set_gencb(h, http_request_cb_from_evhttp, s);
	return h;
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
	s->limiter = limiter_new(HTTP_ADDRESSES);
	http_out_open(s);
	if (getrandom(&s->id_start, sizeof(s->id_start), 0) < 0)
		fatal(EXIT_BUG, "getrandom: %s", strerror(errno));
	TAILQ_INIT(&s->fresh);
	TAILQ_INIT(&s->conns);
	TAILQ_INIT(&s->resting);
	TAILQ_INIT(&s->unfinished);
	TAILQ_INIT(&s->dead);
	TAILQ_INIT(&s->lingers);
	TAILQ_INIT(&s->handshakes);
	(void)evtimer_assign(
	    &s->handshake_turn, base, http_handshake_turn_cb, s);
	(void)evtimer_assign(&s->adopt, base, http_conn_adopt_cb, s);
	(void)evtimer_assign(&s->reap, base, http_conn_reap_cb, s);
	s->evhttp = new_evhttp(s, http_conn_new_cb);
	s->evhttp_local = new_evhttp(s, http_conn_new_local_cb);
	http_accept_init(s);
	return s;
}

void
http_server_free(struct http_server *s)
{
	if (s == NULL)
		return;
	http_conn_adopt_cb(-1, 0, s); /* what was accepted in this turn */
	evhttp_free(s->evhttp);
	evhttp_free(s->evhttp_local);
	http_refuse_free_lingers(s);
	http_conn_reap_cb(-1, 0, s);
	(void)event_del(&s->adopt);
	(void)event_del(&s->reap);
	(void)event_del(&s->handshake_turn);
	http_accept_clear(s);
	http_out_close(s);
	limiter_free(s->limiter);
	tls_free(s->tls);
	free(s->by_fd);
	free(s);
}

void
http_server_drain(struct http_server *s)
{
	struct http_conn *c;

	s->draining = true;
	http_accept_update(s);
	TAILQ_FOREACH (c, &s->conns, link)
		if (c->state == HTTP_CONN_IDLE || c->state == HTTP_CONN_FRESH)
			http_refuse_later(c, -1);
}

void
http_server_end_of(struct http_server *s, const struct principal *who)
{
	struct http_conn *c;

	TAILQ_FOREACH (c, &s->conns, link)
		if (c->who == who)
			http_refuse_later(c, -1);
}

void
http_server_set_log(struct http_server *s, http_log_cb on_log)
{
	s->on_log = on_log;
}

void
http_server_set_rates(struct http_server *s, const struct limiter_rates *rates)
{
	limiter_set_rates(s->limiter, rates);
}

void
http_server_set_proxies(
    struct http_server *s, const struct forwarded_proxies *proxies)
{
	s->proxies = *proxies;
}

struct limiter *
http_server_limiter(struct http_server *s)
{
	return s->limiter;
}

void
http_server_set_tls(struct http_server *s, struct tls *tls)
{
	tls_free(s->tls);
	s->tls = tls;
}

void
http_server_stats(const struct http_server *s, struct http_stats *out)
{
	*out = s->stats;
	out->waiting_memory = s->memory_bytes;
	out->waiting_files = http_out_in_files(s);
	for (unsigned int i = 0; i < LIMITER_REASONS; i++)
		out->refused[i] =
		    limiter_refused(s->limiter, (enum limiter_reason)i);
}

/*
 * http_handshake.c - the beginning of a TLS connection
 *
 * libevent would go through handshakes as they come, and a hundred of them in
 * one turn of the loop.  So the bufferevent is made as if it were open, its
 * reading is off, and the handshake is done here:
 *
 *	parked --readable--> in the queue --its turn--> a step --+--> parked
 *	                                                         +--> open
 *	                                                         +--> closed
 *
 * A turn of the loop takes steps from the queue for HANDSHAKE_TURN_US, and one
 * at least; what is left comes in the next turn, behind whoever else is ready.
 * A parked connection is FRESH: it has a place like any other, rests, and is
 * displaced for another as any that says nothing (http_conn.c).
 */
#include "supervisor/http/http_int.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "common/clock.h"
#include "common/log.h"

#define HANDSHAKE_TURN_US 5000

static void
handshake_queue_cb(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval at_once = {0, 0};
	struct http_conn *c = arg;
	struct http_server *s = c->server;

	(void)fd;
	(void)what;
	if (c->is_queued)
		return;
	c->is_queued = true;
	TAILQ_INSERT_TAIL(&s->handshakes, c, handshake_link);
	(void)evtimer_add(&s->handshake_turn, &at_once);
}

static void
handshake_park(struct http_conn *c, short what)
{
	(void)event_del(&c->handshake);
	(void)event_assign(
	    &c->handshake, c->server->base, c->fd, what, handshake_queue_cb, c);
	(void)event_add(&c->handshake, NULL);
}

void
http_handshake_begin(struct http_conn *c, void (*on_open)(struct http_conn *c))
{
	if (c->ssl == NULL)
		return;
	c->shakes = true;
	c->on_open = on_open;
	(void)bufferevent_disable(c->bev, EV_READ);
	(void)event_assign(&c->handshake, c->server->base, c->fd, EV_READ,
	    handshake_queue_cb, c);
	(void)event_add(&c->handshake, NULL);
}

void
http_handshake_end(struct http_conn *c)
{
	if (!c->shakes)
		return;
	c->shakes = false;
	(void)event_del(&c->handshake);
	if (c->is_queued)
		TAILQ_REMOVE(&c->server->handshakes, c, handshake_link);
	c->is_queued = false;
}

/* A scanner, a browser that does not know our authority, an old client. */
static void
handshake_failed(struct http_conn *c)
{
	static struct log_limit limit;
	unsigned long code = ERR_peek_last_error();
	const char *reason = code == 0 ? NULL : ERR_reason_error_string(code);
	char from[NETADDR_TEXT_MAX];

	log_warn_limited(&limit, "TLS handshake with %s failed: %s",
	    netaddr_format(&c->peer, from),
	    reason != NULL ? reason : "the client went away");
	ERR_clear_error();
	c->server->stats.handshakes_failed++;
	c->tls_broken = true;
	evhttp_connection_free(c->evcon);
}

static void
handshake_step(struct http_conn *c)
{
	int rc;

	ERR_clear_error();
	rc = SSL_do_handshake(c->ssl);
	if (rc == 1) {
		http_handshake_end(c);
		c->server->stats.handshakes++;
		c->on_open(c);
		(void)bufferevent_enable(c->bev, EV_READ);
		return;
	}
	switch (SSL_get_error(c->ssl, rc)) {
	case SSL_ERROR_WANT_READ:
		handshake_park(c, EV_READ);
		break;
	case SSL_ERROR_WANT_WRITE:
		handshake_park(c, EV_WRITE);
		break;
	default:
		handshake_failed(c);
		break;
	}
}

void
http_handshake_turn_cb(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval at_once = {0, 0};
	struct http_server *s = arg;
	uint64_t until_us = clock_mono_us() + HANDSHAKE_TURN_US;
	struct http_conn *c;

	(void)fd;
	(void)what;
	while ((c = TAILQ_FIRST(&s->handshakes)) != NULL) {
		TAILQ_REMOVE(&s->handshakes, c, handshake_link);
		c->is_queued = false;
		handshake_step(c);
		if (clock_mono_us() >= until_us)
			break;
	}
	if (!TAILQ_EMPTY(&s->handshakes))
		(void)evtimer_add(&s->handshake_turn, &at_once);
}

void
http_tls_say(struct http_conn *c, const char *text, size_t n)
{
	ERR_clear_error();
	(void)SSL_write(c->ssl, text, (int)n);
	ERR_clear_error();
}

/* The client is to know that what it has is all there is. */
void
http_tls_bye(struct http_conn *c)
{
	if (c->ssl != NULL && !c->shakes && !c->tls_broken &&
	    SSL_is_init_finished(c->ssl) &&
	    bufferevent_get_openssl_error(c->bev) == 0) {
		ERR_clear_error();
		(void)SSL_shutdown(c->ssl);
		ERR_clear_error();
	}
	c->ssl = NULL; /* the bufferevent's */
}

uint64_t
http_tls_written(const struct http_conn *c)
{
	return c->ssl == NULL ? 0 : BIO_number_written(SSL_get_wbio(c->ssl));
}

struct bufferevent *
http_tls_bufferevent(struct http_conn *c, struct tls *tls)
{
	c->ssl = tls_session(tls);
	if (c->ssl == NULL)
		return NULL;
	/* It owns the session and, other than a plain one, its socket. */
	return bufferevent_openssl_socket_new(c->server->base, -1, c->ssl,
	    BUFFEREVENT_SSL_OPEN, BEV_OPT_CLOSE_ON_FREE);
}

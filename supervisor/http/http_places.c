/*
 * http_places.c - who has a place when connections_max are taken
 *
 * A connection that rests (nothing came yet, or between two requests) gives
 * its place to a new one, that which rests longest first.  One that has only
 * just come is left alone for PLACES_YOUNG_MS.  When nobody rests, the next
 * HTTP_GUESTS_MAX come as guests: what they ask for is the handler's choice
 * (http_is_guest), so that a probe is answered even then.
 */
#include "supervisor/http/http_int.h"

#include "common/clock.h"

#define PLACES_YOUNG_MS 1000

void
http_places_rest(struct http_conn *c)
{
	http_places_leave(c);
	c->rests = true;
	c->rests_since_ms = clock_mono_ms();
	TAILQ_INSERT_TAIL(&c->server->resting, c, rest_link);
}

void
http_places_leave(struct http_conn *c)
{
	if (c->rests)
		TAILQ_REMOVE(&c->server->resting, c, rest_link);
	c->rests = false;
}

/* The list is in the order in which they came to rest. */
static struct http_conn *
oldest_resting(const struct http_server *s, const struct http_conn *not_this)
{
	uint64_t now = clock_mono_ms();
	struct http_conn *c;

	TAILQ_FOREACH (c, &s->resting, rest_link)
		if (c != not_this &&
		    (c->state == HTTP_CONN_IDLE ||
			now >= c->rests_since_ms + PLACES_YOUNG_MS))
			return c;
	return NULL;
}

enum http_place
http_places_take(struct http_conn *c)
{
	struct http_server *s = c->server;
	struct http_conn *old;

	if (s->stats.connections <= s->limits.connections_max)
		return HTTP_PLACE_OWN;
	old = oldest_resting(s, c);
	if (old != NULL) {
		s->stats.displaced++;
		evhttp_connection_free(old->evcon);
		return HTTP_PLACE_OWN;
	}
	return s->stats.connections <=
		s->limits.connections_max + HTTP_GUESTS_MAX ?
	    HTTP_PLACE_GUEST :
	    HTTP_PLACE_NONE;
}

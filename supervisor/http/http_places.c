/*
 * http_places.c - who has a place when connections_max are taken
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
#include "supervisor/http/http_int.h"

#include <sys/socket.h>

#include "common/clock.h"

#define PLACES_YOUNG_MS 1000
#define PLACES_SILENT_MS 2000
#define PLACES_LOOKS_MAX 64 /* connections asked for unread bytes */

static struct http_conn_list *
list_of(struct http_conn *c)
{
	return c->rests == HTTP_RESTS_SILENT ? &c->server->resting :
					       &c->server->unfinished;
}

void
http_places_rest(struct http_conn *c)
{
	http_places_leave(c);
	c->rests = c->state == HTTP_CONN_READING ? HTTP_RESTS_UNFINISHED :
						   HTTP_RESTS_SILENT;
	c->rests_since_ms = clock_mono_ms();
	TAILQ_INSERT_TAIL(list_of(c), c, rest_link);
}

void
http_places_leave(struct http_conn *c)
{
	if (c->rests != HTTP_RESTS_NOT)
		TAILQ_REMOVE(list_of(c), c, rest_link);
	c->rests = HTTP_RESTS_NOT;
}

/* What the kernel has of it: the loop reads that in its next turn. */
static bool
has_unread(const struct http_conn *c)
{
	char byte;

	return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static bool
is_new_in_handshake(const struct http_conn *c, uint64_t now)
{
	return c->shakes && now < c->rests_since_ms + PLACES_YOUNG_MS;
}

/* The lists are in the order in which they came to rest. */
static struct http_conn *
oldest_resting(const struct http_server *s, const struct http_conn *not_this)
{
	uint64_t now = clock_mono_ms();
	unsigned int looks = 0;
	struct http_conn *c;

	TAILQ_FOREACH (c, &s->resting, rest_link) {
		if (c == not_this || is_new_in_handshake(c, now))
			continue;
		if (!has_unread(c))
			return c;
		if (++looks == PLACES_LOOKS_MAX)
			return NULL;
	}
	return NULL;
}

static struct http_conn *
oldest_unfinished(const struct http_server *s, const struct http_conn *not_this)
{
	uint64_t now = clock_mono_ms();
	unsigned int looks = 0;
	struct http_conn *c;

	TAILQ_FOREACH (c, &s->unfinished, rest_link) {
		if (now < c->rests_since_ms + PLACES_SILENT_MS)
			return NULL;
		if (c != not_this && !has_unread(c))
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
	struct http_conn *old = oldest_resting(s, c);

	if (old != NULL) {
		evhttp_connection_free(old->evcon);
	} else {
		old = oldest_unfinished(s, c);
		if (old == NULL)
			return false;
		http_refuse_now(old, 408);
	}
	s->stats.displaced++;
	return true;
}

enum http_place
http_places_take(struct http_conn *c)
{
	struct http_server *s = c->server;

	if (s->stats.connections <= s->limits.connections_max)
		return HTTP_PLACE_OWN;
	if (make_room(s, c))
		return HTTP_PLACE_OWN;
	return s->stats.connections <=
		s->limits.connections_max + HTTP_GUESTS_MAX ?
	    HTTP_PLACE_GUEST :
	    HTTP_PLACE_NONE;
}

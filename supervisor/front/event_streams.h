/* event_streams.h - GET /api/v1/events: what happens in a tenant, and to the
 * server (docs/events.md) */
#ifndef FRONT_EVENT_STREAMS_H
#define FRONT_EVENT_STREAMS_H

#include "supervisor/front/front.h"
#include "supervisor/front/query.h"

struct event_streams;

struct event_streams *event_streams_new(struct front *f);
/* event_streams_free - none is open; NULL is fine */
void event_streams_free(struct event_streams *all);
/* event_streams_drain - all end now */
void event_streams_drain(struct event_streams *all);

/* a route's handler */
void event_streams_on_request(struct front *f, struct http_exchange *x);
extern const struct query_table event_streams_query; /* its parameters */

#endif

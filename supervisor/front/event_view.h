/* event_view.h - an event as clients see it: in a stream, in a page */
#ifndef FRONT_EVENT_VIEW_H
#define FRONT_EVENT_VIEW_H

#include "common/base.h"
#include "supervisor/core/event_feed.h"

struct evbuffer;

#define EVENT_ID_TEXT_MAX 48

/* event_id_format - NUMBER.MILLISECONDS: the number tells it from others of the
 * tenant, the time, whether the database is still the same.  NUMBER alone
 * where the time is not known */
void event_id_format(const struct event_place *at, char out[EVENT_ID_TEXT_MAX]);
/* event_id_parse - ERR_INVAL: it cannot be one */
int event_id_parse(const char *text, struct event_place *at) MUSTCHECK;

/* event_view_json - an object */
void event_view_json(struct evbuffer *out, const struct store_event *row);
/* event_view_sse - id, event, data */
void event_view_sse(struct evbuffer *out, const struct store_event *row);
void event_view_sse_gap(struct evbuffer *out, const struct event_gap *gap);
/* event_view_sse_place - an id alone: the client remembers it and tells
 * nobody */
void event_view_sse_place(struct evbuffer *out, const struct event_place *at);

#endif

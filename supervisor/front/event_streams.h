/* event_streams.h - events of a tenant, as clients and webhooks see them */
#ifndef FRONT_EVENT_STREAMS_H
#define FRONT_EVENT_STREAMS_H

struct evbuffer;
struct store_event;

/* event_view_json - an object */
void event_view_json(struct evbuffer *out, const struct store_event *row);

#endif

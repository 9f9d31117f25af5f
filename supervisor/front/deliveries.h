/*
 * deliveries.h - events on their way to webhooks
 *
 * One at a time of each webhook, in order; which one is next, of all that are
 * due, hook_turns.h says: who does not answer delays itself.
 */
#ifndef FRONT_DELIVERIES_H
#define FRONT_DELIVERIES_H

#include "common/base.h"
#include "common/err.h"
#include "supervisor/front/postbox.h"

struct deliveries;
struct webhook;

struct deliveries_parts { /* all are kept */
	struct event_base *base;
	const struct conf *conf;
	struct webhooks *webhooks;
	struct event_feeds *feeds;
	struct postbox *postbox;
};
struct deliveries_counts {
	uint64_t taken, failed, lost; /* since the start */
	uint64_t waiting; /* now: events that are read and not taken */
};

struct deliveries *deliveries_new(const struct deliveries_parts *parts);
void deliveries_free(struct deliveries *all); /* NULL is fine */
/* deliveries_pump - the postbox has room */
void deliveries_pump(struct deliveries *all);
struct deliveries_counts deliveries_counts(const struct deliveries *all);
/* deliveries_test - an event that did not happen, now, once; one of those of
 * its tenant and host while it is under way.  ERR_LIMIT: there are as many as
 * may be; ERR_NO_SECRET_KEY */
int deliveries_test(struct deliveries *all, const struct webhook *w,
    postbox_cb done, void *arg, struct err *e) MUSTCHECK;

#endif

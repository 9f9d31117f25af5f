/*
 * refusal.h - how a request hears that its tenant's quota is used up
 *
 * Of what a client asks again and again, it hears REFUSAL_LATE_MS later: who
 * asks the next time when it was answered comes ten times a second on each of
 * its connections then, and costs the others little.  No more than
 * REFUSAL_LATE_MAX wait so at a time; further ones are answered at once.
 */
#ifndef FRONT_REFUSAL_H
#define FRONT_REFUSAL_H

#include "supervisor/front/routes.h"

#define REFUSAL_LATE_MS 100
#define REFUSAL_LATE_MAX 1024

struct event_base;
struct late_refusals; /* those that wait */

struct late_refusals *late_refusals_new(struct event_base *base);
void late_refusals_free(struct late_refusals *all); /* none may wait */

/* refusal_send_late - answers x: 429 with Retry-After, in the form of the
 * place; why is copied */
void refusal_send_late(struct late_refusals *all, struct http_exchange *x,
    enum route_place place, const struct err *why);

#endif

/* refusal.h - how a request hears that its tenant's quota is used up */
#ifndef FRONT_REFUSAL_H
#define FRONT_REFUSAL_H

#include "supervisor/front/routes.h"

/* refusal_send - answers x: 429 with Retry-After, in the form of the place */
void refusal_send(
    struct http_exchange *x, enum route_place place, const struct err *why);

#endif

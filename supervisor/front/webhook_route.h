/* webhook_route.h - tenants' webhooks: made, shown, changed, tested, deleted */
#ifndef FRONT_WEBHOOK_ROUTE_H
#define FRONT_WEBHOOK_ROUTE_H

#include "supervisor/front/front.h"

/* /api/v1/webhooks, GET and POST; /api/v1/webhooks/{webhook}, GET, PATCH and
 * DELETE; POST /api/v1/webhooks/{webhook}/test: the caller's own, and below
 * /api/v1/tenants/{tenant} the same for who administers */
void webhook_on_list(struct front *f, struct http_exchange *x);
void webhook_on_one(struct front *f, struct http_exchange *x);
void webhook_on_test(struct front *f, struct http_exchange *x);

#endif

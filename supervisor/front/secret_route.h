/* secret_route.h - tenants' secrets: set, listed, deleted, never told */
#ifndef FRONT_SECRET_ROUTE_H
#define FRONT_SECRET_ROUTE_H

#include "supervisor/front/front.h"

/* GET /api/v1/secrets: the caller's own; and PUT (the body is the value),
 * DELETE /api/v1/secrets/{secret} */
void secret_on_own_list(struct front *f, struct http_exchange *x);
void secret_on_own(struct front *f, struct http_exchange *x);
/* The same below /api/v1/tenants/{tenant}, for who administers. */
void secret_on_tenant_list(struct front *f, struct http_exchange *x);
void secret_on_tenant(struct front *f, struct http_exchange *x);

#endif

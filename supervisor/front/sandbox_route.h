/* sandbox_route.h - a sandbox, how it is isolated, and its end */
#ifndef FRONT_SANDBOX_ROUTE_H
#define FRONT_SANDBOX_ROUTE_H

#include "supervisor/front/front.h"

/* GET /api/v1/sandboxes/{identifier}: one of the caller's.  What is known to be
 * wrong with the host is not for tenants.  DELETE: as the tool delete_sandbox,
 * but for one that is not there; answered when nothing of it is left. */
void sandbox_on_own(struct front *f, struct http_exchange *x);
/* The same below /api/v1/tenants/{tenant}, and all of it. */
void sandbox_on_tenant(struct front *f, struct http_exchange *x);

#endif

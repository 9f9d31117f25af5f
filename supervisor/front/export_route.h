/* export_route.h - GET /api/v1/export: runs as JSON lines or CSV, all that the
 * filters let pass */
#ifndef FRONT_EXPORT_ROUTE_H
#define FRONT_EXPORT_ROUTE_H

#include "supervisor/front/front.h"
#include "supervisor/front/query.h"

/* At a time: of one tenant, of all. */
#define EXPORTS_TENANT_MAX 2
#define EXPORTS_MAX 16

void export_on_get(struct front *f, struct http_exchange *x);

extern const struct query_table export_query;

#endif

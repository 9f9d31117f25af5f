/* sandbox_list_route.h - GET /api/v1/sandboxes: those that are there, and those
 * that ended and are not forgotten */
#ifndef FRONT_SANDBOX_LIST_ROUTE_H
#define FRONT_SANDBOX_LIST_ROUTE_H

#include "supervisor/front/front.h"
#include "supervisor/front/query.h"

void sandbox_on_list(struct front *f, struct http_exchange *x);

extern const struct query_table sandbox_list_query;

#endif

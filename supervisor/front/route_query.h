/*
 * route_query.h - which parameters a route knows in its query
 *
 * One table for all that is strict: below /api/, /metrics and artifacts.  A
 * route with none of its own has an empty one, and refuses them all.  What is
 * MCP's (MCP_PATH and below), probes and pages pass by what they do not know:
 * clients, load balancers and browsers add words of their own there.
 */
#ifndef FRONT_ROUTE_QUERY_H
#define FRONT_ROUTE_QUERY_H

#include "supervisor/front/query.h"
#include "supervisor/front/routes.h"

/* route_query_is_strict - unknown parameters are refused there */
bool route_query_is_strict(const struct route *r);
/* route_query_table - NULL: no row says which parameters it knows */
const struct query_table *route_query_table(const struct route *r);
/* route_query_pass - true: go on, the handler reads what it knows; false: x
 * was answered, for it knows nothing and was asked something */
bool route_query_pass(const struct route *r, struct http_exchange *x) MUSTCHECK;

#endif

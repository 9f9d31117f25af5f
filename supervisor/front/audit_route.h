/*
 * audit_route.h - the audit over HTTP: GET /api/v1/audit, a page of rows,
 * newest first (cursor, limit, tenant, what, since), and /api/v1/audit/verify,
 * a piece of the chain (after, hash: where the piece before ended)
 */
#ifndef FRONT_AUDIT_ROUTE_H
#define FRONT_AUDIT_ROUTE_H

#include "supervisor/front/query.h"
#include "supervisor/front/routes.h"

void audit_on_list(struct front *f, struct http_exchange *x);
void audit_on_verify(struct front *f, struct http_exchange *x);

extern const struct query_table audit_list_query, audit_verify_query;

#endif

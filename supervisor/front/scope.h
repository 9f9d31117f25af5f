/*
 * scope.h - whose runs, sandboxes and things a request is about
 *
 * A user's are its tenant's.  An administrator says whose by ?tenant=NAME, and
 * need not when its token is of a tenant; or the path says so.  A user who
 * names another tenant hears the same as one who names none that there is.
 */
#ifndef FRONT_SCOPE_H
#define FRONT_SCOPE_H

#include "common/netaddr.h"
#include "supervisor/core/acts.h"
#include "supervisor/front/routes.h"

/* A table that has it in the first row asks for one of a tenant. */
#define SCOPE_PARAM                                                            \
	{                                                                      \
		.name = "tenant", .kind = QUERY_SCOPE,                         \
		.max = PRINCIPAL_TENANT_MAX                                    \
	}

/* scope_open - reads the query of r, for that route, and finds who asks.
 * False: its exchange was answered */
bool scope_open(struct request *r, const struct route *route) MUSTCHECK;
void scope_close(struct request *r);

/* scope_tenant - the one of the path's :tenant, or else the caller's own.
 * NULL: x was answered */
struct tenant *scope_tenant(
    const struct front *f, struct http_exchange *x) MUSTCHECK;
/* scope_live_tenant - the same, of those that are not being deleted */
struct tenant *scope_live_tenant(
    const struct front *f, struct http_exchange *x) MUSTCHECK;
/* scope_run - the path's :run */
struct uuid scope_run(const struct http_exchange *x);

/* scope_act - an act by who made the request; client is written */
struct act scope_act(const struct http_exchange *x, const char *what,
    char client[NETADDR_TEXT_MAX]);
/* scope_tell - for the audit: what was done to that run or sandbox of the
 * tenant */
void scope_tell(const struct front *f, const struct http_exchange *x,
    const char *tenant, const char *what, const char *subject);

#endif

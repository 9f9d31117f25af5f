/*
 * scope.h - whose runs and sandboxes a request is about
 *
 * A user's are its tenant's.  An administrator says whose by ?tenant=NAME, and
 * need not when its token is of a tenant.  A user who names another tenant
 * hears the same as one who names none that there is.
 */
#ifndef FRONT_SCOPE_H
#define FRONT_SCOPE_H

#include "common/netaddr.h"
#include "supervisor/core/acts.h"
#include "supervisor/front/front.h"
#include "supervisor/front/query.h"

#define SCOPE_PARAM                                                            \
	{                                                                      \
		.name = "tenant", .kind = QUERY_TEXT,                          \
		.max = PRINCIPAL_TENANT_MAX                                    \
	}

/* scope_find - who asks, as one of that tenant: a reference, the caller's.
 * NULL: x was answered */
struct principal *scope_find(const struct front *f, struct http_exchange *x,
    const struct query_value *named) MUSTCHECK;

/* scope_act - an act by who made the request; client is written */
struct act scope_act(const struct http_exchange *x, const char *what,
    char client[NETADDR_TEXT_MAX]);
/* scope_tell - for the audit: what was done to that run of who's tenant */
void scope_tell(const struct front *f, const struct http_exchange *x,
    const struct principal *who, const char *what, const char *run);

#endif

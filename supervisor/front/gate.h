/*
 * gate.h - who calls: the one place that says so
 *
 * Every request passes here before anything is done for it; only what says
 * nothing of anybody (routes for nobody in particular, and the well-known
 * places that clients look for, where there is nothing) does not.
 *
 *	admin socket	root, and the user the server runs as: administration;
 *			of what is for users only (MCP), while the server is
 *			open, its one tenant
 *	token		Authorization: Bearer, of a tenant or of none; or a JWT
 *			of the authorization server (oauth.h)
 *	neither		while the server is open (core/tenants.h), its one
 *tenant
 */
#ifndef FRONT_GATE_H
#define FRONT_GATE_H

#include "supervisor/front/routes.h"

typedef void (*gate_again)(struct front *f, struct http_exchange *x);

/* gate_pass - true: http_principal says who, and the route is for it; false:
 * x was answered, 401 or 403, or waits: again is called later, and is to call
 * this.  r NULL: there is no such route; again NULL: it waits no more. */
bool gate_pass(struct front *f, struct http_exchange *x, const struct route *r,
    gate_again again);
/* gate_tell - for the audit: x is refused; why is static text */
void gate_tell(const struct front *f, const struct http_exchange *x,
    const char *what, const char *why);
/* gate_is_closed - requests without a token are refused */
bool gate_is_closed(const struct front *f);

#endif

/*
 * routes.h - the table of what is served where
 *
 * A handler gets a request whose Host, Origin, method and path parameters were
 * found good, and whose principal (http_principal) has a role that the route
 * is for; it ends the exchange (http.h).
 */
#ifndef FRONT_ROUTES_H
#define FRONT_ROUTES_H

#include "supervisor/front/front.h"

typedef void (*route_handler)(struct front *f, struct http_exchange *x);

enum route_place {
	ROUTE_TOP,
	ROUTE_BELOW_MCP, /* the pattern goes behind MCP_PATH */
	ROUTE_MCP        /* MCP_PATH itself; errors are JSON-RPC's */
};

struct route {
	enum route_place place;
	const char *pattern; /* router.h */
	unsigned int methods;
	const char *allow;   /* the header; it may name fewer than methods */
	const char *missing; /* what a path that does not fit is told */
	route_handler on_request;
	enum route_who {
		ROUTE_FOR_USERS,
		ROUTE_FOR_PROBES /* also when all connections are taken */
	} who;
	unsigned int roles; /* who may: ROUTE_ROLE, OR-ed */
};
#define ROUTE_NOBODY 0u /* anybody, without being asked who it is */
#define ROUTE_ROLE(role) (1u << (role))
#define ROUTE_WHILE_OPEN                                                       \
	(1u << 31) /* and everybody while no token is wanted                   \
		    */

/* routes_next - the table, for who looks at all of it; NULL: the first, the
 * last */
const struct route *routes_next(const struct route *r);

/* routes_number - a number below METRIC_ROUTES; NULL, and those that have
 * none of their own: the last */
unsigned int routes_number(const struct route *r);
/* routes_name - for people: its pattern, or "other"; NULL: no route has that
 * number */
const char *routes_name(unsigned int number);

/* routes_new - a router that gives struct route; mcp_path without a slash at
 * its end */
struct http_router *routes_new(const char *mcp_path);

#endif

/*
 * routes.h - the table of what is served where
 *
 * A handler gets a request whose Host, Origin, method, path parameters and
 * query were found good, and whose principal (http_principal) has a role that
 * the route is for; it ends the exchange (http.h).
 */
#ifndef FRONT_ROUTES_H
#define FRONT_ROUTES_H

#include "supervisor/front/front.h"
#include "supervisor/front/query.h"

/* A request as its handler gets it.  The query and the reference to who are
 * gone when the handler returns: one that answers later takes its own. */
struct request {
	struct front *front;
	struct http_exchange *x;
	struct query query;    /* empty where the route has no table */
	struct principal *who; /* who asks, as one of the tenant that the
				* request is about (scope.h); NULL: anybody */
};

typedef void (*route_handler)(struct request *r);

static inline bool
request_reads(const struct http_exchange *x)
{
	return http_method(x) == HTTP_METHOD_GET ||
	    http_method(x) == HTTP_METHOD_HEAD;
}

enum route_place {
	ROUTE_TOP,
	ROUTE_BELOW_MCP, /* the pattern goes behind MCP_PATH */
	ROUTE_MCP        /* MCP_PATH itself; errors are JSON-RPC's */
};

struct route {
	enum route_place place;
	const char *pattern; /* router.h */
	unsigned int methods;
	const char *missing; /* what a path that does not fit is told */
	route_handler on_request;
	unsigned int roles; /* who may: ROUTE_ROLE, OR-ed */
	/* The parameters of its query; others are refused.  NULL: others are
	 * passed over, as clients of MCP, load balancers and browsers add
	 * words of their own. */
	const struct query_table *query;
};
#define ROUTE_NOBODY 0u /* anybody, without being asked who it is */
#define ROUTE_ROLE(role) (1u << (role))
#define ROUTE_WHILE_OPEN (1u << 31) /* and everybody, without tenants */

/* routes_next - the table, for who looks at all of it; NULL: the first, the
 * last */
const struct route *routes_next(const struct route *r);

/* routes_method_name - "other" for what is no method of ours */
const char *routes_method_name(enum http_method method);
/* routes_allow - the header Allow.  Of MCP_PATH it leaves out GET, which is
 * answered with 405 */
#define ROUTES_ALLOW_MAX 64
void routes_allow(const struct route *r, char out[ROUTES_ALLOW_MAX]);

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

/*
 * router.h - which route a path belongs to, and its parameters
 *
 * A pattern is a path with typed places: "/artifacts/:identifier/:run/x" has
 * two, each for one part between slashes; "*path" at the end stands for all
 * that is left, parts and slashes.  The name says the kind, and what does not
 * fit its kind is no parameter: handlers get what they need not check again.
 * Parameters are percent-decoded once, UTF-8 without a NUL, and at most
 * HTTP_PARAM_MAX bytes.  A *path has no empty part, "." or "..".
 *
 * What stands before the first place is the pattern's head.  The first route
 * whose whole pattern fits is taken; else the first whose head does, so that
 * it can answer for what is missing below it; a pattern without places is all
 * head and fits whole or not at all.
 */
#ifndef HTTP_ROUTER_H
#define HTTP_ROUTER_H

#include "common/base.h"

#define HTTP_PARAMS_MAX 4
#define HTTP_PARAM_MAX 4096

struct http_router;

struct http_param_kind {
	const char *name;
	bool (*fits)(const char *text);
};

enum http_fit {
	HTTP_FIT_NONE,
	HTTP_FIT_HEAD, /* the route's place, but not what it can be */
	HTTP_FIT_WHOLE
};

struct http_params { /* zeroed: none */
	char *mem;   /* the values */
	size_t n;
	struct {
		const char *name; /* the pattern's, not ended by a NUL */
		size_t name_len;
		const char *value;
	} param[HTTP_PARAMS_MAX];
};

/* http_router_new - kinds are kept by pointer */
struct http_router *http_router_new(
    const struct http_param_kind *kinds, size_t nkinds);
void http_router_free(struct http_router *r); /* NULL is fine */
/* http_router_add - prefix and pattern are copied, route is given back.  A
 * kind that is not there, or too many places, are our bug: the process ends */
void http_router_add(struct http_router *r, const char *prefix,
    const char *pattern, const void *route);
/* http_router_match - *route is set unless HTTP_FIT_NONE; *out (empty before)
 * only for HTTP_FIT_WHOLE, to be cleared */
enum http_fit http_router_match(const struct http_router *r, const char *path,
    struct http_params *out, const void **route);
const char *http_params_find(const struct http_params *p, const char *name);
void http_params_clear(struct http_params *p);

#endif

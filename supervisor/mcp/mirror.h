/*
 * mirror.h - header lines that repeat what the body says (MCP 2026-07-28)
 *
 * Proxies route and authorise by them, so each must say what the body does.  A
 * value that is no plain header text comes as "=?base64?...?=": the letters in
 * that case, standard base64 of UTF-8 between.
 *
 * A tool asks for lines of its own: a property of its input schema with
 * "x-mcp-header": "Name" is repeated in Mcp-Param-Name.
 */
#ifndef MCP_MIRROR_H
#define MCP_MIRROR_H

#include <jansson.h>

#include "common/base.h"
#include "common/err.h"

/* mirror_shows - does this line say that value, a string, number or boolean?
 * Numbers are compared as numbers. */
bool mirror_shows(const char *line, const json_t *value);

struct mirror_set; /* the properties of one tool that are repeated */

/*
 * mirror_set_new - those of an input schema; *out NULL: none are
 *
 * ERR_INVAL names what clients would drop the tool for: a name that is no
 * token or comes twice, a type other than string, integer and boolean, a place
 * that is not reached from the root by "properties" alone.
 */
int mirror_set_new(
    const json_t *schema, struct mirror_set **out, struct err *e) MUSTCHECK;
void mirror_set_free(struct mirror_set *set); /* NULL is fine */

/* mirror_strip - the schema without the keyword, for revisions that have none:
 * a new object */
json_t *mirror_strip(const json_t *schema);

/* How the lines of a request are asked for (mcp.h, struct mcp_http); find NULL:
 * it has none. */
struct mirror_source {
	const char *(*find)(
	    void *handle, const char *name, unsigned int *lines);
	void *handle;
};
/* mirror_set_check - 0, or ERR_INVAL: a line is missing, there for nothing, or
 * says something else than arguments (as they came).  set NULL: 0 */
int mirror_set_check(const struct mirror_set *set, const json_t *arguments,
    const struct mirror_source *source, struct err *e) MUSTCHECK;

#endif

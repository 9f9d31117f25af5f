/* shape.h - what is listed, in the form that a revision has */
#ifndef MCP_SHAPE_H
#define MCP_SHAPE_H

#include <jansson.h>

#include "supervisor/mcp/era.h"

/* shape_item - a prompt, a resource, a template or the contents of one, without
 * the members that the revision does not know.  A reference of the caller's;
 * item itself is only read. */
json_t *shape_item(const struct era_revision *rev, json_t *item);
/* shape_items - a new array of all of list from from to to (which is behind
 * them) */
json_t *shape_items(
    const struct era_revision *rev, const json_t *list, size_t from, size_t to);
/* shape_member - result with the array that it has there shaped */
json_t *shape_member(
    const struct era_revision *rev, json_t *result, const char *member);

#endif

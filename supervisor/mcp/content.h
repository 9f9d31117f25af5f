/* content.h - results in the form that a revision knows, as JSON text */
#ifndef MCP_CONTENT_H
#define MCP_CONTENT_H

#include <jansson.h>

#include "common/base.h"
#include "supervisor/mcp/era.h"

/*
 * content_tool_result - a CallToolResult
 *
 *	text		the first block; NULL: no block.  Bytes that are not
 *			UTF-8 become U+FFFD
 *	structured	only read; left out when NULL, when it is no object, or
 *			when the revision has no such member
 * The caller frees.
 */
char *content_tool_result(const struct era_revision *rev, const char *text,
    json_t *structured, bool is_error);

#endif

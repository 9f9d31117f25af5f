/* content.h - results in the form that a revision knows, as JSON */
#ifndef MCP_CONTENT_H
#define MCP_CONTENT_H

#include <jansson.h>

#include "supervisor/mcp/era.h"
#include "supervisor/mcp/mcp.h"

/* content_tool_json - a CallToolResult; content is only read, and what the
 * revision has no member for is left out.  The caller's. */
json_t *content_tool_json(const struct era_revision *rev,
    const struct mcp_content *content, enum mcp_outcome outcome);
/* content_text - its first text; "": there is none */
const char *content_text(const struct mcp_content *content);

/* content_block - a ContentBlock as the revision has it: a block of a kind that
 * it does not know becomes a text that says what it was.  A reference of the
 * caller's. */
json_t *content_block(const struct era_revision *rev, json_t *block);

#endif

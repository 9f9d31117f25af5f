/* content.h - results in the form that a revision knows, as JSON text */
#ifndef MCP_CONTENT_H
#define MCP_CONTENT_H

#include "supervisor/mcp/era.h"
#include "supervisor/mcp/mcp.h"

/* content_tool_result - a CallToolResult; content is only read, and what the
 * revision has no member for is left out.  The caller frees. */
char *content_tool_result(const struct era_revision *rev,
    const struct mcp_content *content, enum mcp_outcome outcome);

#endif

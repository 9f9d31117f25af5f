/*
 * methods_tasks.h - tasks, as the other files of mcp/ meet them
 *
 * The functions of offer.h for tasks are methods_tasks.c's, too.
 */
#ifndef MCP_METHODS_TASKS_H
#define MCP_METHODS_TASKS_H

#include <jansson.h>

#include "supervisor/mcp/mcp_call.h"
#include "supervisor/mcp/provider.h"
#include "supervisor/mcp/registry.h"

/*
 * tasks_admit - a tool's call, by what its client says of tasks and its
 * definition allows; *out is the call's part
 *
 * false: r is answered (MCP 2025-11-25, tasks, tool-level negotiation).
 */
bool tasks_admit(struct mcp_request *r, const struct mcp_context *c,
    const struct registry_tool *tool, struct call_task *out) MUSTCHECK;
/* tasks_need_extension - a request that is about tasks, of who did not declare
 * the extension */
void tasks_need_extension(struct mcp_request *r);

#endif

/* internal.h - the structures that the files of mcp/ share */
#ifndef MCP_INTERNAL_H
#define MCP_INTERNAL_H

#include <sys/queue.h>

#include "supervisor/mcp/inflight.h"
#include "supervisor/mcp/mcp.h"
#include "supervisor/mcp/registry.h"
#include "supervisor/mcp/session.h"

TAILQ_HEAD(exchange_list, mcp_request);

struct mcp {
	char *name, *title, *version, *instructions; /* the last may be NULL */
	size_t body_max;
	struct session_keeper *sessions;
	struct registry *registry;
	struct inflight *inflight;
	struct exchange_list exchanges; /* not answered yet, oldest first */
	struct mcp_stats stats; /* calls_active is counted by inflight */
};

#endif

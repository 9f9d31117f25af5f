/* mcp_int.h - the structures that the files of mcp/ share */
#ifndef MCP_MCP_INT_H
#define MCP_MCP_INT_H

#include <sys/queue.h>

#include "supervisor/mcp/inflight.h"
#include "supervisor/mcp/mcp.h"
#include "supervisor/mcp/registry.h"
#include "supervisor/mcp/session.h"
#include "supervisor/mcp/stream.h"

struct mcp_provider;
TAILQ_HEAD(exchange_list, mcp_exchange);

struct mcp {
	char *name, *title, *version, *instructions; /* the last may be NULL */
	size_t body_max;
	struct session_keeper *sessions;
	struct registry *registry;
	struct inflight *inflight;
	const struct mcp_provider *const *providers;
	size_t nproviders;
	struct exchange_list exchanges; /* not answered yet, oldest first */
	struct mcp_stream_list streams;
	uint32_t heartbeat_ms;
};

#endif

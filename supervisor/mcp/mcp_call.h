/*
 * mcp_call.h - one tools/call, from its start to the tool's word
 *
 * It is the struct call of its request (common/call.h): progress goes up
 * through it to the client that asked for it, a notifications/cancelled comes
 * down to whoever holds it.  It outlives its request when the client leaves
 * or cancels: the tool still ends it, and nothing is sent.  It outlives even
 * the server (mcp_free) when the tool is later than that.
 */
#ifndef MCP_MCP_CALL_H
#define MCP_MCP_CALL_H

#include <jansson.h>

#include "common/base.h"
#include "supervisor/mcp/exchange.h"
#include "supervisor/mcp/rpc.h"

struct mcp_call_start {
	const struct session *session;
	struct principal *who;      /* the call takes a reference */
	const char *request_id;     /* of the transport, for logs */
	const char *progress_token; /* JSON text, or NULL */
};

/*
 * mcp_call_start - hand the exchange's request to a tool
 *
 * The tool may end the call at once: r may have ended on return (it is pinned
 * by the caller).  Answers itself when the call cannot be taken.
 */
void mcp_call_start(struct mcp_request *r, const struct tool *tool,
    json_t *arguments, const struct mcp_call_start *with);
/* mcp_call_cancel - notifications/cancelled for a request id of this session;
 * unknown ones are ignored */
void mcp_call_cancel(
    struct mcp *m, const struct session *session, const char *request_id);
/* mcp_call_lose_client - its exchange ended; nothing is told to the tool */
void mcp_call_lose_client(struct mcp_call *c);
/* mcp_call_orphan_all - for mcp_free: what tools still hold stays valid */
void mcp_call_orphan_all(struct mcp *m);

#endif

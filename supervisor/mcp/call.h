/*
 * call.h - one tools/call, from its start to the tool's word
 *
 * A call outlives its exchange when the client leaves or cancels: the tool
 * still ends it, and nothing is sent.  It outlives even the server (mcp_free)
 * when the tool is later than that.
 */
#ifndef MCP_CALL_H
#define MCP_CALL_H

#include <jansson.h>

#include "common/base.h"
#include "supervisor/mcp/exchange.h"
#include "supervisor/mcp/rpc.h"

struct call_start {
	const struct session *session;
	const char *principal;
	const void *principal_ref;
	const char *progress_token; /* JSON text, or NULL */
};

/*
 * call_start - hand the exchange's request to a tool
 *
 * The tool may end the call at once: r may have ended on return (it is pinned
 * by the caller).  Answers itself when the call cannot be taken.
 */
void call_start(struct mcp_request *r, const struct tool *tool,
    json_t *arguments, const struct call_start *with);
/* call_cancel - notifications/cancelled for a request id of this session;
 * unknown ones are ignored */
void call_cancel(
    struct mcp *m, const struct session *session, const char *request_id);
/* call_lose_client - its exchange ended; nothing is told to the tool */
void call_lose_client(struct mcp_call *c);
/* call_orphan_all - for mcp_free: what tools still hold stays valid */
void call_orphan_all(struct mcp *m);

#endif

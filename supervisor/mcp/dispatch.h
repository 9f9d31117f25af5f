/* dispatch.h - the methods: which there are, and what each answers */
#ifndef MCP_DISPATCH_H
#define MCP_DISPATCH_H

#include "supervisor/mcp/exchange.h"
#include "supervisor/mcp/rpc.h"

/* Where a message stands: session is NULL for initialize only. */
struct dispatch {
	const struct rpc_message *message;
	const struct session *session;
	struct principal *who;
	const char *request_id; /* of the transport */
};

/* Each ends the exchange, or leaves it to a tool call (dispatch_request). */
void dispatch_initialize(struct mcp_request *r, const struct dispatch *d);
void dispatch_request(struct mcp_request *r, const struct dispatch *d);
void dispatch_notification(struct mcp_request *r, const struct dispatch *d);

#endif

/*
 * mcp_adapter.h - HTTP exchanges answered by the MCP library
 *
 * Between mcp/, which knows no HTTP, and http/, which knows no MCP.  It knows
 * nothing of the front: whoever serves the library over HTTP has one.
 */
#ifndef FRONT_MCP_ADAPTER_H
#define FRONT_MCP_ADAPTER_H

#include "supervisor/http/http.h"
#include "supervisor/mcp/mcp.h"

struct mcp_adapter {
	struct mcp *mcp;
	/* May the client of x have one stream more?  *place is given to
	 * drop_stream when it has ended.  NULL: always, and no drop_stream. */
	int (*take_stream)(const struct http_exchange *x, void **place,
	    void *arg, struct err *e);
	void (*drop_stream)(void *place);
	void *arg;
	/* The path of MCP_ROUTE_MESSAGES without its slash; NULL: HTTP+SSE is
	 * not served. */
	const char *messages;
};

/*
 * mcp_adapter_take - x is the library's to answer from now on
 *
 *	a		kept by pointer, until x is answered
 *	message		the body, read; only until this returns.  NULL: the
 *			library reads the body of x
 *	bytes		of the body that was read to message
 */
void mcp_adapter_take(const struct mcp_adapter *a, struct http_exchange *x,
    enum mcp_route route, struct mcp_message *message, size_t bytes);

#endif

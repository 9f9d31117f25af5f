/* ladder.h - a server with tools, and the messages that the tests of its
 * answers send */
#ifndef TESTS_MCP_LADDER_H
#define TESTS_MCP_LADDER_H

#include "tests/unit/mcp/fake.h"
#include "tests/unit/test.h"

static inline int
setup(void **state)
{
	struct mcp *m = fake_server();

	fake_add_tools(m);
	*state = m;
	return 0;
}

static inline int
teardown(void **state)
{
	mcp_free(*state);
	return fake_teardown(state);
}

#define PING "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"
#define LIST "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}"
#define NOTIFY "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"
/* A request of MCP 2026-07-28 with these members of params before _meta, each
 * followed by a comma. */
#define ENVELOPE                                                               \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"              \
	"\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define MODERN(method, members)                                                \
	"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"" method                   \
	"\",\"params\":{" members ENVELOPE "}}"
#define MODERN_CALL(name, arguments)                                           \
	MODERN("tools/call",                                                   \
	    "\"name\":\"" name "\",\"arguments\":" arguments ",")
#define CALL(name, arguments)                                                  \
	"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{" \
	"\"name\":\"" name "\",\"arguments\":" arguments "}}"

#endif

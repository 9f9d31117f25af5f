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
#define CALL(name, arguments)                                                  \
	"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{" \
	"\"name\":\"" name "\",\"arguments\":" arguments "}}"

#endif

/* call_ground.h - a server with tools, a session and its client: where the
 * tests of tool calls stand */
#ifndef TESTS_MCP_CALL_GROUND_H
#define TESTS_MCP_CALL_GROUND_H

#include "tests/unit/mcp/fake.h"
#include "tests/unit/test.h"

struct ground {
	struct mcp *m;
	char *session;
	struct fake_client client;
};

static inline int
setup(void **state)
{
	struct ground *g = xcalloc(1, sizeof(*g));

	g->m = fake_server();
	fake_add_tools(g->m);
	g->session = fake_session(g->m);
	g->client = fake_client(g->session);
	*state = g;
	return 0;
}

static inline int
teardown(void **state)
{
	struct ground *g = *state;

	mcp_free(g->m);
	free(g->session);
	free(g);
	return fake_teardown(state);
}

#define SLOW(id)                                                               \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\","        \
	"\"params\":{\"name\":\"slow\"}}"
#define TOKEN(name, id, token)                                                 \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\","        \
	"\"params\":{\"name\":\"" name                                         \
	"\",\"_meta\":{\"progressToken\":" token "}}}"
#define CANCEL(id)                                                             \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","         \
	"\"params\":{\"requestId\":" id ",\"reason\":\"r\"}}"

static inline void
cancel(struct ground *g, const char *text)
{
	struct fake_answer a;

	fake_post(g->m, &g->client, text, &a);
	assert_int_equal(a.status, 202);
	fake_clear(&a);
}

/* Calls of alice that did not end: each holds her, and their count does. */
static inline unsigned int
active(void)
{
	return fake_alice.refs == 1 ? 0 : fake_alice.refs - 2;
}

#endif

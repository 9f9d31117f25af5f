/*
 * fuzz_batch.c - whatever a session of MCP 2025-03-26 can send as a batch
 *
 * The first byte says how its calls end, the rest is the body.  What is checked
 * besides memory: the POST is answered once, however many messages it had, by
 * JSON or by a stream of it; and no call is left behind.
 */
#include <sys/uio.h>

#include <jansson.h>

#include "common/base.h"
#include "common/clock.h"
#include "common/js.h"
#include "supervisor/mcp/mcp.h"
#include "supervisor/mcp/rpc.h"
#include "tests/fuzz/fuzz.h"

struct post {
	int starts, over;
};

static struct mcp *server;
static char session[256];
static struct mcp_call *held[RPC_BATCH_MAX];
static unsigned int nheld;

static void
require_json(const char *text, size_t len)
{
	json_t *j;

	if (text == NULL)
		return;
	j = json_loadb(
	    text, len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
	REQUIRE(j != NULL);
	json_decref(j);
}

static void
reply_cb(void *handle, int status, const char *session_id, const char *body,
    size_t len)
{
	struct post *p = handle;

	REQUIRE(p->starts == 0 && p->over == 0);
	REQUIRE(status >= 200 && status < 500);
	if (session_id != NULL && session[0] == '\0')
		(void)strncpy(session, session_id, sizeof(session) - 1);
	require_json(body, len);
	p->over++;
}

static void
start_cb(void *handle, const char *session_id)
{
	struct post *p = handle;

	(void)session_id;
	REQUIRE(p->starts == 0 && p->over == 0);
	p->starts++;
}

static void
write_cb(void *handle, const struct iovec *pieces, int n)
{
	const struct post *p = handle;

	REQUIRE(p->starts == 1 && p->over == 0);
	if (n == 3) /* a message: its head, the JSON, an empty line */
		require_json(pieces[1].iov_base, pieces[1].iov_len);
}

static void
end_cb(void *handle)
{
	struct post *p = handle;

	REQUIRE(p->starts == 1 && p->over == 0);
	p->over++;
}

static size_t
pending_cb(void *handle)
{
	(void)handle;
	return 0;
}

static const struct mcp_transport_ops ops = {.reply = reply_cb,
    .stream_start = start_cb,
    .stream_write = write_cb,
    .stream_pending = pending_cb,
    .stream_end = end_cb};

static struct principal alice = {
    .refs = 1, .tenant = {1}, .tenant_name = "p", .subject = "alice"};

static void
end_call(struct mcp_call *c)
{
	struct mcp_content *content = mcp_content_new();

	call_progress(mcp_call_base(c), &(struct call_progress){1, "m"});
	mcp_content_text(content, "x", 1);
	mcp_call_result(c, content, MCP_TOOL_DONE);
}

static void
quick_cb(struct mcp_call *c, json_t *arguments, void *arg)
{
	(void)arguments;
	(void)arg;
	end_call(c);
}

static void
slow_cb(struct mcp_call *c, json_t *arguments, void *arg)
{
	(void)arguments;
	(void)arg;
	REQUIRE(nheld < ARRAY_LEN(held));
	held[nheld++] = c;
}

static void
add(const char *name, mcp_tool_cb cb)
{
	AUTO(auto_json)
	json_t *definition = json_pack("{s:s, s:s, s:{s:s}}", "name", name,
	    "description", "d", "inputSchema", "type", "object");

	REQUIRE(mcp_add_tool(server, definition, cb, NULL, NULL) == 0);
}

static struct mcp_exchange *
post(struct post *p, const void *body, size_t len)
{
	struct mcp_http http = {.method = "POST",
	    .content_type = "application/json",
	    .accept = "application/json, text/event-stream",
	    .session_id = session[0] != '\0' ? session : NULL,
	    .body = body,
	    .body_len = len,
	    .who = &alice,
	    .request_id = "1"};

	return mcp_handle(server, &http, &ops, p);
}

static void
set_up(void)
{
	static const uint8_t key[32] = {1, 2, 3};
	static const struct mcp_config config = {.name = "fuzz",
	    .version = "1",
	    .session_key = key,
	    .session_key_len = sizeof(key),
	    .session_ttl_s = 1u << 30,
	    .body_max = 1u << 20,
	    .heartbeat_ms = 15000};
	static const char init[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\","
	    "\"params\":{\"protocolVersion\":\"2025-03-26\"}}";
	struct post p = {0, 0};

	server = mcp_new(&config);
	add("e", quick_cb);
	add("w", slow_cb);
	REQUIRE(post(&p, init, sizeof(init) - 1) == NULL && p.over == 1);
	REQUIRE(session[0] != '\0');
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct post p = {0, 0};
	struct mcp_exchange *x;

	if (server == NULL)
		set_up();
	if (size < 1)
		return 0;
	x = post(&p, data + 1, size - 1);
	REQUIRE((x != NULL) == (p.over == 0));
	REQUIRE(x == NULL || nheld > 0);
	if ((data[0] & 1) != 0)
		mcp_tick(server, clock_mono_ms() + 5000);
	if ((data[0] & 2) != 0 && x != NULL)
		mcp_client_gone(x);
	for (unsigned int i = 0; i < nheld; i++)
		end_call(held[(data[0] & 4) != 0 ? nheld - 1 - i : i]);
	nheld = 0;
	REQUIRE(x == NULL || p.over == ((data[0] & 2) == 0));
	REQUIRE(alice.refs == 1);
	return 0;
}

/*
 * fuzz_rpc.c - whatever a client can send to the MCP endpoint
 *
 * The first bytes choose the headers, the rest is the body.  What is checked
 * besides memory: every exchange is answered once or waits for its call, or for
 * an answer to the question that the call has, a body sent back is JSON without
 * a newline, and no call is left behind.
 * Build: clang -fsanitize=fuzzer,address,undefined with libmcp and libcommon.
 */
#include <sys/uio.h>

#include <jansson.h>

#include "common/base.h"
#include "common/clock.h"
#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/mcp.h"
#include "supervisor/mcp/offer.h"
#include "tests/fuzz/fuzz.h"

struct exchange {
	int starts, over;
};

static struct mcp *server;
static char session[128];
static struct mcp_call *held;
static char question[128]; /* the id of one that was sent */

static void
require_json(const char *text, size_t len)
{
	json_t *j;

	if (text == NULL)
		return;
	REQUIRE(memchr(text, '\n', len) == NULL);
	j = json_loadb(
	    text, len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
	REQUIRE(j != NULL);
	json_decref(j);
}

static void
reply_cb(void *handle, int status, const char *session_id, const char *body,
    size_t len)
{
	struct exchange *x = handle;

	REQUIRE(x->starts == 0 && x->over == 0);
	REQUIRE(status >= 200 && status < 500);
	REQUIRE(session_id == NULL || status == 200);
	if (session_id != NULL && session[0] == '\0')
		(void)strncpy(session, session_id, sizeof(session) - 1);
	require_json(body, len);
	x->over++;
}

static void
start_cb(void *handle, const char *session_id)
{
	struct exchange *x = handle;

	(void)session_id;
	REQUIRE(x->starts == 0 && x->over == 0);
	x->starts++;
}

static void
note_question(const char *text, size_t len)
{
	AUTO(auto_json) json_t *j = json_loadb(text, len, JSON_ALLOW_NUL, NULL);

	if (strcmp(js_text(j, "method"), "roots/list") == 0)
		(void)strncpy(question, js_text(j, "id"), sizeof(question) - 1);
}

static void
write_cb(void *handle, const struct iovec *pieces, int n)
{
	struct exchange *x = handle;

	REQUIRE(x->starts == 1 && x->over == 0);
	if (n == 3) { /* a message: its head, the JSON, an empty line */
		require_json(pieces[1].iov_base, pieces[1].iov_len);
		note_question(pieces[1].iov_base, pieces[1].iov_len);
	}
}

static void
end_cb(void *handle)
{
	struct exchange *x = handle;

	REQUIRE(x->starts == 1 && x->over == 0);
	x->over++;
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

static struct principal p_alice = {
    .refs = 1, .tenant = {1}, .tenant_name = "p", .subject = "alice"};
static struct principal p_bob = {
    .refs = 1, .tenant = {1}, .tenant_name = "p", .subject = "bob"};

static void
progress(struct mcp_call *c, const char *text)
{
	call_progress(mcp_call_base(c), &(struct call_progress){1, text});
}

static void
result(struct mcp_call *c, json_t *structured)
{
	struct mcp_content *content = mcp_content_new();

	mcp_content_text(content, "x", 1);
	mcp_content_structured(content, structured);
	mcp_call_result(c, content, MCP_TOOL_DONE);
}

static void
echo_cb(struct mcp_call *c, json_t *arguments, void *arg)
{
	(void)arg;
	progress(c, "m");
	result(c, json_deep_copy(arguments));
}

static void
slow_cb(struct mcp_call *c, json_t *arguments, void *arg)
{
	(void)arguments;
	(void)arg;
	held = c;
}

/* false: the client is asked first. */
static bool
has_asked(struct mcp_call *c)
{
	if (mcp_call_answers(c) != NULL)
		return true;
	if (mcp_call_can(c, MCP_CAN_LIST_ROOTS))
		mcp_call_ask(c,
		    json_pack("{s:{s:s}}", "k", "method", "roots/list"), "s");
	else
		mcp_call_need(c, MCP_CAN_LIST_ROOTS);
	return false;
}

static void
ask_cb(struct mcp_call *c, json_t *arguments, void *arg)
{
	(void)arguments;
	(void)arg;
	if (has_asked(c))
		result(c, json_deep_copy(mcp_call_answers(c)));
}

static void
prompt_cb(struct mcp_call *c, const json_t *arguments, void *arg)
{
	(void)arg;
	mcp_call_answer(c,
	    json_pack("{s:[{s:s, s:{s:s, s:s}}]}", "messages", "role", "user",
		"content", "type", "text", "text", js_text(arguments, "a")));
}

static void
list_cb(struct mcp_call *c, const char *cursor, void *arg)
{
	(void)arg;
	mcp_call_answer(
	    c, json_pack("{s:[], s:s*}", "resources", "nextCursor", cursor));
}

static void
read_cb(struct mcp_call *c, const char *uri, void *arg)
{
	(void)arg;
	if (uri[0] == 'n')
		mcp_call_no_resource(c, uri);
	else if (uri[0] != 'q' || has_asked(c))
		mcp_call_answer(c,
		    json_pack("{s:[{s:s, s:s}]}", "contents", "uri", uri,
			"text", ""));
}

static void
complete_cb(struct mcp_call *c, const struct mcp_completion *what, void *arg)
{
	(void)arg;
	mcp_call_answer(
	    c, json_pack("{s:{s:[s]}}", "completion", "values", what->value));
}

static void
add_others(void)
{
	static const struct mcp_resource_ops resources = {
	    .list = list_cb, .read = read_cb};
	AUTO(auto_json)
	json_t *prompt = json_pack("{s:s, s:[{s:s, s:b}]}", "name", "p",
	    "arguments", "name", "a", "required", 1);
	AUTO(auto_json)
	json_t *templates =
	    json_pack("[{s:s, s:s}]", "uriTemplate", "x://{a}", "name", "t");

	REQUIRE(mcp_add_prompt(server, prompt, prompt_cb, NULL, NULL) == 0);
	mcp_set_resources(server, templates, &resources, NULL);
	mcp_set_completion(server, complete_cb, NULL);
}

static void
add(const char *text, mcp_tool_cb cb)
{
	json_t *definition = json_loads(text, 0, NULL);

	REQUIRE(definition != NULL);
	REQUIRE(mcp_add_tool(server, definition, cb, NULL, NULL) == 0);
	json_decref(definition);
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
	    "\"params\":{\"protocolVersion\":\"2025-11-25\","
	    "\"capabilities\":{\"roots\":{}}}}";
	struct mcp_http http = {.method = "POST",
	    .content_type = "application/json",
	    .body = init,
	    .body_len = sizeof(init) - 1,
	    .who = &p_alice,
	    .request_id = "1"};
	struct exchange x = {0, 0};

	server = mcp_new(&config);
	add("{\"name\":\"e\",\"description\":\"d\",\"inputSchema\":{\"type\":"
	    "\"object\",\"properties\":{\"i\":{\"type\":\"integer\","
	    "\"minimum\":0},\"s\":{\"type\":\"string\",\"minLength\":1,"
	    "\"maxLength\":3,\"pattern\":\"^[a-z]+$\"},\"a\":{\"anyOf\":[{"
	    "\"type\":\"object\",\"additionalProperties\":{\"type\":["
	    "\"string\",\"number\"]}},{\"type\":\"array\",\"maxItems\":2,"
	    "\"items\":{\"enum\":[\"x\",1,null]}}]},\"o\":{}},"
	    "\"additionalProperties\":false}}",
	    echo_cb);
	add("{\"name\":\"w\",\"description\":\"d\",\"inputSchema\":{\"type\":"
	    "\"object\"}}",
	    slow_cb);
	add("{\"name\":\"q\",\"description\":\"d\",\"inputSchema\":{\"type\":"
	    "\"object\"}}",
	    ask_cb);
	add_others();
	REQUIRE(mcp_handle(server, &http, &ops, &x) == NULL && x.over == 1);
	REQUIRE(session[0] != '\0');
}

/* The client answers what it was asked, or not. */
static void
answer(struct mcp_exchange *r, struct exchange *x, unsigned int how)
{
	static const char *const outcomes[] = {"\"result\":{\"roots\":[]}",
	    "\"result\":7", "\"error\":{\"code\":1,\"message\":\"no\"}"};
	struct exchange other = {0, 0};
	AUTO(auto_free) char *body = NULL;
	struct mcp_http http = {.method = "POST",
	    .content_type = "application/json",
	    .session_id = session,
	    .who = &p_alice,
	    .request_id = "3"};

	REQUIRE(question[0] != '\0');
	body = xasprintf("{\"jsonrpc\":\"2.0\",\"id\":\"%s\",%s}", question,
	    outcomes[how % ARRAY_LEN(outcomes)]);
	question[0] = '\0';
	http.body = body;
	http.body_len = strlen(body);
	if (how % 4 == 3) {
		mcp_client_gone(r);
		x->over++;
	}
	REQUIRE(mcp_handle(server, &http, &ops, &other) == NULL);
	REQUIRE(other.over == 1 && x->over == 1);
}

/* End the call that waits, in one of the ways it can end. */
static void
finish(struct mcp_exchange *r, struct exchange *x, unsigned int how)
{
	struct mcp_call *c = held;

	held = NULL;
	REQUIRE((r != NULL) == (x->over == 0));
	if (r != NULL && c == NULL)
		answer(r, x, how);
	question[0] = '\0';
	if (c == NULL)
		return;
	if ((how & 1) != 0)
		mcp_tick(server, clock_mono_ms() + 5000);
	progress(c, "\xff");
	if ((how & 2) != 0) {
		mcp_client_gone(r);
		result(c, json_object());
		REQUIRE(x->over == 0);
		return;
	}
	result(c, json_object());
	REQUIRE(x->over == 1);
}

/* The headers of MCP 2026-07-28 that repeat what the body says. */
static void
repeat_in_headers(const json_t *body, struct mcp_http *http)
{
	const json_t *params = json_object_get(body, "params");
	const char *name = js_plain(json_object_get(params, "name"));

	http->mcp_method = js_plain(json_object_get(body, "method"));
	http->mcp_name =
	    name != NULL ? name : js_plain(json_object_get(params, "uri"));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const methods[] = {"POST", "POST", "POST", "GET"};
	static const char *const accepts[] = {
	    "application/json, text/event-stream", "text/event-stream", NULL,
	    "text/*;q=0, application/json ;q=0.1,"};
	static const char *const versions[] = {
	    NULL, "2025-11-25", "2025-06-18", "2026-07-28"};
	struct exchange x = {0, 0};
	struct mcp_http http = {.content_type = "application/json"};
	AUTO(auto_json) json_t *body = NULL;
	struct mcp_exchange *r;

	if (server == NULL)
		set_up();
	if (size < 2)
		return 0;
	http.method = methods[data[0] & 3];
	http.accept = accepts[data[0] >> 2 & 3];
	http.protocol_version = versions[data[0] >> 4 & 3];
	http.who = data[0] >> 6 == 3 ? &p_bob : &p_alice;
	http.request_id = "2";
	http.session_id = (data[1] & 1) != 0 ? NULL : session;
	http.body = data + 2;
	http.body_len = size - 2;
	body = json_loadb(http.body, http.body_len, JSON_ALLOW_NUL, NULL);
	repeat_in_headers(body, &http);
	r = mcp_handle(server, &http, &ops, &x);
	finish(r, &x, data[1] >> 1);
	/* No call holds who called. */
	REQUIRE(p_alice.refs == 1 && p_bob.refs == 1);
	return 0;
}

/*
 * fuzz_ladder.c - one request of any revision, with its headers
 *
 *	POST then [gone]
 *	Header: value
 *
 *	{"jsonrpc": ...}
 *
 * The first line has the method, and how its calls end: after some time, after
 * the client left.  Mcp-Session-Id is a digit: the session of that revision, as
 * the table has them.  What is checked besides memory: every exchange is
 * answered once, an answer is JSON, and what is legacy in its body and its
 * header never gets what says "this server is modern".
 */
#include <strings.h>
#include <sys/uio.h>

#include "common/clock.h"
#include "common/js.h"
#include "supervisor/mcp/era.h"
#include "supervisor/mcp/mcp.h"
#include "supervisor/mcp/rpc.h"
#include "tests/fuzz/fuzz.h"

#define LINES_MAX 32

static struct mcp *server;
static char *sessions[ERA_REVISIONS];
static struct mcp_call *held[RPC_BATCH_MAX];
static unsigned int nheld;

static struct principal p_alice = {
    .refs = 1, .tenant = {1}, .tenant_name = "p", .subject = "alice"};

/* ---- a transport */

struct exchange {
	int starts, over, status;
	bool is_modern; /* the body or the header says so */
	char *session;
	char *names[LINES_MAX], *values[LINES_MAX];
	unsigned int nlines;
};

static void
check_error(const struct exchange *x, const json_t *message)
{
	json_int_t code = json_integer_value(
	    json_object_get(json_object_get(message, "error"), "code"));

	REQUIRE(x->is_modern || code > MCP_HEADER_MISMATCH ||
	    code < MCP_VERSION_UNSUPPORTED);
	REQUIRE(
	    x->is_modern || x->status != 404 || code != MCP_METHOD_NOT_FOUND);
}

static void
check_message(const struct exchange *x, const char *text, size_t len)
{
	AUTO(auto_json)
	json_t *all = json_loadb(
	    text, len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
	const json_t *message;
	size_t i;

	REQUIRE(all != NULL && memchr(text, '\n', len) == NULL);
	if (json_is_object(all))
		check_error(x, all);
	json_array_foreach (all, i, message)
		check_error(x, message);
}

static void
reply_cb(void *handle, int status, const char *session_id, const char *body,
    size_t len)
{
	struct exchange *x = handle;

	REQUIRE(x->starts == 0 && x->over == 0);
	REQUIRE(status >= 200 && status < 500);
	x->over++;
	x->status = status;
	x->session = session_id == NULL ? NULL : xstrdup(session_id);
	if (body != NULL)
		check_message(x, body, len);
}

static void
start_cb(void *handle, const char *session_id)
{
	struct exchange *x = handle;

	(void)session_id;
	REQUIRE(x->starts == 0 && x->over == 0);
	x->starts++;
	x->status = 200;
}

static void
write_cb(void *handle, const struct iovec *pieces, int n)
{
	const struct exchange *x = handle;

	REQUIRE(x->starts == 1 && x->over == 0);
	if (n == 3 && ((const char *)pieces[1].iov_base)[0] == '{')
		check_message(x, pieces[1].iov_base, pieces[1].iov_len);
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

static const char *
header_cb(void *handle, const char *name, unsigned int *lines)
{
	const struct exchange *x = handle;
	const char *first = NULL;

	*lines = 0;
	for (unsigned int i = 0; i < x->nlines; i++)
		if (strcasecmp(x->names[i], name) == 0 && (*lines)++ == 0)
			first = x->values[i];
	return first;
}

/* ---- tools */

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
add(const char *text, mcp_tool_cb cb)
{
	json_t *definition = json_loads(text, 0, NULL);

	REQUIRE(definition != NULL);
	REQUIRE(mcp_add_tool(server, definition, cb, NULL, NULL) == 0);
	json_decref(definition);
}

static char *
begin_session(const char *revision)
{
	AUTO(auto_free)
	char *init =
	    xasprintf("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\","
		      "\"params\":{\"protocolVersion\":\"%s\"}}",
		revision);
	struct mcp_http http = {.method = "POST",
	    .content_type = "application/json",
	    .body = init,
	    .body_len = strlen(init),
	    .who = &p_alice,
	    .request_id = "1"};
	struct exchange x = {0};

	REQUIRE(mcp_handle(server, &http, &ops, &x) == NULL);
	REQUIRE(x.session != NULL);
	return x.session;
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

	server = mcp_new(&config);
	add("{\"name\":\"q\",\"description\":\"d\",\"inputSchema\":{\"type\":"
	    "\"object\",\"properties\":{\"s\":{\"type\":\"string\","
	    "\"x-mcp-header\":\"S\"},\"o\":{\"type\":\"object\",\"properties\":"
	    "{\"i\":{\"type\":\"integer\",\"x-mcp-header\":\"I\"},\"b\":{"
	    "\"type\":\"boolean\",\"x-mcp-header\":\"B\"}}}}}}",
	    quick_cb);
	add("{\"name\":\"w\",\"description\":\"d\",\"inputSchema\":{\"type\":"
	    "\"object\"}}",
	    slow_cb);
	for (size_t i = 0; i < ERA_REVISIONS; i++)
		sessions[i] = begin_session(era_table[i].date);
}

/* ---- an input */

/* Fields of struct mcp_http by their headers. */
static void
take_line(struct exchange *x, struct mcp_http *http, char *name, char *value)
{
	const struct {
		const char *name, **field;
	} known[] = {{"Content-Type", &http->content_type},
	    {"Accept", &http->accept}, {"Mcp-Session-Id", &http->session_id},
	    {"MCP-Protocol-Version", &http->protocol_version},
	    {"Last-Event-ID", &http->last_event_id},
	    {"Mcp-Method", &http->mcp_method}, {"Mcp-Name", &http->mcp_name}};

	if (x->nlines == LINES_MAX)
		return;
	x->names[x->nlines] = name;
	x->values[x->nlines++] = value;
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strcasecmp(known[i].name, name) == 0)
			*known[i].field = value;
}

/* The text behind the headers. */
static char *
take_head(struct exchange *x, struct mcp_http *http, char *text)
{
	while (text != NULL && *text != '\n') {
		char *line = text, *colon;

		text = fuzz_cut_line(line);
		colon = strstr(line, ": ");
		if (colon == NULL)
			continue;
		*colon = '\0';
		take_line(x, http, line, colon + 2);
	}
	return text == NULL ? NULL : text + 1;
}

static void
take_session(struct mcp_http *http)
{
	const char *digit = http->session_id;

	if (digit != NULL && *digit >= '0' && *digit < '0' + ERA_REVISIONS &&
	    digit[1] == '\0')
		http->session_id = sessions[*digit - '0'];
}

static void
finish(struct mcp_exchange *r, const struct exchange *x, const char *how)
{
	bool leaves = r != NULL && strstr(how, "gone") != NULL;

	REQUIRE((r != NULL) == (x->over == 0));
	if (strstr(how, "then") != NULL)
		mcp_tick(server, clock_mono_ms() + 5000);
	if (leaves)
		mcp_client_gone(r);
	for (unsigned int i = 0; i < nheld; i++)
		end_call(held[i]);
	nheld = 0;
	REQUIRE(r == NULL || x->over == (leaves ? 0 : 1));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(auto_free) char *text = xmalloc(size + 1);
	struct exchange x = {0};
	struct mcp_http http = {
	    .who = &p_alice, .request_id = "2", .header = header_cb};
	char *body;

	if (server == NULL)
		set_up();
	memcpy(text, data, size);
	text[size] = '\0';
	body = take_head(&x, &http, fuzz_cut_line(text));
	http.method = strncmp(text, "GET", 3) == 0 ? "GET" :
	    strncmp(text, "DELETE", 6) == 0        ? "DELETE" :
						     "POST";
	take_session(&http);
	/* A session that ended would be of no use to the inputs that come. */
	if (strcmp(http.method, "DELETE") == 0)
		http.session_id = NULL;
	http.body = body == NULL ? "" : body;
	http.body_len = body == NULL ? 0 : size - (size_t)(body - text);
	/* Escapes can write the same: those count as modern, too. */
	x.is_modern = era_is_modern(http.protocol_version) ||
	    (body != NULL &&
		(strstr(body, "protocolVersion\"") != NULL ||
		    strchr(body, '\\') != NULL));
	finish(mcp_handle(server, &http, &ops, &x), &x, text);
	free(x.session);
	REQUIRE(p_alice.refs == 1);
	return 0;
}

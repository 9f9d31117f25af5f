/*
 * fuzz_event_id.c - what a client sends to take up a stream: as the id of an
 * event, as the sessionId of a message of HTTP+SSE, and as the payload of an id
 * that has our MAC
 */
#include "common/clock.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/event_id.h"
#include "tests/fuzz/fuzz.h"

#define PAYLOAD_MAX (EVENT_ID_TEXT_MAX / 4 * 3 - SIGNED_MAC_LEN)
#define NOW_S 1800000000

static const uint8_t key[32] = "0123456789abcdef0123456789abcde";
static struct principal who = {
    .refs = 1, .tenant = {1}, .tenant_name = "one", .subject = "alice"};
static const struct session session; /* its id is all zeros */

static void
check(const struct event_id *id)
{
	REQUIRE(id->ntoken <= MCP_TOKEN_MAX);
	REQUIRE(strlen(id->tool) <= REGISTRY_NAME_MAX);
	REQUIRE(strlen(id->request) <= EVENT_ID_PART_MAX);
	REQUIRE(strlen(id->progress_token) <= EVENT_ID_PART_MAX);
	REQUIRE(NOW_S - id->sent_s <= EVENT_ID_AGE_MAX_S);
}

/* Nobody makes a MAC of ours by chance. */
static void
try_as_text(const struct text_signer *s, const char *text)
{
	struct event_id id;

	REQUIRE(event_id_parse(s, text, &session, &who, NOW_S, &id) ==
	    ERR_NOTFOUND);
}

static void
try_as_payload(const struct text_signer *s, const uint8_t *data, size_t size)
{
	char text[EVENT_ID_TEXT_MAX + 1], again[EVENT_ID_TEXT_MAX + 1];
	struct event_id id, same;

	size = (size + SIGNED_MAC_LEN) / 3 * 3;
	if (size <= SIGNED_MAC_LEN || size - SIGNED_MAC_LEN > PAYLOAD_MAX)
		return;
	signed_text_make(
	    s, "mcp event 1", data, size - SIGNED_MAC_LEN, &who, text);
	if (event_id_parse(s, text, &session, &who, NOW_S, &id) != 0)
		return;
	check(&id);
	event_id_format(s, &id, &who, NOW_S, again);
	REQUIRE(event_id_parse(s, again, &session, &who, NOW_S, &same) == 0);
	REQUIRE(strcmp(same.request, id.request) == 0);
	REQUIRE(same.ntoken == id.ntoken);
}

/* ---- a message of HTTP+SSE */

static int replies;

static void
reply_cb(void *handle, int status, const char *session_id, const char *body,
    size_t len)
{
	(void)handle;
	(void)session_id;
	(void)len;
	REQUIRE(status == 404 && body != NULL);
	replies++;
}

static const struct mcp_transport_ops ops = {.reply = reply_cb};

static void
try_as_stream(const char *text)
{
	static struct mcp *m;
	const struct mcp_http http = {.route = MCP_ROUTE_MESSAGES,
	    .method = "POST",
	    .content_type = "application/json",
	    .stream_id = text,
	    .body = "{}",
	    .body_len = 2,
	    .who = &who,
	    .request_id = "f"};

	if (m == NULL)
		m = mcp_new(&(struct mcp_config){.name = "fuzz",
		    .version = "1",
		    .session_key = key,
		    .session_key_len = sizeof(key),
		    .session_ttl_s = 3600,
		    .body_max = 1024,
		    .heartbeat_ms = 15000});
	replies = 0;
	REQUIRE(mcp_handle(m, &http, &ops, m) == NULL);
	REQUIRE(replies == 1);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct text_signer *s;
	AUTO(auto_free) char *text = xstrndup((const char *)data, size);

	if (s == NULL)
		s = text_signer_new(key, sizeof(key));
	try_as_text(s, text);
	try_as_stream(text);
	try_as_payload(s, data, size);
	return 0;
}

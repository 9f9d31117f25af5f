/*
 * mcp_endpoint.c - MCP_PATH: between mcp/, which knows no HTTP, and http/
 */
#include "supervisor/front/handlers.h"

#include <sys/uio.h>

#include <event2/buffer.h>

#include "common/js.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/core/quota_use.h"
#include "supervisor/front/bodies.h"

/* An HTTP exchange that the library answers; gone with its answer. */
struct endpoint {
	struct front *f;
	struct http_exchange *x;
	struct body_reading *reading; /* its body, on a thread; or */
	struct mcp_exchange *mcp;     /* NULL: inside mcp_handle */
	struct quota_use *use;        /* that counts its stream; NULL: none */
};

static void
endpoint_free(struct endpoint *p)
{
	if (p->use != NULL)
		quota_use_drop_stream(p->use);
	free(p);
}

static void
endpoint_on_gone(void *arg)
{
	struct endpoint *p = arg;

	if (p->reading != NULL)
		body_reading_cancel(p->reading);
	else
		mcp_client_gone(p->mcp);
	http_drop(p->x);
	endpoint_free(p);
}

/* ---- what the library says */

static void
endpoint_on_reply(void *handle, int status, const char *session_id,
    const char *body, size_t len)
{
	struct endpoint *p = handle;
	struct http_exchange *x = p->x;

	if (session_id != NULL)
		http_add_header(x, "Mcp-Session-Id", session_id);
	if (status == 429)
		http_add_header(x, "Retry-After", "1");
	if (status == 405)
		http_add_header(x, "Allow", "POST, DELETE, OPTIONS");
	http_add_header(x, "Cache-Control", "no-store");
	endpoint_free(p);
	http_reply(
	    x, status, body != NULL ? "application/json" : NULL, body, len);
}

static int
endpoint_on_stream_take(void *handle, struct err *e)
{
	struct endpoint *p = handle;
	struct quota_use *use = quota_use_of(
	    core_quota_uses(p->f->core), http_principal(p->x)->tenant);

	if (quota_use_add_stream(use, e) != 0)
		return e->code;
	p->use = use;
	return 0;
}

static void
endpoint_on_stream_start(void *handle, const char *session_id)
{
	const struct endpoint *p = handle;

	if (session_id != NULL)
		http_add_header(p->x, "Mcp-Session-Id", session_id);
	http_stream_start(p->x, NULL);
}

static void
endpoint_on_stream_write(void *handle, const struct iovec *pieces, int n)
{
	const struct endpoint *p = handle;
	struct evbuffer *out = http_buffer_new();

	for (int i = 0; i < n; i++)
		(void)evbuffer_add(out, pieces[i].iov_base, pieces[i].iov_len);
	http_stream_write(p->x, out);
	evbuffer_free(out);
}

static size_t
endpoint_on_stream_pending(void *handle)
{
	const struct endpoint *p = handle;

	return http_stream_pending(p->x);
}

static void
endpoint_on_stream_end(void *handle)
{
	struct endpoint *p = handle;
	struct http_exchange *x = p->x;

	endpoint_free(p);
	http_stream_end(x);
}

static const struct mcp_transport_ops endpoint_ops = {
    .reply = endpoint_on_reply,
    .stream_take = endpoint_on_stream_take,
    .stream_start = endpoint_on_stream_start,
    .stream_write = endpoint_on_stream_write,
    .stream_pending = endpoint_on_stream_pending,
    .stream_end = endpoint_on_stream_end,
};

/* ---- what a client says */

void
front_mcp_error(
    struct http_exchange *x, int status, int code, const char *message)
{
	json_t *o = json_pack("{s:s, s:{s:i, s:o, s:{s:s}}}", "jsonrpc", "2.0",
	    "error", "code", code, "message",
	    js_string_bytes(message, strlen(message), NULL), "data",
	    "request_id", http_id(x));

	http_reply_json(x, status, o);
}

static void
log_request(const struct http_exchange *x, const struct mcp_message *message)
{
	const char *method = mcp_message_method(message);

	log_info("mcp %s %.100s", http_id(x), method != NULL ? method : "?");
}

/* message NULL: the library reads the body. */
static void
ask_library(
    struct endpoint *p, struct mcp_message *message, const void *body, size_t n)
{
	struct http_exchange *x = p->x;
	char client[NETADDR_TEXT_MAX];
	const struct mcp_http h = {
	    .method = http_method(x) == HTTP_METHOD_POST ? "POST" :
		http_method(x) == HTTP_METHOD_GET        ? "GET" :
							   "DELETE",
	    .content_type = http_header(x, HTTP_H_CONTENT_TYPE),
	    .accept = http_header(x, HTTP_H_ACCEPT),
	    .session_id = http_header(x, HTTP_H_SESSION),
	    .protocol_version = http_header(x, HTTP_H_PROTOCOL),
	    .last_event_id = http_header(x, HTTP_H_LAST_EVENT_ID),
	    .body = body,
	    .body_len = n,
	    .message = message,
	    .who = http_principal(x),
	    .request_id = http_id(x),
	    .origin = netaddr_format(http_client(x), client),
	    .traceparent = http_header(x, HTTP_H_TRACEPARENT),
	};
	struct mcp_exchange *mcp;

	if (message != NULL && conf_bool(p->f->conf, CONF_LOG_MCP_REQUESTS))
		log_request(x, message);
	mcp = mcp_handle(p->f->mcp, &h, &endpoint_ops, p);
	if (mcp != NULL)
		p->mcp = mcp; /* else p is gone already */
}

static void
body_read_cb(struct mcp_message *message, size_t bytes, void *arg)
{
	struct endpoint *p = arg;

	p->reading = NULL;
	ask_library(p, message, NULL, bytes);
}

static void
take_small(struct endpoint *p)
{
	struct mcp_message *message = NULL;
	const void *body;
	size_t n;

	body = http_body(p->x, &n);
	if (http_method(p->x) == HTTP_METHOD_POST &&
	    conf_bool(p->f->conf, CONF_LOG_MCP_REQUESTS))
		message = mcp_message_read(body, n);
	ask_library(p, message, body, n);
	mcp_message_free(message);
}

/* A large message's place, or its refusal. */
static bool
has_room(struct front *f, struct http_exchange *x)
{
	enum bodies_room room = bodies_have_room(
	    f->bodies, http_principal(x)->tenant, http_body_bytes(x));
	char text[160];

	if (room == BODIES_ROOM)
		return true;
	http_add_header(x, "Retry-After", "1");
	if (room == BODIES_FULL) {
		front_mcp_error(x, 503, MCP_SERVER_ERROR,
		    "too many large messages are being read: try again later");
		return false;
	}
	(void)snprintf(text, sizeof(text),
	    "%u MiB of large messages of tenant %s wait to be read: await "
	    "their answers before you send more",
	    BODIES_TENANT_MAX >> 20, http_principal(x)->tenant_name);
	front_mcp_error(x, 429, MCP_SERVER_ERROR, text);
	return false;
}

static void
take_message(struct front *f, struct http_exchange *x)
{
	bool is_large = http_method(x) == HTTP_METHOD_POST &&
	    http_body_bytes(x) > BODIES_FROM;
	struct endpoint *p;

	if (is_large && !has_room(f, x))
		return;
	p = xcalloc(1, sizeof(*p));
	p->f = f;
	p->x = x;
	http_hold(x, endpoint_on_gone, p);
	if (is_large)
		p->reading = bodies_read(f->bodies, http_principal(x)->tenant,
		    http_take_body(x), body_read_cb, p);
	else
		take_small(p);
}

void
front_on_mcp(struct request *r)
{
	if (!front_greet(r->front, r->x))
		take_message(r->front, r->x);
}

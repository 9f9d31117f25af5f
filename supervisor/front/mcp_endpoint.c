/*
 * mcp_endpoint.c - MCP_PATH: between mcp/, which knows no HTTP, and http/
 */
#include "supervisor/front/front.h"

#include <sys/uio.h>

#include <event2/buffer.h>

#include "common/exit.h"
#include "common/js.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/front/greeting.h"

#define MCP_DEPTH_MAX 128 /* of a body parsed for its log line */

/* An HTTP exchange that the library answers; gone with its answer. */
struct endpoint {
	struct http_exchange *x;
	struct mcp_exchange *mcp; /* NULL: inside mcp_handle */
};

static void
endpoint_on_gone(void *arg)
{
	struct endpoint *p = arg;

	mcp_client_gone(p->mcp);
	http_drop(p->x);
	free(p);
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
	if (status == 405)
		http_add_header(x, "Allow", "POST, DELETE, OPTIONS");
	http_add_header(x, "Cache-Control", "no-store");
	free(p);
	http_reply(
	    x, status, body != NULL ? "application/json" : NULL, body, len);
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
	struct evbuffer *out = evbuffer_new();

	if (out == NULL)
		fatal(EXIT_MEMORY, "out of memory");
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

	free(p);
	http_stream_end(x);
}

static const struct mcp_transport_ops endpoint_ops = {
    .reply = endpoint_on_reply,
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
	char *text = js_dump(o);

	json_decref(o);
	http_add_header(x, "Cache-Control", "no-store");
	http_reply_owned(x, status, "application/json", text, strlen(text));
}

static void
log_request(const struct http_exchange *x, const void *body, size_t len)
{
	json_t *o = NULL;
	const char *method = NULL;

	if (js_parse(body, len, len, MCP_DEPTH_MAX, &o, NULL) == 0)
		method = json_string_value(json_object_get(o, "method"));
	log_info("mcp %s %.100s", http_id(x), method != NULL ? method : "?");
	json_decref(o);
}

static void
ask_library(struct front *f, struct http_exchange *x)
{
	struct endpoint *p = xcalloc(1, sizeof(*p));
	struct mcp_http h = {
	    .method = http_method(x) == HTTP_METHOD_POST ? "POST" :
		http_method(x) == HTTP_METHOD_GET        ? "GET" :
							   "DELETE",
	    .content_type = http_header(x, HTTP_H_CONTENT_TYPE),
	    .accept = http_header(x, HTTP_H_ACCEPT),
	    .session_id = http_header(x, HTTP_H_SESSION),
	    .protocol_version = http_header(x, HTTP_H_PROTOCOL),
	    .last_event_id = http_header(x, HTTP_H_LAST_EVENT_ID),
	    .who = http_principal(x),
	    .request_id = http_id(x),
	};
	struct mcp_exchange *mcp;

	h.body = http_body(x, &h.body_len);
	p->x = x;
	http_hold(x, endpoint_on_gone, p);
	if (http_method(x) == HTTP_METHOD_POST &&
	    conf_bool(f->conf, CONF_LOG_MCP_REQUESTS))
		log_request(x, h.body, h.body_len);
	mcp = mcp_handle(f->mcp, &h, &endpoint_ops, p);
	if (mcp != NULL)
		p->mcp = mcp; /* else p is gone already */
}

void
front_on_mcp(struct front *f, struct http_exchange *x)
{
	if (greeting_is_wanted(x))
		greeting_reply(f, x);
	else
		ask_library(f, x);
}

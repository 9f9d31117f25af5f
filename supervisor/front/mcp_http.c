#include "supervisor/front/front.h"

#include <event2/buffer.h>

#include "common/clock.h"
#include "common/js.h"
#include "common/log.h"
#include "common/xmalloc.h"

/* MCP over HTTP: between mcp/, which knows no HTTP library, and http.h. */

#define MCP_DEPTH_MAX 128 /* of a body parsed for its log line */

struct mcp_exchange {
	struct front *front;
	struct http_exchange *x;
	struct mcp_request *request; /* NULL: inside mcp_handle */
	bool streaming;
	uint64_t last_ms; /* when the stream had its last bytes */
	LIST_ENTRY(mcp_exchange) link;
};

static void
mcp_exchange_free(struct mcp_exchange *m)
{
	if (m->streaming)
		LIST_REMOVE(m, link);
	free(m);
}

static void
mcp_on_gone(void *arg)
{
	struct mcp_exchange *m = arg;
	struct http_exchange *x = m->x;

	mcp_client_gone(m->request);
	if (m->streaming)
		http_stream_end(x);
	else
		http_reply(x, 499, NULL, NULL, 0); /* for the log only */
	mcp_exchange_free(m);
}

/* ---- what the library says */

static void
mcp_on_reply(void *handle, int status, const char *session_id, const char *body,
    size_t len)
{
	struct mcp_exchange *m = handle;
	struct http_exchange *x = m->x;

	if (session_id != NULL)
		http_add_header(x, "Mcp-Session-Id", session_id);
	if (status == 405)
		http_add_header(x, "Allow", "POST, DELETE, OPTIONS");
	http_add_header(x, "Cache-Control", "no-store");
	mcp_exchange_free(m);
	http_reply(
	    x, status, body != NULL ? "application/json" : NULL, body, len);
}

static void
mcp_on_stream_start(void *handle, const char *session_id)
{
	struct mcp_exchange *m = handle;

	if (session_id != NULL)
		http_add_header(m->x, "Mcp-Session-Id", session_id);
	m->streaming = true;
	m->last_ms = clock_mono_ms();
	LIST_INSERT_HEAD(&m->front->mcp_streams, m, link);
	http_stream_start(m->x, NULL);
}

static void
stream_text(struct mcp_exchange *m, const char *before, const char *p, size_t n,
    const char *after)
{
	struct evbuffer *out = evbuffer_new();

	if (out == NULL)
		fatal(71, "out of memory");
	(void)evbuffer_add(out, before, strlen(before));
	(void)evbuffer_add(out, p, n);
	(void)evbuffer_add(out, after, strlen(after));
	m->last_ms = clock_mono_ms();
	http_stream_write(m->x, out);
	evbuffer_free(out);
}

static void
mcp_on_stream_send(void *handle, const char *data, size_t len)
{
	stream_text(handle, "event: message\ndata: ", data, len, "\n\n");
}

static size_t
mcp_on_stream_pending(void *handle)
{
	const struct mcp_exchange *m = handle;

	return http_stream_pending(m->x);
}

static void
mcp_on_stream_end(void *handle)
{
	struct mcp_exchange *m = handle;
	struct http_exchange *x = m->x;

	mcp_exchange_free(m);
	http_stream_end(x);
}

static const struct mcp_reply_ops reply_ops = {
    .reply = mcp_on_reply,
    .stream_start = mcp_on_stream_start,
    .stream_send = mcp_on_stream_send,
    .stream_pending = mcp_on_stream_pending,
    .stream_end = mcp_on_stream_end,
};

void
front_mcp_heartbeat(struct front *f, uint64_t now_ms)
{
	struct mcp_exchange *m;

	LIST_FOREACH (m, &f->mcp_streams, link) {
		if (now_ms - m->last_ms < f->heartbeat_ms)
			continue;
		/* Bytes that wait prove as much, and do not pile up. */
		if (http_stream_pending(m->x) == 0)
			stream_text(m, ": ", "", 0, "\n\n");
		m->last_ms = now_ms;
	}
}

/* ---- what a client says */

void
front_mcp_error(
    struct http_exchange *x, int status, int code, const char *message)
{
	json_t *o = json_pack("{s:s, s:{s:i, s:o, s:{s:s}}}", "jsonrpc", "2.0",
	    "error", "code", code, "message",
	    js_string_bytes(message, strlen(message), NULL), "data",
	    "request_id", x->id);
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
	log_info("mcp %s %.100s", x->id, method != NULL ? method : "?");
	json_decref(o);
}

void
front_on_mcp(struct front *f, struct http_exchange *x, const char *rest)
{
	struct mcp_exchange *m = xcalloc(1, sizeof(*m));
	struct mcp_http h = {
	    .method = x->method == HTTP_METHOD_POST ? "POST" :
		x->method == HTTP_METHOD_GET        ? "GET" :
						      "DELETE",
	    .content_type = x->header[HTTP_H_CONTENT_TYPE],
	    .accept = x->header[HTTP_H_ACCEPT],
	    .session_id = x->header[HTTP_H_SESSION],
	    .protocol_version = x->header[HTTP_H_PROTOCOL],
	    .last_event_id = x->header[HTTP_H_LAST_EVENT_ID],
	    .who = check_principal(f->check),
	    .request_id = x->id,
	};
	struct mcp_request *request;

	(void)rest;
	h.body = http_body(x, &h.body_len);
	m->front = f;
	m->x = x;
	http_hold(x, mcp_on_gone, m);
	if (x->method == HTTP_METHOD_POST &&
	    conf_bool(f->conf, CONF_LOG_MCP_REQUESTS))
		log_request(x, h.body, h.body_len);
	request = mcp_handle(f->mcp, &h, &reply_ops, m);
	if (request != NULL)
		m->request = request; /* else m is gone already */
}

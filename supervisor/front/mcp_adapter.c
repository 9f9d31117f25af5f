#include "supervisor/front/mcp_adapter.h"

#include <sys/uio.h>
#include <stdio.h>

#include <event2/buffer.h>

#include "common/xmalloc.h"

#define MESSAGES_MAX 256 /* MCP_PATH is not as deep */

/* An HTTP exchange that the library answers; gone with its answer. */
struct adapted {
	const struct mcp_adapter *a;
	struct http_exchange *x;
	struct mcp_exchange *mcp; /* NULL: inside mcp_handle */
	void *place;              /* of its stream; NULL: none */
};

static void
adapted_free(struct adapted *p)
{
	if (p->place != NULL)
		p->a->drop_stream(p->place);
	free(p);
}

static void
adapted_on_gone(void *arg)
{
	struct adapted *p = arg;

	mcp_client_gone(p->mcp);
	http_drop(p->x);
	adapted_free(p);
}

/* ---- what the library says */

static void
adapted_on_reply(void *handle, int status, const char *session_id,
    const char *body, size_t len)
{
	struct adapted *p = handle;
	struct http_exchange *x = p->x;

	if (session_id != NULL)
		http_add_header(x, "Mcp-Session-Id", session_id);
	if (status == 429)
		http_add_header(x, "Retry-After", "1");
	if (status == 405)
		http_add_header(x, "Allow", "POST, DELETE, OPTIONS");
	http_add_header(x, "Cache-Control", "no-store");
	adapted_free(p);
	/* The one body that is no JSON-RPC: "Accepted". */
	http_reply(x, status,
	    body == NULL      ? NULL :
		status == 202 ? "text/plain" :
				"application/json",
	    body, len);
}

static int
adapted_on_stream_take(void *handle, struct err *e)
{
	struct adapted *p = handle;

	return p->a->take_stream == NULL ?
	    0 :
	    p->a->take_stream(p->x, &p->place, p->a->arg, e);
}

static void
adapted_on_stream_start(void *handle, const char *session_id)
{
	const struct adapted *p = handle;

	if (session_id != NULL)
		http_add_header(p->x, "Mcp-Session-Id", session_id);
	http_stream_start(p->x, NULL);
}

static void
adapted_on_stream_write(void *handle, const struct iovec *pieces, int n)
{
	const struct adapted *p = handle;
	struct evbuffer *out = http_buffer_new();

	for (int i = 0; i < n; i++)
		(void)evbuffer_add(out, pieces[i].iov_base, pieces[i].iov_len);
	http_stream_write(p->x, out);
	evbuffer_free(out);
}

static size_t
adapted_on_stream_pending(void *handle)
{
	const struct adapted *p = handle;

	return http_stream_pending(p->x);
}

static void
adapted_on_stream_end(void *handle)
{
	struct adapted *p = handle;
	struct http_exchange *x = p->x;

	adapted_free(p);
	http_stream_end(x);
}

static void
adapted_on_watch(void *handle)
{
	const struct adapted *p = handle;

	http_watch(p->x);
}

static const struct mcp_transport_ops adapted_ops = {
    .reply = adapted_on_reply,
    .stream_take = adapted_on_stream_take,
    .stream_start = adapted_on_stream_start,
    .stream_write = adapted_on_stream_write,
    .stream_pending = adapted_on_stream_pending,
    .stream_end = adapted_on_stream_end,
    .watch = adapted_on_watch,
};

/* ---- what a client says */

static const char *
method_name(const struct http_exchange *x)
{
	return http_method(x) == HTTP_METHOD_POST ? "POST" :
	    http_method(x) == HTTP_METHOD_GET     ? "GET" :
						    "DELETE";
}

/* As the client named this server; what is no plain name is not repeated.
 * Returns NULL for that, else out. */
static const char *
server_url(const struct http_exchange *x, char *out, size_t size)
{
	static const char good[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	    ".-:[]";
	const char *host = http_seen_host(x);
	int n;

	if (host == NULL || host[0] == '\0' ||
	    strspn(host, good) != strlen(host))
		return NULL;
	n = snprintf(out, size, "%s://%s", http_seen_scheme(x), host);
	return n < 0 || (size_t)n >= size ? NULL : out;
}

static const char *
adapted_on_header(void *handle, const char *name, unsigned int *lines)
{
	const struct adapted *p = handle;

	return http_header_named(p->x, name, lines);
}

/* From the path that was asked, so that it is right behind a proxy that puts
 * something before our paths; NULL: there is no such path. */
static const char *
messages_from(const struct mcp_adapter *a, const struct http_exchange *x,
    char *out, size_t size)
{
	const char *path = http_path(x);
	size_t n = 0;

	if (a->messages == NULL)
		return NULL;
	out[0] = '\0';
	for (const char *p = path; *p != '\0' && *p != '?'; p++)
		if (*p == '/' && p > path && n + 3 < size)
			n += (size_t)snprintf(out + n, size - n, "../");
	(void)snprintf(out + n, size - n, "%s", a->messages);
	return out;
}

void
mcp_adapter_take(const struct mcp_adapter *a, struct http_exchange *x,
    enum mcp_route route, struct mcp_message *message, size_t bytes)
{
	struct adapted *p = xcalloc(1, sizeof(*p));
	char client[NETADDR_TEXT_MAX], url[CALL_SERVER_URL_MAX + 1];
	char messages[MESSAGES_MAX];
	struct mcp_http h = {
	    .route = route,
	    .method = method_name(x),
	    .content_type = http_header(x, HTTP_H_CONTENT_TYPE),
	    .accept = http_header(x, HTTP_H_ACCEPT),
	    .session_id = http_header(x, HTTP_H_SESSION),
	    .protocol_version = http_header(x, HTTP_H_PROTOCOL),
	    .last_event_id = http_header(x, HTTP_H_LAST_EVENT_ID),
	    .mcp_method = http_header(x, HTTP_H_MCP_METHOD),
	    .mcp_name = http_header(x, HTTP_H_MCP_NAME),
	    .stream_id =
		route == MCP_ROUTE_MESSAGES ? http_query(x, "sessionId") : NULL,
	    .messages = messages_from(a, x, messages, sizeof(messages)),
	    .header = adapted_on_header,
	    .body_len = bytes,
	    .message = message,
	    .who = http_principal(x),
	    .request_id = http_id(x),
	    .origin = netaddr_format(http_client(x), client),
	    .server_url = server_url(x, url, sizeof(url)),
	    .traceparent = http_header(x, HTTP_H_TRACEPARENT),
	};
	struct mcp_exchange *mcp;

	if (message == NULL)
		h.body = http_body(x, &h.body_len);
	p->a = a;
	p->x = x;
	http_hold(x, adapted_on_gone, p);
	mcp = mcp_handle(a->mcp, &h, &adapted_ops, p);
	if (mcp != NULL)
		p->mcp = mcp; /* else p is gone already */
}

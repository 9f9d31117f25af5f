/*
 * mcp_endpoint.c - MCP_PATH: bodies are read, on a thread when they are large,
 * then the library answers (mcp_adapter.h)
 */
#include "supervisor/front/handlers.h"

#include "common/js.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/core/quota_use.h"
#include "supervisor/front/bodies.h"

/* ---- streams count for their tenant */

static int
take_stream(
    const struct http_exchange *x, void **place, void *arg, struct err *e)
{
	const struct front *f = arg;
	struct quota_use *use =
	    quota_use_of(core_quota_uses(f->core), http_principal(x)->tenant);

	if (quota_use_add_stream(use, e) != 0)
		return e->code;
	*place = use;
	return 0;
}

static void
drop_stream(void *place)
{
	quota_use_drop_stream(place);
}

void
front_open_mcp(struct front *f)
{
	f->mcp_adapter = (struct mcp_adapter){
	    f->mcp, take_stream, drop_stream, f, "messages"};
}

/* ---- requests */

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

static void
ask_library(struct front *f, struct http_exchange *x, enum mcp_route route,
    struct mcp_message *message, size_t bytes)
{
	if (message != NULL && conf_bool(f->conf, CONF_LOG_MCP_REQUESTS))
		log_request(x, message);
	mcp_adapter_take(&f->mcp_adapter, x, route, message, bytes);
}

/* ---- a large body, on its way through a thread */

struct large_body {
	struct front *f;
	struct http_exchange *x;
	enum mcp_route route;
	struct body_reading *reading;
};

static void
large_body_on_gone(void *arg)
{
	struct large_body *l = arg;

	body_reading_cancel(l->reading);
	http_drop(l->x);
	free(l);
}

static void
large_body_cb(struct mcp_message *message, size_t bytes, void *arg)
{
	struct large_body *l = arg;
	struct front *f = l->f;
	struct http_exchange *x = l->x;
	enum mcp_route route = l->route;

	free(l);
	ask_library(f, x, route, message, bytes);
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
take_large(struct front *f, struct http_exchange *x, enum mcp_route route)
{
	struct large_body *l;

	if (!has_room(f, x))
		return;
	l = xcalloc(1, sizeof(*l));
	l->f = f;
	l->x = x;
	l->route = route;
	http_hold(x, large_body_on_gone, l);
	l->reading = bodies_read(f->bodies, http_principal(x)->tenant,
	    http_take_body(x), large_body_cb, l);
}

static void
take_small(struct front *f, struct http_exchange *x, enum mcp_route route)
{
	struct mcp_message *message = NULL;
	const void *body;
	size_t n;

	body = http_body(x, &n);
	if (http_method(x) == HTTP_METHOD_POST &&
	    conf_bool(f->conf, CONF_LOG_MCP_REQUESTS))
		message = mcp_message_read(body, n);
	ask_library(f, x, route, message, n);
	mcp_message_free(message);
}

static void
take(const struct request *r, enum mcp_route route)
{
	if (http_method(r->x) == HTTP_METHOD_POST &&
	    http_body_bytes(r->x) > BODIES_FROM)
		take_large(r->front, r->x, route);
	else
		take_small(r->front, r->x, route);
}

void
front_on_mcp(struct request *r)
{
	if (!front_greet(r->front, r->x))
		take(r, MCP_ROUTE_MAIN);
}

void
front_on_mcp_sse(struct request *r)
{
	take(r, MCP_ROUTE_SSE);
}

void
front_on_mcp_messages(struct request *r)
{
	take(r, MCP_ROUTE_MESSAGES);
}

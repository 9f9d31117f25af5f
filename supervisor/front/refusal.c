#include "supervisor/front/refusal.h"

#include <stdio.h>

#include "common/js.h"
#include "supervisor/mcp/mcp.h"

static json_t *
details(const struct http_exchange *x, const struct quota_refusal *why)
{
	return json_pack("{s:s, s:s, s:I, s:I, s:s}", "code",
	    err_name(ERR_QUOTA), "quota", quota_rule(why->key)->key, "limit",
	    (json_int_t)why->limit, "used", (json_int_t)why->used, "request_id",
	    http_id(x));
}

void
refusal_send(struct http_exchange *x, enum route_place place,
    const struct quota_refusal *why)
{
	json_t *o, *of = details(x, why);
	char seconds[16], *text;
	struct err e;

	(void)quota_refusal_text(why, &e);
	if (place == ROUTE_MCP) {
		o = json_pack("{s:s, s:n, s:{s:i, s:s, s:o}}", "jsonrpc", "2.0",
		    "id", "error", "code", MCP_SERVER_ERROR, "message", e.msg,
		    "data", of);
	} else {
		json_object_set_new(of, "message", json_string(e.msg));
		o = json_pack("{s:o}", "error", of);
	}
	text = js_dump(o);
	json_decref(o);
	(void)snprintf(seconds, sizeof(seconds), "%u", why->wait_s);
	http_add_header(x, "Retry-After", seconds);
	http_add_header(x, "Cache-Control", "no-store");
	http_reply_owned(x, 429, "application/json", text, strlen(text));
}

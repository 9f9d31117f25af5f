#include "supervisor/front/refusal.h"

#include "common/js.h"
#include "supervisor/mcp/mcp.h"

void
refusal_send(
    struct http_exchange *x, enum route_place place, const struct err *why)
{
	json_t *o, *of;

	if (place != ROUTE_MCP) {
		http_error_from(x, why->code, why);
		return;
	}
	of = json_pack("{s:s, s:s}", "code", err_name(why->code), "request_id",
	    http_id(x));
	http_add_refusal(x, &why->refusal, of);
	o = json_pack("{s:s, s:n, s:{s:i, s:s, s:o}}", "jsonrpc", "2.0", "id",
	    "error", "code", MCP_SERVER_ERROR, "message", why->msg, "data", of);
	http_reply_json(x, 429, o);
}

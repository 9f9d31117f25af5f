#include "supervisor/mcp/resume.h"

#include "common/clock.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/event_id.h"
#include "supervisor/mcp/mcp_call.h"

static void
refuse(struct mcp_exchange *x, int status, int code, const char *message)
{
	AUTO(auto_free) char *text = rpc_error(NULL, code, message, NULL);

	exchange_reply(x, status, text);
}

void
resume_on_get(struct mcp_exchange *x, const struct mcp_context *c,
    const char *last_event_id)
{
	struct event_id id;

	if (event_id_parse(session_signer(c->m->sessions), last_event_id,
		c->session, c->who, clock_wall_ms() / 1000, &id) != 0)
		refuse(x, 400, MCP_INVALID_REQUEST,
		    "Last-Event-ID is no event of this session, or too old: "
		    "send the request again");
	else if (id.place == EVENT_IS_LAST)
		/* 405 ends it for every client; an empty stream makes some of
		 * them come back for ever. */
		refuse(x, 405, MCP_SERVER_ERROR,
		    "Method not allowed: the answer was this stream's last "
		    "event");
	else
		mcp_call_resume(x, c, &id);
}

/* resume.h - GET with Last-Event-ID: an answer is taken up again (offer.h) */
#ifndef MCP_RESUME_H
#define MCP_RESUME_H

#include "supervisor/mcp/provider.h"

/* resume_on_get - x, which takes a stream, gets the answer that the event's
 * stream was for; or it is refused: 405 when its client has that answer, 400
 * for whatever is no id of this session's events. */
void resume_on_get(struct mcp_exchange *x, const struct mcp_context *c,
    const char *last_event_id);

#endif

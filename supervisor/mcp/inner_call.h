/*
 * inner_call.h - a call that the library itself makes of what is offered
 *
 * To ask whether somebody may see a resource, say: its answer, as a client
 * would be sent it, comes back here.
 */
#ifndef MCP_INNER_CALL_H
#define MCP_INNER_CALL_H

#include <jansson.h>

#include "supervisor/mcp/mcp_call.h"

struct inner_call;
/* answer: {"result": ...} or {"error": ...}, borrowed; NULL: the client has
 * cancelled the request of this id, and nothing was said */
typedef void (*inner_call_cb)(const json_t *answer, void *arg);

/* inner_call_start - of the context only who asks counts; id: of the request,
 * JSON text.  NULL: cb was called inside already */
struct inner_call *inner_call_start(const struct mcp_context *c, const char *id,
    mcp_call_run_cb run, void *run_arg, inner_call_cb cb, void *arg);
/* inner_call_drop - cb is not called any more; NULL is fine */
void inner_call_drop(struct inner_call *i);

#endif

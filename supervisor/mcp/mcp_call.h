/*
 * mcp_call.h - one request that what is offered works for (offer.h)
 *
 *	          request waits             request is gone
 *	start --> in flight ---------------> in flight ------> ended
 *	              |        cancelled, or      |  by the offer,
 *	              |        the client left    |  nothing is sent
 *	              +--- ended by the offer: the answer of the request
 *
 * It is the struct call of its request (common/call.h): progress goes up
 * through it to the client that asked for it, a notifications/cancelled comes
 * down to whoever holds it.  It outlives its request when the client leaves
 * or cancels, and even the server (mcp_free) when the offer is later than that.
 */
#ifndef MCP_MCP_CALL_H
#define MCP_MCP_CALL_H

#include <jansson.h>

#include "common/base.h"
#include "supervisor/mcp/provider.h"

#define MCP_CALLS_PER_PRINCIPAL 1024

enum call_task_way {
	CALL_TASK_NONE, /* it asks for no task */
	CALL_TASK_GET,
	CALL_TASK_RESULT,
	CALL_TASK_LIST,
	CALL_TASK_CANCEL,
	CALL_TASK_TAKEN /* what it brings is taken, and that is the answer */
};
/* What a call has to do with tasks; written by methods_tasks.c. */
struct call_task {
	bool may, asked; /* one may stand for its result; its client asks */
	int64_t ttl_ms;
	enum call_task_way way;
	char *id; /* of CALL_TASK_RESULT: whose result; the call's own */
};
const struct call_task *mcp_call_task_of(const struct mcp_call *c);
/* mcp_call_set_task - once, before its offer has it; id is taken over */
void mcp_call_set_task(struct mcp_call *c, const struct call_task *task);
const struct era_revision *mcp_call_rev(const struct mcp_call *c);

/*
 * mcp_call_start - hand a request to what is offered for it
 *
 * run gets the call, and may end it at once: r may be gone on return, and its
 * exchange ended (it is pinned by the caller).  Refuses r when the call cannot
 * be taken; run is not called then.
 */
typedef void (*mcp_call_run_cb)(struct mcp_call *c, void *arg);
void mcp_call_start(struct mcp_request *r, const struct mcp_context *with,
    mcp_call_run_cb run, void *arg);
/*
 * mcp_call_set_repeat - its function may ask the client, and be called again
 *
 * To be said before the function has the call.
 *
 *	repeat	a constant
 *	thing	what run gets; it lives as long as the server
 *	name	what the request is about: a tool's or prompt's name, an
 *		address; copied
 *	input	what else its answer depends on, for run; gets a reference
 *
 * false: the client brought answers that are not good, and the call has ended.
 * What the client sent is kept as long as the call, so a request of more than
 * MCP_ASK_BODY_MAX bytes is not asked about.
 */
#define MCP_ASK_BODY_MAX (64u << 10)
struct call_repeat {
	const char *method;
	void (*run)(struct mcp_call *c, const void *thing, json_t *input);
	/* Ends the call: the client refused to answer, and why.  NULL: by a
	 * JSON-RPC error. */
	void (*refuse)(struct mcp_call *c, const char *why);
};
bool mcp_call_set_repeat(struct mcp_call *c, const struct call_repeat *repeat,
    const void *thing, const char *name, json_t *input) MUSTCHECK;
/* mcp_call_set_shape - gives what mcp_call_answer is told the form of the
 * revision: a reference of the caller's, the result itself is only read */
typedef json_t *(*mcp_call_shape_cb)(
    const struct era_revision *rev, json_t *result);
void mcp_call_set_shape(struct mcp_call *c, mcp_call_shape_cb shape);
/* mcp_call_resume - x, which takes a stream, gets the answer of the request
 * that id is of: from its call where that goes on, else from a new one that
 * the tool's on_resume answers.  x may have ended then. */
struct event_id;
void mcp_call_resume(struct mcp_exchange *x, const struct mcp_context *with,
    const struct event_id *id);
/* mcp_call_cancel - notifications/cancelled for a request id (JSON text) of
 * this session; unknown ones are ignored */
void mcp_call_cancel(
    struct mcp *m, const struct session *session, const char *request_id);
/* mcp_call_orphan_all - for mcp_free: what tools still hold stays valid */
void mcp_call_orphan_all(struct mcp *m);

#endif

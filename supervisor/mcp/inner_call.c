#include "supervisor/mcp/inner_call.h"

#include "common/js.h"
#include "common/xmalloc.h"

struct inner_call {
	struct mcp_exchange *exchange; /* NULL: inside inner_call_start */
	inner_call_cb cb;
	void *arg;
};

static void
inner_on_reply(void *handle, int status, const char *session_id,
    const char *body, size_t len)
{
	struct inner_call *i = handle;
	AUTO(auto_json) json_t *answer = NULL;

	(void)status;
	(void)session_id;
	answer = json_loadb(body, len, JSON_ALLOW_NUL, NULL);
	i->cb(answer, i->arg);
	free(i);
}

/* It takes JSON alone, so it has no stream. */
static const struct mcp_transport_ops inner_ops = {.reply = inner_on_reply};

struct inner_call *
inner_call_start(const struct mcp_context *c, const char *id,
    mcp_call_run_cb run, void *run_arg, inner_call_cb cb, void *arg)
{
	static const struct rpc_message nothing = {.kind = RPC_REQUEST};
	struct inner_call *i = xcalloc(1, sizeof(*i));
	struct mcp_exchange *x = exchange_new(c->m, &inner_ops, i);
	struct mcp_context with = *c;

	with.message = &nothing;
	i->cb = cb;
	i->arg = arg;
	exchange_pin(x);
	mcp_call_start(request_new(x, xstrdup(id)), &with, run, run_arg);
	if (!exchange_unpin(x))
		return NULL; /* i is gone, too */
	i->exchange = x;
	return i;
}

void
inner_call_drop(struct inner_call *i)
{
	if (i == NULL)
		return;
	exchange_abandon(i->exchange);
	free(i);
}

#include "supervisor/mcp/request.h"

#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/modern.h"
#include "supervisor/mcp/rpc.h"

static void
request_free(struct mcp_request *r)
{
	free(r->id);
	free(r);
}

static void
request_on_end(struct exchange_waiter *w)
{
	struct mcp_request *r = (struct mcp_request *)w;

	if (r->on_lost != NULL)
		r->on_lost(r->holder);
	request_free(r);
}

struct mcp_request *
request_new(struct mcp_exchange *x, char *id)
{
	struct mcp_request *r = xcalloc(1, sizeof(*r));

	r->waiter.on_end = request_on_end;
	r->exchange = x;
	r->id = id;
	exchange_wait(x, &r->waiter);
	return r;
}

void
request_set_modern(struct mcp_request *r, const char *method)
{
	r->is_modern = true;
	r->hint = modern_hint_of(method);
}

void
request_hold(struct mcp_request *r, void (*on_lost)(void *arg), void *holder)
{
	r->on_lost = on_lost;
	r->holder = holder;
}

/* The exchange may be gone afterwards, so r goes first. */
static void
answer(struct mcp_request *r, const char *session_id, const char *text)
{
	struct mcp_exchange *x = r->exchange;

	request_free(r);
	exchange_answer(x, session_id, text);
}

static void
refuse(struct mcp_request *r, int status, const char *text)
{
	struct mcp_exchange *x = r->exchange;

	request_free(r);
	exchange_reply(x, status, text);
}

void
request_answer(struct mcp_request *r, json_t *result)
{
	AUTO(auto_free) char *body = NULL, *text = NULL;

	if (r->is_modern)
		modern_seal(r->exchange->m, r->hint, result);
	body = js_dump(result);
	json_decref(result);
	text = rpc_result(r->id, body);
	answer(r, NULL, text);
}

void
request_result(
    struct mcp_request *r, const char *session_id, const char *result)
{
	AUTO(auto_free)
	char *sealed = r->is_modern ?
	    modern_seal_text(r->exchange->m, r->hint, result) :
	    NULL;
	AUTO(auto_free)
	char *text = rpc_result(r->id, sealed != NULL ? sealed : result);

	answer(r, session_id, text);
}

/* The one error of a handler that has a status of its own (MCP 2026-07-28,
 * transports): unless the status was sent before. */
static bool
is_bad_request(const struct mcp_request *r, int code)
{
	return r->is_modern && code == MCP_CAPABILITY_MISSING &&
	    !r->exchange->is_streaming;
}

void
request_error(
    struct mcp_request *r, int code, const char *message, const json_t *data)
{
	AUTO(auto_free) char *text = rpc_error(r->id, code, message, data);

	if (is_bad_request(r, code))
		refuse(r, 400, text);
	else
		answer(r, NULL, text);
}

void
request_refuse(struct mcp_request *r, int status, int code, const char *message)
{
	request_refuse_with(r, status, code, message, NULL);
}

void
request_refuse_with(struct mcp_request *r, int status, int code,
    const char *message, const json_t *data)
{
	AUTO(auto_free) char *text = rpc_error(r->id, code, message, data);

	refuse(r, status, text);
}

void
request_drop(struct mcp_request *r)
{
	answer(r, NULL, NULL);
}

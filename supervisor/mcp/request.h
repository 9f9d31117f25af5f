/*
 * request.h - one JSON-RPC request that waits for its answer
 *
 * Made when its method is found, and gone with its one answer: a result, an
 * error, a refusal, or none (request_drop).  Should its exchange end before,
 * it is gone too, and whoever holds it is told by on_lost.  What works for a
 * request may live longer: that is the call (mcp_call.h).
 */
#ifndef MCP_REQUEST_H
#define MCP_REQUEST_H

#include <jansson.h>

#include "common/base.h"
#include "supervisor/mcp/exchange.h"

struct mcp_request {
	struct exchange_waiter waiter; /* first */
	struct mcp_exchange *exchange;
	char *id;       /* JSON text */
	bool is_modern; /* its results are sealed (modern.h) */
	const struct modern_hint *hint;
	void (*on_lost)(void *arg); /* the holder's; NULL: nobody holds it */
	void *holder;
};

/* request_new - the waiter of x from now on; id is taken over */
struct mcp_request *request_new(struct mcp_exchange *x, char *id);
/* request_set_modern - it is one of MCP 2026-07-28, for this method */
void request_set_modern(struct mcp_request *r, const char *method);
/* request_hold - it will be answered later */
void request_hold(
    struct mcp_request *r, void (*on_lost)(void *arg), void *holder);

/*
 * Each ends r.  The envelope that MCP 2026-07-28 has for results is added.
 *
 *	request_answer	result, an object, is taken over
 *	request_result	the same as JSON text, of what has nothing of that
 *			envelope itself: no _meta, no resultType, ttlMs,
 *			cacheScope.  session_id for the header, or NULL
 *	request_error	data is only read and may be NULL
 */
void request_answer(struct mcp_request *r, json_t *result);
void request_result(
    struct mcp_request *r, const char *session_id, const char *result);
void request_error(
    struct mcp_request *r, int code, const char *message, const json_t *data);
/* request_refuse - an error with an HTTP status of its own, never a stream */
void request_refuse(
    struct mcp_request *r, int status, int code, const char *message);
/* request_refuse_with - the same, with data, which is only read */
void request_refuse_with(struct mcp_request *r, int status, int code,
    const char *message, const json_t *data);
void request_drop(struct mcp_request *r);

#endif

/*
 * exchange.h - one HTTP request and its one answer
 *
 * An exchange ends once: answered as JSON or as an event stream, or because
 * its connection closed.  After that no ops are called for it, and it is
 * freed as soon as nobody on the stack uses it (exchange_pin).
 */
#ifndef MCP_EXCHANGE_H
#define MCP_EXCHANGE_H

#include <jansson.h>

#include "common/base.h"
#include "supervisor/mcp/internal.h"

struct mcp_request {
	TAILQ_ENTRY(mcp_request) link; /* struct mcp's exchanges */
	struct mcp *m;
	const struct mcp_reply_ops *ops;
	void *handle;
	unsigned int forms; /* enum accept_form, OR-ed: what the client takes */
	unsigned int pins;
	bool ended;
	bool streaming;
	uint64_t since_ms;     /* CLOCK_MONOTONIC */
	char *id;              /* of the request, as JSON text; NULL: none */
	struct mcp_call *call; /* the tool call it waits for, or NULL */
};

struct mcp_request *exchange_new(
    struct mcp *m, const struct mcp_reply_ops *ops, void *handle);
void exchange_pin(struct mcp_request *r);
/* exchange_unpin - false when it has ended, and then r is gone with the last
 * pin */
bool exchange_unpin(struct mcp_request *r);

/* The answer to a request: 200, in the form the client takes.  result is JSON
 * text; session_id as in mcp_reply_ops. */
void exchange_result(
    struct mcp_request *r, const char *session_id, const char *result);
void exchange_error(
    struct mcp_request *r, int code, const char *message, const json_t *data);
/* exchange_refuse - an answer that is not of JSON-RPC alone: an HTTP status
 * with an error body, always as JSON */
void exchange_refuse(struct mcp_request *r, int status, int code,
    const char *message, const json_t *data);
/* exchange_accept - a status without a body: 202, 204 */
void exchange_accept(struct mcp_request *r, int status);
/* exchange_drop - end it without an answer: the client took its call back */
void exchange_drop(struct mcp_request *r);

/* An event stream, when the client takes one and the answer is not out. */
void exchange_stream_open(struct mcp_request *r);
/* exchange_stream_send - opens it when needed; nothing happens when the
 * client does not take a stream */
void exchange_stream_send(struct mcp_request *r, const char *text);

/* exchange_stream_has_room - for what may be left out: is the client reading?
 */
bool exchange_stream_has_room(const struct mcp_request *r);

/* exchange_abandon - for mcp_free: no ops are called */
void exchange_abandon(struct mcp_request *r);

#endif

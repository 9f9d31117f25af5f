/*
 * request_state.h - requestState: a text that the client brings back
 *
 * MCP 2026-07-28 keeps nothing between a question and the request that answers
 * it; what the offer wants to remember goes by the client.  A text is good for
 * one principal and one request (its method, what it names and its arguments),
 * and for an hour; it can be read by its client, but not changed.
 */
#ifndef MCP_REQUEST_STATE_H
#define MCP_REQUEST_STATE_H

#include <jansson.h>

#include "common/base.h"
#include "common/principal.h"
#include "supervisor/mcp/signed_text.h"

#define REQUEST_STATE_TTL_S 3600

/* The request that it is for; all is borrowed. */
struct request_bound {
	const struct principal *who;
	const char *method;
	const char *name;    /* of the tool or prompt; an address */
	const json_t *input; /* its arguments, or NULL */
};

/* request_state_make - text: at most MCP_STATE_MAX bytes.  The caller frees. */
char *request_state_make(const struct text_signer *s,
    const struct request_bound *bound, const char *text, int64_t now_s);
/* request_state_read - 0 and the text, the caller's to free; ERR_NOTFOUND for
 * what was changed, is of another request or principal, or expired */
int request_state_read(const struct text_signer *s,
    const struct request_bound *bound, const char *state, int64_t now_s,
    char **text) MUSTCHECK;

#endif

/*
 * modern.h - MCP 2026-07-28: what surrounds its requests and its results
 *
 * There is no session.  Each request says in params._meta which revision it is
 * of, who asks and what that client can, and repeats in headers what proxies
 * route by.  Each result says of what kind it is, who made it and, for six
 * methods, how long a copy of it is good.
 *
 * The order of the checks is that of the official server, but that the claimed
 * revision comes first (and the header that repeats it): whoever asks by a
 * later one, with another envelope, learns which are served.  The capability
 * that a handler needs is known to the handler alone, so it comes after the
 * headers of a tool's own parameters.
 */
#ifndef MCP_MODERN_H
#define MCP_MODERN_H

#include "supervisor/mcp/mcp_int.h"
#include "supervisor/mcp/rpc.h"

/* Who asks. */
struct modern {
	struct session session; /* of this request alone */
	int log_level;          /* enum mcp_level, or LEVEL_NONE (level.h) */
};

/*
 * modern_read - the envelope of a request or notification
 *
 * Returns 0, or the code to refuse it with, with HTTP status 400 and the text
 * in *e.  Of a notification only what is there is checked, and *out not filled.
 */
int modern_read(const struct rpc_message *message, const struct mcp_http *http,
    struct modern *out, struct err *e) MUSTCHECK;
/* modern_check_name - the Mcp-Name of a method that exists; likewise.  Params
 * that its method will refuse are left to the method. */
int modern_check_name(const struct rpc_message *message,
    const struct mcp_http *http, struct err *e) MUSTCHECK;

struct modern_hint; /* how long a copy is good, and for whom */

/* modern_hint_of - NULL: none for this method */
const struct modern_hint *modern_hint_of(const char *method);
/* modern_seal - set what a result has; what it has already stays */
void modern_seal(
    const struct mcp *m, const struct modern_hint *hint, json_t *result);
/* modern_seal_text - the same for an object's text that has none of it: no
 * resultType, _meta, ttlMs, cacheScope.  The caller frees. */
char *modern_seal_text(
    const struct mcp *m, const struct modern_hint *hint, const char *result);

#endif

/*
 * duplex.h - HTTP+SSE, the transport of MCP 2024-11-05
 *
 * A GET opens a stream whose first event, endpoint, says where its client POSTs
 * messages to; each is accepted with 202, and what answers it is an event of
 * the stream.  The stream is the session: which revision that speaks is
 * negotiated in it, as anywhere.  When it closes nobody can be answered, so
 * what waits is cancelled; what was started apart goes on.
 */
#ifndef MCP_DUPLEX_H
#define MCP_DUPLEX_H

#include "supervisor/mcp/provider.h"

#define DUPLEX_REQUESTS_MAX 64 /* of a stream, without an answer */
#define DUPLEX_PENDING_MAX                                                     \
	(256u << 10)                   /* bytes that its client did not take:  \
					* it is to read before it asks more */
#define DUPLEX_BREAK_BYTES (16u << 20) /* it never will */

struct duplex;
struct duplexes; /* of a server */

struct duplexes *duplexes_new(void);
void duplexes_free(struct duplexes *ds); /* its exchanges have ended */
/* duplex_drain_all - each ends when nothing of it waits any more */
void duplex_drain_all(struct mcp *m);

/* duplex_open - x, which takes a stream, is one from now on; messages: the
 * address to POST to, as the client is to resolve it */
void duplex_open(
    struct mcp_exchange *x, const struct mcp_context *c, const char *messages);
/* duplex_find - the stream of this id and principal, or NULL */
struct duplex *duplex_find(
    const struct mcp *m, const char *id, const struct principal *who);
/* duplex_session - NULL: it was not initialized yet */
const struct session *duplex_session(const struct duplex *d);
/* duplex_check_room - ERR_LIMIT: its client is to wait with more */
int duplex_check_room(const struct duplex *d, struct err *e) MUSTCHECK;
/* duplex_exchange - for a message: what answers it goes to the stream.
 * request_id: JSON text, NULL: no request */
struct mcp_exchange *duplex_exchange(struct duplex *d, const char *request_id);

#endif

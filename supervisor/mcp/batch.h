/*
 * batch.h - one HTTP request with several messages (MCP 2025-03-26)
 *
 *	batch_new	the batch owes the answer of its exchange
 *	batch_add	for each request: an exchange of its own, which knows
 *			nothing of the others
 *	batch_close	there are no more
 *
 * When all requests are answered, the client gets an array of their answers,
 * or 202 when there are none.  As soon as one of them wants an event stream
 * there is one for all, and each answer is a message in it.
 *
 * The requests go on when the client leaves, and answer nobody.
 */
#ifndef MCP_BATCH_H
#define MCP_BATCH_H

#include "common/base.h"
#include "supervisor/mcp/exchange.h"

#define BATCH_BYTES_MAX (8u << 20) /* of answers that wait for the others */

struct mcp_batch;

struct mcp_batch *batch_new(struct mcp_exchange *x);
/* batch_add - id: JSON text, copied.  The exchange is as exchange_new's. */
struct mcp_exchange *batch_add(struct mcp_batch *b, const char *id);
/* batch_close - b may be gone on return, and its exchange ended */
void batch_close(struct mcp_batch *b);
/* batch_free_all - for mcp_free, when their exchanges are gone */
void batch_free_all(struct mcp *m);

#endif

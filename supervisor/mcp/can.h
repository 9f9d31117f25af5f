/* can.h - what a client declared that it can, as bits of enum mcp_can */
#ifndef MCP_CAN_H
#define MCP_CAN_H

#include <jansson.h>

#include "common/base.h"
#include "supervisor/mcp/era.h"
#include "supervisor/mcp/offer.h"

static inline unsigned int
can_bit(enum mcp_can what)
{
	return 1u << what;
}

/* can_of - of ClientCapabilities: what this revision has; of anything that is
 * no object: nothing */
unsigned int can_of(const json_t *capabilities, const struct era_revision *rev);
/* can_required - {"elicitation": {}} and its like, as a client would have to
 * declare it: a new object */
json_t *can_required(enum mcp_can what);

#endif

/*
 * flow.h - a stream of bytes of one channel on its way to the worker
 *
 * The ring holds the bytes that the worker has not taken; the uplink sends
 * those within credit, in turn with other flows.  A flow outlives its channel:
 * a sequence's log waits in it for the next channel.
 */
#ifndef AGENT_FLOW_H
#define AGENT_FLOW_H

#include <sys/queue.h>

#include "common/base.h"
#include "common/credit.h"
#include "common/err.h"
#include "images/agent/ring.h"

struct flow {
	struct ring ring; /* from what is taken to the end */
	struct credit credit;
	uint32_t chan; /* 0: none has it now, nothing is sent */
	uint8_t stream;
	bool queued; /* the uplink's */
	TAILQ_ENTRY(flow) by_turn;
};

void flow_init(struct flow *f, uint8_t stream, size_t max);
void flow_clear(struct flow *f); /* not while queued */

/* flow_open - to a channel that has all before from; ERR_NOTFOUND when some of
 * the rest is not kept, or from is beyond the end */
int flow_open(struct flow *f, uint32_t chan, uint64_t from, uint64_t limit,
    struct err *e) MUSTCHECK;
void flow_close(struct flow *f);
/* flow_grant - a CREDIT; ERR_PROTO as for credit_grant */
int flow_grant(
    struct flow *f, uint64_t taken, uint64_t limit, struct err *e) MUSTCHECK;
/* flow_sendable - bytes from credit.sent on that may go now */
size_t flow_sendable(const struct flow *f);
/* flow_is_sent - all that is in it has been sent */
static inline bool
flow_is_sent(const struct flow *f)
{
	return f->credit.sent == f->ring.end;
}

#endif

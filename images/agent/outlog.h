/*
 * outlog.h - a run's log on its way to the worker
 *
 * Records go in at the end, acknowledged bytes go out at the start, and what
 * is between and within credit is sent.  Output is taken only while less than
 * FRAME_WINDOW_BYTES are unacknowledged; the few records that are not output
 * have OUTLOG_RESERVE_BYTES of their own, so they always fit.
 */
#ifndef AGENT_OUTLOG_H
#define AGENT_OUTLOG_H

#include <sys/queue.h>

#include "common/base.h"
#include "common/err.h"
#include "common/frame.h"
#include "common/runlog.h"
#include "common/runspec.h"
#include "common/uuid.h"
#include "images/agent/ring.h"

/* Per command: started, two flushes of a cut character, ended. */
#define OUTLOG_COMMAND_BYTES (4 * RUNLOG_HEADER_BYTES + 2 * 3 + 256)
#define OUTLOG_RESERVE_BYTES ((RUNSPEC_COMMANDS_MAX + 1) * OUTLOG_COMMAND_BYTES)

struct outlog {
	struct uuid run;
	struct ring ring; /* from what is acknowledged to the end */
	uint64_t sent;
	uint64_t window;
	bool attached; /* the worker said on this link what it has */
	bool queued;
	TAILQ_ENTRY(outlog) by_turn;
};

void outlog_init(struct outlog *o, const struct uuid *run);
void outlog_clear(struct outlog *o); /* not while queued */

/* outlog_attach - the worker has all before have; ERR_NOTFOUND when some of
 * the rest is not kept, or have is beyond the end */
int outlog_attach(
    struct outlog *o, uint64_t have, uint64_t window, struct err *e) MUSTCHECK;
/* outlog_ack - ERR_PROTO for more than was sent; less than before is old news
 * and does nothing */
int outlog_ack(struct outlog *o, uint64_t offset, struct err *e) MUSTCHECK;
/* outlog_sendable - bytes from sent on that credit allows; 0 if detached */
size_t outlog_sendable(const struct outlog *o);
/* outlog_output_room - payload that an output record may have now */
size_t outlog_output_room(const struct outlog *o);

/* Records.  A text of *end is cut at its array's end. */
void outlog_put_plain(
    struct outlog *o, enum runlog_type type, uint32_t command);
void outlog_put_end(
    struct outlog *o, uint32_t command, const struct runlog_end *end);
void outlog_put_run_end(struct outlog *o, const struct runlog_run_end *end);
/* outlog_put_output - the payload is in the ring already, n bytes from
 * RUNLOG_HEADER_BYTES behind the end on; n may not be 0 */
void outlog_put_output(
    struct outlog *o, enum runlog_type type, uint32_t command, size_t n);

#endif

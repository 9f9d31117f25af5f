/*
 * outlog.h - a sequence's log on its way to the worker
 *
 * Records go into its flow, which keeps them until the worker has them in the
 * spool.  Output is taken only while less than FRAME_WINDOW_BYTES wait there;
 * the few records that are not output have OUTLOG_RESERVE_BYTES of their own,
 * so they always fit.
 */
#ifndef AGENT_OUTLOG_H
#define AGENT_OUTLOG_H

#include "common/base.h"
#include "common/msg/frame_gen.h"
#include "common/runlog.h"
#include "common/runspec.h"
#include "common/uuid.h"
#include "images/agent/flow.h"

/* Per command: started, two flushes of a cut character, left, ended. */
#define OUTLOG_COMMAND_BYTES                                                   \
	(5 * RUNLOG_HEADER_BYTES + 2 * 3 + RUNLOG_RECORD_MAX + RUNLOG_END_MAX)
#define OUTLOG_RESERVE_BYTES ((RUNSPEC_COMMANDS_MAX + 1) * OUTLOG_COMMAND_BYTES)

struct outlog {
	struct uuid run;
	struct flow flow;
};

void outlog_init(struct outlog *o, const struct uuid *run);
void outlog_clear(struct outlog *o); /* not while queued */

/* Records.  A text of *end is cut at its array's end. */
void outlog_put_plain(
    struct outlog *o, enum runlog_type type, uint32_t command);
void outlog_put_end(
    struct outlog *o, uint32_t command, const struct runlog_end *end);
void outlog_put_left(
    struct outlog *o, uint32_t command, const struct runlog_left *left);
void outlog_put_run_end(struct outlog *o, const struct runlog_run_end *end);

/*
 * The output of one command, as records cut where a UTF-8 character ends: up
 * to three bytes are held back until more comes or the command ends.  Bytes
 * are put where outlog_space says (at most n, never more than outlog_room
 * says and less than a record can have), then counted by outlog_take.
 */
struct outlog_stream {
	enum runlog_type type; /* RUNLOG_STDOUT, RUNLOG_STDERR */
	uint32_t command;
	uint8_t held[4];
	size_t nheld;
	uint64_t bytes; /* in the log so far */
};
void outlog_stream_begin(
    struct outlog_stream *s, enum runlog_type type, uint32_t command);
size_t outlog_room(const struct outlog *o, const struct outlog_stream *s);
int outlog_space(struct outlog *o, const struct outlog_stream *s, size_t n,
    struct iovec iov[2]);
void outlog_take(struct outlog *o, struct outlog_stream *s, size_t n);
void outlog_flush(struct outlog *o, struct outlog_stream *s);

#endif

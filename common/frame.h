/*
 * frame.h - the frames between worker and agent
 *
 * A carrier (worker/link/, images/agent/) moves whole frames; on the unix
 * carrier a frame is u32 length of the rest, u16 type, u16 zero, then fields
 * in wire.h's encoding.  Frames from the agent are at most FRAME_UP_MAX, to
 * it at most FRAME_DOWN_MAX.  The worker believes nothing that comes up; the
 * agent believes what comes down (who reaches its socket owns it) but checks
 * it all the same.
 *
 *  up (agent to worker)
 *   HELLO         u32 version, uuid boot, u32 runs
 *   HELLO_RUN     uuid run, u8 ended, u64 from, u64 length
 *                   (the log is kept from byte "from" up to "length")
 *   HELLO_END     -
 *   RUN_KNOWN     uuid run, u8 fresh, u64 length    answer to RUN_START:
 *                   fresh 1: started now; 0: known before, goes on
 *   RUN_REFUSED   uuid run, str why                 journal or tables full,
 *                   or the log before "have" is not kept any more
 *   RUN_LOG       uuid run, u64 offset, rest bytes  at most FRAME_LOG_MAX
 *   FILE_ENTRY    u32 request, u8 kind, u32 mode, u64 size, i64 mtime_ns,
 *                   bytes path                      kind: 'f', 'd', 'l', '?'
 *   FILE_DATA     u32 request, u64 offset, rest bytes
 *   FILE_END      u32 request, i32 errno, u64 size  ends a walk or a read
 *   PONG          u64 token
 *
 *  down (worker to agent)
 *   WELCOME       u32 version                       first answer to HELLO
 *   RUN_START     uuid run, u64 have, u64 window, rest spec
 *                   Start it, or if its key is in the journal go on sending
 *                   its log from offset have.  Never starts a key twice.
 *   RUN_ACK       uuid run, u64 offset              all before offset is in
 *                   the spool: the agent may forget it and send up to
 *                   offset + window
 *   RUN_CANCEL    uuid run, u8 reason               kill its tree; reason is
 *                   an enum runlog_reason for the end record
 *   RUN_FORGET    uuid run                          drop the log; the key and
 *                   outcome stay in the journal
 *   WALK          u32 request, u8 changed_only, u32 max_entries, str root
 *                   FILE_ENTRY for each, then FILE_END.  Paths are relative
 *                   to root; links are not followed.  changed_only: regular
 *                   files whose (inode, size, mtime, ctime) differ from what
 *                   WALK_TAKEN last recorded
 *   WALK_TAKEN    u32 request, bytes path           that entry of that walk
 *                   was copied whole
 *   READ          u32 request, u64 offset, u64 max, u32 window, str root,
 *                   bytes path                      FILE_DATA..., FILE_END;
 *                   regular files only, no link is followed
 *   READ_ACK      u32 request, u64 offset           credit, as for RUN_ACK
 *   ABORT         u32 request                       end a walk or a read
 *   PING          u64 token
 *
 * The finer points
 *   - RUN_START after each HELLO attaches the run again, and its have counts
 *     as an acknowledgement.  have > 0 with an unknown key is refused.  A spec
 *     that does not decode is refused with its text; the link stays.
 *   - RUN_FORGET of a live run is ignored.  An acknowledgement beyond what was
 *     sent is malformed, and a malformed frame ends the link.
 *   - FILE_END's size is the bytes sent (READ) or the entries sent (WALK); its
 *     errno is ECANCELED after ABORT, E2BIG for a walk that was cut, EAGAIN
 *     for too many requests at a time.  Offsets are offsets in the file.
 */
#ifndef COMMON_FRAME_H
#define COMMON_FRAME_H

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/wire.h"

#define FRAME_VERSION 1
#define FRAME_HEADER_BYTES 8
#define FRAME_LOG_MAX 262144
#define FRAME_UP_MAX (FRAME_LOG_MAX + 64)
#define FRAME_DOWN_MAX ((2u << 20) + 4096)
#define FRAME_PATH_MAX 4095
#define FRAME_WINDOW_BYTES (1u << 20) /* a run's credit on the unix carrier */
#define FRAME_WALK_MAX 5000

/* Where the agent finds the link: its own binary and the socket. */
#define FRAME_DIR_IN_SANDBOX "/.mcp-sandbox"

enum frame_type {
	FRAME_NONE = 0,
	/* up */
	FRAME_HELLO = 1,
	FRAME_HELLO_RUN,
	FRAME_HELLO_END,
	FRAME_RUN_KNOWN,
	FRAME_RUN_REFUSED,
	FRAME_RUN_LOG,
	FRAME_FILE_ENTRY,
	FRAME_FILE_DATA,
	FRAME_FILE_END,
	FRAME_PONG,
	/* down */
	FRAME_WELCOME = 32,
	FRAME_RUN_START,
	FRAME_RUN_ACK,
	FRAME_RUN_CANCEL,
	FRAME_RUN_FORGET,
	FRAME_WALK,
	FRAME_WALK_TAKEN,
	FRAME_READ,
	FRAME_READ_ACK,
	FRAME_ABORT,
	FRAME_PING
};
const char *frame_type_name(unsigned int type); /* "?" if unknown */

/* frame_begin / frame_end - build a frame at the end of b:
 *	size_t at = frame_begin(&b, FRAME_PONG);
 *	wire_put_u64(&b, token);
 *	frame_end(&b, at);
 * b's limit is the sender's queue limit: check buf_room first. */
size_t frame_begin(struct buf *b, enum frame_type type);
void frame_end(struct buf *b, size_t at);

/* A received frame; in is valid until the buffer it was taken from changes. */
struct frame {
	enum frame_type type;
	struct wire_in in;
	size_t size; /* bytes to consume when done with it */
};
/*
 * frame_next - the first whole frame in b
 *
 *	max	limit of a frame's size in this direction
 * Returns 1 with *f (then buf_consume(b, f->size) after use), 0 when more
 * bytes are needed, ERR_PROTO when it is no frame.
 */
int frame_next(
    const struct buf *b, size_t max, struct frame *f, struct err *e) MUSTCHECK;

#endif

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
 * What each frame holds stands in schema/frame.txt, of which
 * common/msg/frame_gen.h is made: include that to read or to write one.
 */
#ifndef COMMON_FRAME_H
#define COMMON_FRAME_H

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/msg/codec.h"
#include "common/msg/wire.h"

/* What changed since: 5 has SAID; 6 has memory_kills; in 7 OPEN_ASK takes the
 * place of OPEN_LEFT and refuses unknown kinds; 8 has KNOCK. */
#define FRAME_VERSION_OLDEST 4

#define FRAME_HEADER_BYTES 8
#define FRAME_DATA_MAX 262144 /* bytes of one DATA */
#define FRAME_PATH_MAX 4095
#define FRAME_WINDOW_BYTES (1u << 20) /* what a stream is granted at a time */
#define FRAME_MARK_BYTES 40           /* of a file, in ENTRY and TAKEN */
/* A bridge on which no frame came down for so long is given up. */
#define FRAME_BRIDGE_QUIET_MS 30000

/* Where the agent finds the link: its own binary and the socket. */
#define FRAME_DIR_IN_SANDBOX "/.mcp-sandbox"
/* Where the binary is in an image that was prepared with it. */
#define FRAME_PROGRAM_DIR_IN_SANDBOX "/.mcp-sandboxd"
#define FRAME_PROGRAM_IN_SANDBOX FRAME_PROGRAM_DIR_IN_SANDBOX "/agent"

/* A received frame; in is valid until the buffer it was taken from changes. */
struct frame {
	unsigned int type; /* enum frame_type */
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

struct frame_data;
/*
 * frame_cut - the beginning of a DATA frame, as a frame of its own
 *
 * For a receiver that has not all of it and would have to keep what it has.
 * b begins with a frame that is not whole.  True: *f is one of the bytes that
 * are there (used as frame_next's, but b's memory is what it stands in), and
 * *rest says what frame the bytes to come are of: frame_put_data makes its
 * head.  False: it is another one, or nothing of its bytes is there.
 */
bool frame_cut(const struct buf *b, struct frame *f, struct frame_data *rest);

/* frame_put, frame_get - what common/msg/frame_gen.h is made of */
int frame_put(struct buf *b, const struct codec *c, const void *m) MUSTCHECK;
int frame_get(
    struct frame *f, const struct codec *c, void *m, struct err *e) MUSTCHECK;

#endif

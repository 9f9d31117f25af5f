/*
 * chan.h - messages between our own processes over SOCK_SEQPACKET
 *
 * What messages there are, and who may send them when, stands in
 * schema/ipc.txt, of which common/msg/msg_gen.h is made: what is sent, and
 * what a message is given to, is there.  Descriptors travel with SCM_RIGHTS.
 *
 * What a peer gets wrong (truncated packet, unknown type, bad length, field
 * errors, a message that is not permitted now) ends the channel: on_close is
 * called with the reason.  The receiver decides what that means for it.
 */
#ifndef COMMON_MSG_CHAN_H
#define COMMON_MSG_CHAN_H

#include "common/base.h"
#include "common/err.h"
#include "common/msg/packet.h"

/* More than this in a channel's queue and ipc_chan_is_full says so: the
 * sender stops reading its own source until on_drain.  At IPC_QUEUE_HARD the
 * peer is taken for dead and the channel ends. */
#define IPC_QUEUE_BYTES (4u << 20)
#define IPC_QUEUE_HARD (64u << 20)

#define IPC_LATE_MS 5 /* ipc_chan_late */

struct ipc_chan;
struct event_base;

struct ipc_ops {
	/* Returns 0, or non-zero with *e: a protocol error, the channel ends
	 * (on_close follows).  May free the channel. */
	int (*on_message)(
	    struct ipc_chan *c, struct ipc_msg *m, void *arg, struct err *e);
	/* Once: end of file, or the reason in why.  May free the channel. */
	void (*on_close)(struct ipc_chan *c, const struct err *why, void *arg);
	/* The queue fell below half of IPC_QUEUE_BYTES after being full; may
	 * be NULL. */
	void (*on_drain)(struct ipc_chan *c, void *arg);
};

/*
 * ipc_chan_new - a channel over fd, which it owns and makes non-blocking
 *
 *	name	for log lines, copied
 *	ops	kept by pointer
 * Cannot fail.  ipc_chan_free closes; it may be called inside a callback of
 * the same channel (the memory goes after the loop turn) and accepts NULL.
 */
struct ipc_chan *ipc_chan_new(struct event_base *base, int fd, const char *name,
    const struct ipc_ops *ops, void *arg);
void ipc_chan_free(struct ipc_chan *c);
bool ipc_chan_is_full(const struct ipc_chan *c);

/* ipc_chan_send - what msg_send_... is made of: send *m, or queue it.  A
 * closed channel drops it silently (on_close tells), and so does NULL: the
 * peer is away. */
void ipc_chan_send(
    struct ipc_chan *c, const struct codec *codec, const void *m);
/* ipc_chan_cork, ipc_chan_uncork - what is sent between the two shares packets
 * where it can, in the same order, and goes at the second.  Inside one
 * callback, never nested. */
void ipc_chan_cork(struct ipc_chan *c);
void ipc_chan_uncork(struct ipc_chan *c);
/* ipc_chan_late - from true to false: what is sent is what nobody waits for.
 * It goes IPC_LATE_MS later at most, together, in its order, and what is sent
 * otherwise overtakes it; a channel that ends meanwhile drops it.  Inside one
 * callback, not with a cork. */
void ipc_chan_late(struct ipc_chan *c, bool is_late);

#endif

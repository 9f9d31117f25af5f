/*
 * ipc.h - messages between our own processes over SOCK_SEQPACKET
 *
 * A message is a 16-byte header (u16 type, u16 descriptors, u32 length with
 * the header, u64 id), then typed fields (wire.h).  A packet has one message,
 * or several one behind the other, of which none has descriptors.  Every
 * message type, its fields and who may send it stand in schema/ipc.txt.
 * Descriptors travel with SCM_RIGHTS, at most IPC_FDS_MAX each.
 *
 * What a peer gets wrong (truncated packet, unknown type, bad length, field
 * errors, a message that is not permitted now) ends the channel: on_close is
 * called with the reason.  The receiver decides what that means for it.
 */
#ifndef COMMON_IPC_H
#define COMMON_IPC_H

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/msg/wire.h"

#define IPC_VERSION 1
#define IPC_MSG_MAX 65536
#define IPC_FDS_MAX 2
/* More than this in a channel's queue and ipc_chan_is_full says so: the
 * sender stops reading its own source until on_drain.  At IPC_QUEUE_HARD the
 * peer is taken for dead and the channel ends. */
#define IPC_QUEUE_BYTES (4u << 20)
#define IPC_QUEUE_HARD (64u << 20)

enum ipc_role {
	IPC_ROLE_MASTER,
	IPC_ROLE_FRONT,
	IPC_ROLE_WORKER
};

enum ipc_type {
	IPC_NONE = 0,
	IPC_HELLO = 1,
	IPC_CONFIG,
	IPC_CONFIG_END,
	IPC_READY,
	IPC_LISTEN,
	IPC_PEER,
	IPC_PEER_GONE,
	IPC_PING,
	IPC_PONG,
	IPC_LOG_LEVEL,
	IPC_DRAIN,
	IPC_COUNTS,
	IPC_LAST_WORDS,

	IPC_SANDBOX_OPEN = 20,
	IPC_SANDBOX_SETTLED,
	IPC_SANDBOX_REMOVE,
	IPC_RUN_START,
	IPC_RUN_CANCEL,
	IPC_RUN_FORGET,
	IPC_ARTIFACT_FD,
	IPC_SWEEP,
	IPC_SWEEP_END,

	IPC_WORKER_STATE = 40,
	IPC_SANDBOX_READY,
	IPC_SANDBOX_FAILED,
	IPC_SANDBOX_LOST,
	IPC_SANDBOX_REMOVED,
	IPC_RUN_BYTES,
	IPC_RUN_RECORD,
	IPC_RUN_ENDED,
	IPC_ARTIFACT_OPEN,
	IPC_ARTIFACT_DONE,
	IPC_SWEPT
};

/* ipc_type_name - "RUN_START"; "?" for an unknown number */
const char *ipc_type_name(unsigned int type);

/* A received message.  in reads the fields; fds belong to the message until
 * ipc_msg_take_fd, what is left is closed after the handler returns. */
struct ipc_msg {
	enum ipc_type type;
	uint64_t id;
	struct wire_in in;
	int fds[IPC_FDS_MAX];
	unsigned int nfds;
};
/* ipc_msg_take_fd - the next descriptor, the caller's from now on; -1: none */
int ipc_msg_take_fd(struct ipc_msg *m);

/* A message being built: ipc_out_init, wire_put_* on &o.b, ipc_send. */
struct ipc_out {
	struct buf b;
	int fds[IPC_FDS_MAX];
	unsigned int nfds;
};
void ipc_out_init(struct ipc_out *o, enum ipc_type type, uint64_t id);
/* ipc_out_add_fd - hands fd over: closed once sent or dropped */
void ipc_out_add_fd(struct ipc_out *o, int fd);

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
const char *ipc_chan_name(const struct ipc_chan *c);
bool ipc_chan_is_full(const struct ipc_chan *c);

/* ipc_send - send or queue; clears o either way.  A closed channel drops the
 * message silently: on_close tells. */
void ipc_send(struct ipc_chan *c, struct ipc_out *o);
/* ipc_cork, ipc_uncork - what is sent between the two shares packets where it
 * can, in the same order, and goes at the second.  Inside one callback, never
 * nested. */
void ipc_cork(struct ipc_chan *c);
void ipc_uncork(struct ipc_chan *c);

/* Routes: who may say what, when.  The table ends with type IPC_NONE. */
struct ipc_route {
	enum ipc_type type;
	unsigned int states; /* states that permit it, OR-ed */
	unsigned int nfds_max;
	int (*on)(void *arg, struct ipc_msg *m, struct err *e);
};
/* ipc_dispatch - find and call; ERR_PROTO when unknown, not permitted in this
 * state, or with more descriptors than the route takes */
int ipc_dispatch(const struct ipc_route *routes, unsigned int state,
    struct ipc_msg *m, void *arg, struct err *e) MUSTCHECK;

#endif

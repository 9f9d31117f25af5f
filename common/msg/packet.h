/*
 * packet.h - messages as bytes
 *
 * A message is a 16-byte header (u16 type, u16 descriptors, u32 length with
 * the header, u64 id), then its fields (codec.h).  A packet has one message,
 * or several one behind the other, of which none has descriptors.
 */
#ifndef COMMON_MSG_PACKET_H
#define COMMON_MSG_PACKET_H

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/msg/wire.h"

#define IPC_MSG_MAX 65536
#define IPC_FDS_MAX 2
#define IPC_HEADER_BYTES 16

struct codec;

/* A received message.  in reads its fields; descriptors that nobody took are
 * closed when its handler has returned. */
struct ipc_msg {
	unsigned int type; /* enum ipc_type */
	uint64_t id;
	struct wire_in in;
	int fds[IPC_FDS_MAX];
	unsigned int nfds;
};
/* ipc_msg_parse - the first message of n bytes that came with nfds
 * descriptors; fills type, id and in, which looks into p, and says how long
 * it is */
int ipc_msg_parse(struct ipc_msg *m, const uint8_t *p, size_t n,
    unsigned int nfds, size_t *size, struct err *e) MUSTCHECK;
/* ipc_msg_get - what msg_get_... is made of: decodes into *to, which has the
 * descriptors then */
int ipc_msg_get(struct ipc_msg *m, const struct codec *c, void *to,
    struct err *e) MUSTCHECK;
/* ipc_msg_close_fds - those that nobody took */
void ipc_msg_close_fds(struct ipc_msg *m);

/* msg_take_fd - the descriptor is the caller's from now on; -1: none there */
static inline int
msg_take_fd(int *member)
{
	int fd = *member;

	*member = -1;
	return fd;
}

/* A packet being built. */
struct ipc_out {
	struct buf b;
	int fds[IPC_FDS_MAX]; /* closed once sent or dropped */
	unsigned int nfds;
};
void ipc_out_init(struct ipc_out *o);
/* ipc_out_put - *m, which is what c describes, behind what is there; its
 * descriptors are o's from now on.  Over a bound: ends the process. */
void ipc_out_put(struct ipc_out *o, const struct codec *c, const void *m);
/* ipc_out_may_share - whether *m may go into the packet with what is there */
bool ipc_out_may_share(
    const struct ipc_out *o, const struct codec *c, const void *m);
/* packet_drop - closes the descriptors of *m, which goes nowhere */
void packet_drop(const struct codec *c, const void *m);
/* ipc_out_reset - empty again; a little memory stays */
void ipc_out_reset(struct ipc_out *o);
/* ipc_out_clear - free the bytes, close the descriptors */
void ipc_out_clear(struct ipc_out *o);

#endif

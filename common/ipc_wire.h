/* ipc_wire.h - a message as a packet; for ipc_chan.c and its tests. */
#ifndef COMMON_IPC_WIRE_H
#define COMMON_IPC_WIRE_H

#include "common/ipc.h"

#define IPC_HEADER_BYTES 16

/* ipc_out_seal - fill in the header's count and length */
void ipc_out_seal(struct ipc_out *o);
/* ipc_out_clear - free the bytes, close the descriptors */
void ipc_out_clear(struct ipc_out *o);
/* ipc_msg_parse - the first message of n bytes that came with nfds
 * descriptors; fills type, id and in, which looks into p, and says how long
 * it is */
int ipc_msg_parse(struct ipc_msg *m, const uint8_t *p, size_t n,
    unsigned int nfds, size_t *size, struct err *e) MUSTCHECK;
/* ipc_msg_close_fds - those that nobody took */
void ipc_msg_close_fds(struct ipc_msg *m);

#endif

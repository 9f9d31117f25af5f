/*
 * unix.h - the carrier over Unix sockets that the worker listens on
 *
 * A box's socket lies in a directory that only this box has (linkdir.h), bound
 * read-only: processes inside can connect to it but not replace it.  Let in is
 * who the kernel says connected from the box's first process (SO_PEERCRED, the
 * pid of its handle); others are closed unread.  A second connection of the
 * right one replaces the first: it would not make another if the first were
 * good.
 */
#ifndef WORKER_LINK_UNIX_H
#define WORKER_LINK_UNIX_H

#include "common/base.h"
#include "common/err.h"
#include "worker/link/carrier.h"

struct event_base;

#define UNIX_SOCKET_NAME "sock"
/* Read from one link before the others have their turn. */
#define UNIX_TURN_BYTES (256u << 10)

/* unix_carrier_new - its directories are below data_dir, agent is the path of
 * the binary.  bytes_per_s: read from each link, after the first so many; 0:
 * any.  ERR_INVAL when data_dir cannot be bound into a box. */
int unix_carrier_new(struct event_base *base, const char *data_dir,
    const char *agent, uint64_t bytes_per_s, struct carrier **out,
    struct err *e) MUSTCHECK;

#endif

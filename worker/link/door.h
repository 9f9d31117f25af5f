/*
 * door.h - the carrier over Unix sockets that the worker listens on
 *
 * A box's socket lies in a directory that only this box has (linkdir.h), bound
 * read-only: processes inside can connect to it but not replace it.  Only the
 * box's first process is let in, by the kernel's word (SO_PEERCRED, the pid of
 * its inspection); other connections are closed unread.  A second connection
 * of that process replaces the first: it would not make another if the first
 * were good.
 */
#ifndef WORKER_LINK_DOOR_H
#define WORKER_LINK_DOOR_H

#include "common/base.h"
#include "common/err.h"
#include "worker/link/carrier.h"

struct event_base;

#define DOOR_SOCKET_NAME "sock"

/* door_carrier_new - its directories are below data_dir, agent is the path of
 * the binary.  ERR_INVAL when data_dir cannot be bound into a box. */
int door_carrier_new(struct event_base *base, const char *data_dir,
    const char *agent, struct carrier **out, struct err *e) MUSTCHECK;

#endif

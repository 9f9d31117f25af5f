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
struct linkdirs;

#define DOOR_SOCKET_NAME "sock"

/* door_carrier_new - dirs are kept */
struct carrier *door_carrier_new(
    struct event_base *base, struct linkdirs *dirs);

#endif

/*
 * unix.h - the carrier over a Unix socket that the worker listens on
 *
 * The socket lies in a directory that only the sandbox has, bound read-only:
 * processes inside can connect to it but not replace it.  Let in is who the
 * kernel says connected from the sandbox's first process (SO_PEERCRED);
 * others are closed unread.  A second connection of the right one replaces
 * the first: it would not make another if the first were good.
 */
#ifndef WORKER_LINK_UNIX_H
#define WORKER_LINK_UNIX_H

#include "common/base.h"
#include "common/err.h"
#include "worker/link/link.h"

struct event_base;

#define UNIX_SOCKET_NAME "sock"

/* unix_link_new - listens at once (a fresh socket in dir, which stays the
 * caller's), lets nobody in before link_expect */
int unix_link_new(struct event_base *base, int dir, struct link **out,
    struct err *e) MUSTCHECK;

#endif

/*
 * dialer.h - connections to one host and port, made by a process of its own
 *
 * A worker makes no Internet socket, and looks up no name: its system call
 * filter stays what it is with an engine on this machine.  Its dialer does
 * both, for the one host that it was started with, and hands over the connected
 * socket.  A name is looked up anew for each connection, and all its addresses
 * are tried.  The dialer has no file, no channel and no secret of the worker's,
 * lives behind the envoys' filter, and ends with the worker.
 */
#ifndef WORKER_HTTP_DIALER_H
#define WORKER_HTTP_DIALER_H

#include "common/base.h"
#include "common/err.h"

#define DIALER_WHY_MAX 160

struct event_base;
struct dialer;

/* fd: connected, non-blocking, the callee's; -1: number is errno, or 0, and why
 * says more. */
typedef void (*dialer_cb)(int fd, int number, const char *why, void *arg);

/* dialer_new - forks: before the process is confined and has threads.  When
 * the dialer ends before dialer_free, so does the process. */
struct dialer *dialer_new(struct event_base *base, const char *host,
    uint16_t port, dialer_cb cb, void *arg);
/* dialer_ask - for one connection: cb comes once for each, in a later turn and
 * in order; a name server that hangs can take its time */
void dialer_ask(struct dialer *d);
void dialer_free(struct dialer *d);

#endif

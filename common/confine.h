/*
 * confine.h - seccomp: what a process may still ask the kernel for
 *
 * Allow-lists (confine_calls.h); the rest fails with ENOSYS, with EPERM (EACCES
 * for sockets) where an attempt is no accident, and in the front an attempt to
 * exec kills the process.
 *
 *	all	files, memory, threads, time, events, and sockets that are
 *		there; signals and limits of the process itself; no other
 *		process, no namespace, no other user, no io_uring
 *	front	makes no socket, connects and binds none, sends to nobody by
 *		TCP fast open
 *	worker	AF_UNIX sockets: its links and its engine are behind such
 *	envoy	Internet sockets that connect, and no other: names and other
 *		servers are behind such (envoy.h)
 *
 * Also sets no-new-privileges, dumpable 0 and the core limit 0.  Must be the
 * last step before READY.  Returns 0 or ERR_SYS.
 */
#ifndef COMMON_CONFINE_H
#define COMMON_CONFINE_H

#include "common/base.h"
#include "common/err.h"

enum confine_role {
	CONFINE_FRONT,
	CONFINE_WORKER,
	CONFINE_ENVOY
};

int confine(enum confine_role role, struct err *e) MUSTCHECK;

#endif

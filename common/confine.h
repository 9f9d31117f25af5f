/*
 * confine.h - seccomp: what a process may still ask the kernel for
 *
 * Deny-lists by purpose over a default of allow, because libcurl, OpenSSL and
 * SQLite each bring their own needs; what is denied fails with EPERM (EACCES
 * for sockets) and, in confine_front, an attempt to exec kills the process.
 *
 *	front	no socket(AF_UNIX), no connect to one, no AF_NETLINK, AF_PACKET,
 *		AF_VSOCK; no execve, execveat, ptrace, process_vm_*, mount and
 *		namespace calls, bpf, keyctl, module and kexec calls, setuid
 *		family, io_uring (it would go round the socket rule)
 *	worker	no listening or connecting AF_INET/AF_INET6 socket (its engine
 *		is behind a Unix socket); the same others as the front but with
 *		AF_UNIX allowed
 *
 * Also sets no-new-privileges and dumpable 0.  Must be the last step before
 * READY.  Returns 0 or ERR_SYS.
 */
#ifndef COMMON_CONFINE_H
#define COMMON_CONFINE_H

#include "common/base.h"
#include "common/err.h"

int confine_front(struct err *e) MUSTCHECK;
int confine_worker(struct err *e) MUSTCHECK;

#endif

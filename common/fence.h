/*
 * fence.h - Landlock: which files a process may still reach
 *
 * On top of modes and owners, which say nothing where front and workers are
 * one user.  Raised before threads are started, since it holds for the thread
 * that raises it and for what that starts from then on; descriptors that are
 * open stay as they are.
 *
 * Also shut where the kernel can: TCP connections (but with FENCE_TCP...) and
 * listening, sockets without a path (abstract), and signals to processes
 * outside.
 */
#ifndef COMMON_FENCE_H
#define COMMON_FENCE_H

#include "common/base.h"
#include "common/err.h"

enum fence_use {
	FENCE_READ, /* a file, or all below a directory; missing: no matter */
	FENCE_OWN,  /* make, change, remove below it; never execute */
	FENCE_TCP,  /* no path: it may connect by TCP */
	FENCE_TCP_PORT /* it may to one port, whose digits the path is */
};

struct fence_gate {
	const char *path;
	enum fence_use use;
};

/* A kernel without Landlock, or with its first version, which refuses renames
 * between directories. */
#define FENCE_NONE 0

/* fence_version - of this kernel's Landlock, or FENCE_NONE */
int fence_version(void);

/*
 * fence_raise - for good, for the calling thread
 *
 * What programs read by themselves (libraries, time zones, /dev/null) is
 * added.  Does nothing where the version is FENCE_NONE; who is told of it, the
 * caller knows.  ERR_SYS when a gate of FENCE_OWN cannot be opened or the
 * kernel refuses.
 */
int fence_raise(
    const struct fence_gate *gates, size_t n, struct err *e) MUSTCHECK;

#endif

/*
 * resolve.h - opening below a directory without following any link
 *
 * By openat2 (RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS); where the kernel or the
 * container's filter has none, step by step with O_NOFOLLOW.  Absolute paths
 * and ".." are EXDEV, a link anywhere on the way is ELOOP.
 */
#ifndef AGENT_RESOLVE_H
#define AGENT_RESOLVE_H

#include "common/base.h"

/* All return a descriptor (close-on-exec) or -1 with errno. */

/* resolve_root - an absolute path of a directory */
int resolve_root(const char *path) MUSTCHECK;
int resolve_at(int root, const char *path, int flags) MUSTCHECK;
/* resolve_by_steps - the way without openat2, for tests */
int resolve_by_steps(int root, const char *path, int flags) MUSTCHECK;
/* resolve_regular - to read a regular file; whatever else is there is not
 * even opened (ELOOP, EISDIR, EINVAL) */
int resolve_regular(int root, const char *path) MUSTCHECK;

#endif

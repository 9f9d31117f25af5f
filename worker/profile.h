/*
 * profile.h - the seccomp profile of sandboxes: ours, or the operator's
 *
 * SANDBOX_SECCOMP is "default" (schema/seccomp.txt), the path of a profile in
 * the engine's JSON, or "unconfined".  What denies nothing is refused unless
 * SANDBOX_ALLOW_UNCONFINED says otherwise.
 */
#ifndef WORKER_PROFILE_H
#define WORKER_PROFILE_H

#include "common/base.h"
#include "common/conf.h"
#include "common/err.h"

/* profile_load - *out is what goes behind "seccomp=" with each create: compact
 * JSON or "unconfined"; *path is that of a file with the same on this host, for
 * engines that want it so, or NULL.  Both are the caller's to free.  ERR_INVAL
 * names what is wrong with the setting or the file. */
int profile_load(
    const struct conf *c, char **out, char **path, struct err *e) MUSTCHECK;

#endif

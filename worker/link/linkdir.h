/*
 * linkdir.h - the directories through which agents reach the worker
 *
 *	DATA_DIR/links/<uuid>/agent	the agent's binary
 *	DATA_DIR/links/<uuid>/sock	where the worker listens (door.h)
 *
 * Bound read-only into the sandbox.  The binary is copied once into links/ as
 * .agent-<digest> and from there hard-linked, so that a sandbox costs no
 * space and never sees an installed file.
 */
#ifndef WORKER_LINK_LINKDIR_H
#define WORKER_LINK_LINKDIR_H

#include "common/base.h"
#include "common/err.h"
#include "common/uuid.h"

struct linkdirs;

/* linkdirs_open - agent: path of the binary.  ERR_INVAL when data_dir's real
 * path cannot be bound into a container, a directory on the way is shut for us,
 * or links in it is another user's. */
int linkdirs_open(const char *data_dir, const char *agent,
    struct linkdirs **out, struct err *e) MUSTCHECK;
void linkdirs_close(struct linkdirs *l);

/* linkdirs_check - ERR_INVAL for such a path: absolute, without links */
int linkdirs_check(const char *data_dir, struct err *e) MUSTCHECK;

/* linkdirs_find_agent - beside the running program, else where it was
 * installed; the caller frees */
int linkdirs_find_agent(char **out, struct err *e) MUSTCHECK;

/* linkdirs_make - the sandbox's directory, made or as it is (a container may
 * have it bound).  ERR_POLICY when what is there is not ours, others may write
 * in it, or the path leads elsewhere.  Returns a descriptor of it or a negative
 * ERR_*; *path is absolute and the caller's to free. */
int linkdirs_make(struct linkdirs *l, const struct uuid *sandbox, char **path,
    struct err *e) MUSTCHECK;
void linkdirs_remove(struct linkdirs *l, const struct uuid *sandbox);

/* linkdirs_sweep - remove what is older than before_ms (wall clock) and not
 * keep; returns how many */
uint32_t linkdirs_sweep(struct linkdirs *l, int64_t before_ms,
    bool (*keep)(const struct uuid *sandbox, void *arg), void *arg);

#endif

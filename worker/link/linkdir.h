/*
 * linkdir.h - the directories of this host that boxes have mounted
 *
 *	DATA_DIR/links/<uuid>/agent	the agent's binary (delivery.h)
 *	DATA_DIR/links/<uuid>/sock	where the worker listens (door.h)
 *
 * Mounted read-only.  The binary is copied once into links/ as .agent-<digest>
 * and from there hard-linked, so that a sandbox costs no space and never sees
 * an installed file.
 */
#ifndef WORKER_LINK_LINKDIR_H
#define WORKER_LINK_LINKDIR_H

#include "common/base.h"
#include "common/err.h"
#include "common/uuid.h"

struct backend_wishes;
struct linkdirs;

/* linkdirs_open - ERR_INVAL when data_dir's real path cannot be bound into a
 * container, a directory on the way is shut for this user, or links in it is
 * another user's. */
int linkdirs_open(
    const char *data_dir, struct linkdirs **out, struct err *e) MUSTCHECK;
void linkdirs_close(struct linkdirs *l);
/* linkdirs_take_agent - from now on linkdirs_make puts the binary of that path
 * in */
int linkdirs_take_agent(
    struct linkdirs *l, const char *agent, struct err *e) MUSTCHECK;

/* linkdirs_key - what all workers of this DATA_DIR share and nobody else has
 * (DATA_DIR/links/.key), made by the first that asks */
#define LINKDIRS_KEY_BYTES 32
int linkdirs_key(const struct linkdirs *l, uint8_t out[LINKDIRS_KEY_BYTES],
    struct err *e) MUSTCHECK;

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
/* linkdirs_mount - the box has that directory mounted: once, however often it
 * is said */
int linkdirs_mount(struct linkdirs *l, const struct uuid *sandbox,
    struct backend_wishes *out, struct err *e) MUSTCHECK;
void linkdirs_remove(struct linkdirs *l, const struct uuid *sandbox);

/* linkdirs_sweep - remove what is older than before_ms (wall clock) and not
 * keep; returns how many */
uint32_t linkdirs_sweep(struct linkdirs *l, int64_t before_ms,
    bool (*keep)(const struct uuid *sandbox, void *arg), void *arg);

#endif

/*
 * recovery.h - what the database has of an earlier life of the server
 *
 * Sandboxes first, each of its tenant; then the runs that had not ended, in
 * the queues of theirs.
 */
#ifndef CORE_RECOVERY_H
#define CORE_RECOVERY_H

#include "common/base.h"
#include "common/err.h"

struct runs;
struct sandboxes;
struct store_snapshot;
struct tenants;

struct recovery {
	struct tenants *tenants;
	struct sandboxes *sandboxes;
	struct runs *runs;
};

/* recovery_restore - into empty registries; ERR_DAMAGED: a sandbox of a tenant
 * that is not there */
int recovery_restore(const struct recovery *r,
    const struct store_snapshot *snap, struct err *e) MUSTCHECK;

#endif

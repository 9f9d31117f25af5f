/*
 * eraser.h - tenants that are being deleted: all of theirs goes
 *
 * Their sandboxes are removed, which ends their runs; then their history with
 * its files; then their secrets, tokens, quotas and name.  A step that finds
 * something left is tried again with the next tick, also after a restart.
 */
#ifndef CORE_ERASER_H
#define CORE_ERASER_H

#include "common/base.h"

#include "supervisor/core/retention.h"

struct disk;
struct sandboxes;
struct secrets;
struct store;
struct tenants;

struct eraser {
	struct tenants *tenants;
	struct sandboxes *sandboxes;
	struct secrets *secrets;
	struct webhooks *webhooks;
	struct store *store;
	struct disk *disk;
	bool is_trimming; /* one after the other */
	struct retention retention;
};

/* eraser_tick - now and then; also what is too old of those that stay */
void eraser_tick(struct eraser *r);

#endif

/*
 * retention.h - how long ended runs are kept, and the end of tenants
 *
 * history_days and files_days: each minute, and at once when a tenant is given
 * another number of days, all tenants that have one are gone through, one
 * after the other.  The clock decides: a run is as old as the time since its
 * end.
 *
 * history_runs and history_mb are looked at when a run ends (core.c).  At a
 * start, and when they change, their tenants are noted for it from here.
 *
 * Tasks of the protocol go when their time is over, each minute.
 *
 * Of a tenant that is being deleted all goes: its sandboxes are removed, which
 * ends their runs; then its history with its files; then its secrets, tokens,
 * quotas and name.  A step that finds something left is tried again with the
 * next tick, also after a restart.
 */
#ifndef CORE_RETENTION_H
#define CORE_RETENTION_H

#include "common/base.h"

struct disk;
struct sandboxes;
struct secrets;
struct store;
struct tenants;
struct webhooks;

struct retention {
	struct tenants *tenants; /* these are kept by pointer */
	struct sandboxes *sandboxes;
	struct secrets *secrets;
	struct webhooks *webhooks; /* NULL: nobody has any */
	struct store *store;
	struct disk *disk;
	/* For retention.c; zero at first. */
	bool is_erasing; /* one tenant after the other */
	bool is_expiring;
	uint64_t at;       /* the tenant that was looked at last; 0: none */
	uint64_t next_ms;  /* of the next time */
	uint64_t tasks_ms; /* likewise, for tasks */
	uint64_t days;     /* a digest of all tenants' numbers of days */
	uint64_t bounds;   /* one of what runs and MiB they may keep */
};

/* retention_tick - now and then */
void retention_tick(struct retention *r);

#endif

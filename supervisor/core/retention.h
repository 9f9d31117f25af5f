/*
 * retention.h - how long ended runs are kept: history_days and files_days
 *
 * Each minute, and at once when a tenant is given another number of days, all
 * tenants that have one are gone through, one after the other.  The clock
 * decides: a run is as old as the time since its end.
 *
 * history_runs and history_mb are looked at when a run ends (core.c).  At a
 * start, and when they change, their tenants are noted for it from here.
 */
#ifndef CORE_RETENTION_H
#define CORE_RETENTION_H

#include "common/base.h"
#include "supervisor/core/tenants.h"

struct disk;

struct retention {
	struct store *store; /* these are kept by pointer */
	struct tenants *tenants;
	struct disk *disk;
	/* For retention.c; zero at first. */
	bool is_busy;
	uint64_t at;      /* the tenant that was looked at last; 0: none */
	uint64_t next_ms; /* of the next time */
	uint64_t days;    /* a digest of all tenants' numbers of days */
	uint64_t bounds;  /* one of what runs and MiB they may keep */
};

/* retention_tick - now and then */
void retention_tick(struct retention *r, uint64_t now_ms, int64_t wall_ms);

#endif

/*
 * counters.h - how many of what: a member of the core's bus
 *
 * Totals of runs and commands go on from what the database has, so that they
 * do not fall when the server starts again.
 */
#ifndef CORE_COUNTERS_H
#define CORE_COUNTERS_H

#include "common/base.h"
#include "supervisor/core/bus.h"
#include "supervisor/store/store.h"

struct counters {
	struct store_counts total;
	uint64_t reaper_deletes;
	struct bus_member member;
};

void counters_init(struct counters *c, struct bus *bus);
void counters_clear(struct counters *c, struct bus *bus);
/* counters_restore - go on from these totals */
void counters_restore(struct counters *c, const struct store_counts *total);

#endif

/*
 * census.h - a database and the sandboxes on the engine: do they belong
 * together?
 *
 * A database bears the id of its instance once that was seen.  One that does
 * not is new, empty, or was put in another's place; before it may be used, the
 * engine is asked what it has of this instance.  Nothing: the database is the
 * instance's from now on.  Something: TAKEOVER says whether it is taken over
 * (rows are made from labels), given up (the sweep stops and keeps it), or the
 * start is refused.  Until then no sweep touches anything.
 *
 * The backend is swept by one worker of those that have it
 * (fleet_sweeper_chan): it is told now and then what should exist, and sees to
 * what should not.  While the database is not known to be ours, the worker
 * looks only, as soon as one can.  Later each sweep tells what no row in memory
 * stands for; what the database knows as ended is removed at once.
 */
#ifndef CORE_CENSUS_H
#define CORE_CENSUS_H

#include "common/base.h"
#include "common/err.h"
#include "common/msg/msg_gen.h"

#define CENSUS_UNKNOWN UINT64_MAX

struct census;
struct conf;
struct fleet;
struct sandboxes;
struct store;
struct tenants;

struct census_parts { /* kept by pointer */
	const struct conf *conf;
	struct store *store;
	struct fleet *fleet;
	struct sandboxes *sandboxes;
	const struct tenants *tenants;
	const char *instance; /* its id */
	/* The start must end, with this reason.  It may return. */
	void (*refuse)(const char *why, void *arg);
	void *arg;
};
struct census *census_new(const struct census_parts *parts);
void census_free(struct census *c);
/* census_open - whose is the database?  Its sandboxes are there; before the
 * loop runs */
int census_open(struct census *c, struct err *e) MUSTCHECK;
/* census_is_settled - sweeps may touch what is not listed */
bool census_is_settled(const struct census *c);
/* Several workers may have been asked, and answer at once.  What one of them
 * found counts, and once. */
void census_on_found(struct census *c, const struct msg_sweep_found *m);
/* census_containers - on the engine, of this server, behind the last sweep;
 * CENSUS_UNKNOWN: there was none yet */
uint64_t census_containers(const struct census *c);
/* census_on_engine - a worker has its engine: the census can be taken, and
 * what was left meanwhile be removed */
void census_on_engine(struct census *c);
void census_tick(struct census *c, uint64_t now_ms);
/* census_on_swept - all was found; false: it is to be asked again */
bool census_on_swept(struct census *c, const struct msg_swept *m);

#endif

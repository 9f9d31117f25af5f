/*
 * sweeper.h - the backend is swept: one worker of those that have it
 * (fleet_sweeper_chan) is told now and then what should exist, and sees to
 * what should not
 *
 * While the database is not known to be ours (census.h), nothing is swept: the
 * worker looks only, as soon as one can, and the census hears what it found.
 */
#ifndef CORE_SWEEPER_H
#define CORE_SWEEPER_H

#include "common/base.h"

#define SWEEPER_UNKNOWN UINT64_MAX

struct census;
struct conf;
struct fleet;
struct msg_swept;
struct sandboxes;

struct sweeper {
	const struct conf *conf;
	struct fleet *fleet;
	const struct sandboxes *sandboxes;
	struct census *census;
	uint64_t next_ms; /* sweeper.c's; 0 at the beginning */
	/* On the engine, of this server, behind the last sweep; what none was
	 * there for yet is SWEEPER_UNKNOWN. */
	uint64_t containers;
};

/* sweeper_begin - the sandboxes of the database are there */
void sweeper_begin(struct sweeper *s);
/* sweeper_ask - a worker has its engine: the census can be taken */
void sweeper_ask(struct sweeper *s);
void sweeper_on_swept(struct sweeper *s, const struct msg_swept *m);
void sweeper_tick(struct sweeper *s, uint64_t now_ms);

#endif

/*
 * emptiness.h - whether a directory is empty, asked after each run
 *
 * What was seen to be empty is not read again while it is the same directory
 * with the same time of change: that moves with each entry that comes or goes,
 * and nobody inside can set it.  It is the kernel's tick, which is coarse, so
 * it counts only when it was old already when the directory was read.
 */
#ifndef AGENT_EMPTINESS_H
#define AGENT_EMPTINESS_H

#include <sys/types.h>
#include <time.h>

#include "common/base.h"
#include "images/agent/steady.h"

struct emptiness { /* all 0: nothing is known */
	dev_t dev;
	ino_t ino;
	struct timespec changed;
	bool known;
	struct steady place;
};

/* emptiness_has_entries - whether path is a directory (no link to one) with
 * an entry beside itself and its parent; em is of this path alone.  changes is
 * search_changes(), or 0. */
bool emptiness_has_entries(
    struct emptiness *em, const char *path, uint32_t changes);

#endif

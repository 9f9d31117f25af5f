/*
 * specdir.h - the files that come with a run
 *
 * They live in RUNSPEC_DIR_PREFIX + the run's UUID, a directory of mode 0700
 * that belongs to the run's user.  Everything is made by descriptor and
 * exclusively, and given to the user last: until then nobody else can reach
 * in.  At the end the whole tree is removed, in slices, without following a
 * link; what the run's code has put there is bounded by SPECDIR_ENTRIES_MAX
 * entries and SPECDIR_DEPTH_MAX levels, beyond which the rest stays.
 */
#ifndef AGENT_SPECDIR_H
#define AGENT_SPECDIR_H

#include "common/base.h"
#include "common/err.h"
#include "common/runspec.h"
#include "common/uuid.h"

#define SPECDIR_DEPTH_MAX 32
#define SPECDIR_ENTRIES_MAX 50000u
#define SPECDIR_SLICE 256u

int specdir_make(const struct runspec *spec, const struct uuid *run,
    struct err *e) MUSTCHECK;
/* specdir_remove - one slice; *done counts entries since the first call.
 * true when it is over. */
bool specdir_remove(const struct uuid *run, uint32_t *done);

#endif

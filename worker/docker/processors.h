/*
 * processors.h - which of the host's processors a box may run on, in words
 *
 * The front counts processors from 0 on; which ones they are is known here, as
 * a host may have some that are off, or not ours.
 */
#ifndef WORKER_DOCKER_PROCESSORS_H
#define WORKER_DOCKER_PROCESSORS_H

#include <sched.h>

#include "common/base.h"

#define PROCESSORS_TEXT_MAX 512

/* processors_own - those of this process; false: they are not known */
bool processors_own(cpu_set_t *out) MUSTCHECK;
/*
 * processors_text - n of them from the first on, the lowest behind the
 * highest, as cpuset(7) has lists: "0-3,6".  n 0: all
 *
 * Returns false when there are not so many, or the list is too long.
 */
bool processors_text(const cpu_set_t *of, unsigned int first, unsigned int n,
    char out[PROCESSORS_TEXT_MAX]) MUSTCHECK;

#endif

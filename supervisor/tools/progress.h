/*
 * progress.h - a run's output as progress of the call that waits for it
 *
 * At most ten times a second the client is told how many bytes were printed
 * since the start, and the last of them as text: all that is new, or, of a
 * program that prints faster than that, the end of it.  So what it costs
 * does not depend on how much is printed.
 */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include "common/base.h"
#include "common/call.h"

#define PROGRESS_EVERY_MS 100

struct event_base;
struct progress;
struct run;

/* progress_new - run and call outlive it */
struct progress *progress_new(
    struct event_base *base, struct run *run, struct call *call);
void progress_free(struct progress *p); /* NULL too */

#endif

/*
 * turns.h - the turns of a program's event loop, watched
 *
 * A turn is what is done between two waits: while it lasts nobody else is
 * served.  One that takes more than TURN_MAX_MS of the processor is told in
 * the log, and tests fail by it (tests/integration).
 *
 * The thread's own time is counted, not the clock's, so that a busy machine is
 * no reason; a turn that waits for a disk is not seen by it.
 */
#ifndef COMMON_TURNS_H
#define COMMON_TURNS_H

#include "common/base.h"

/* Sanitizers make all of it many times slower. */
#if defined(__SANITIZE_ADDRESS__)
#define TURN_MAX_MS 500
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TURN_MAX_MS 500
#endif
#endif
#ifndef TURN_MAX_MS
#define TURN_MAX_MS 50
#endif

struct event_base;

/* turns_run - until event_base_loopbreak or until there are no events; -1: it
 * failed */
int turns_run(struct event_base *base) MUSTCHECK;
/* turns_excuse - what this turn does is done once, before anybody is served */
void turns_excuse(void);
/* turns_longest_us - the longest turn so far, those excused left out */
uint64_t turns_longest_us(void);

#endif

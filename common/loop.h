/*
 * loop.h - the event loop of a program, watched
 *
 * A turn is what is done between two waits: while it lasts nobody else is
 * served.  One that takes more than LOOP_TURN_MAX_MS of the processor is told
 * in the log; tests fail by that line (tests/integration).
 *
 * The thread's own time is counted, not the clock's, so that a busy machine is
 * no reason; a turn that waits for a disk is not seen by it.
 */
#ifndef COMMON_LOOP_H
#define COMMON_LOOP_H

#include "common/base.h"

/* Sanitizers make all of it many times slower. */
#if defined(__SANITIZE_ADDRESS__)
#define LOOP_TURN_MAX_MS 500
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LOOP_TURN_MAX_MS 500
#endif
#endif
#ifndef LOOP_TURN_MAX_MS
#define LOOP_TURN_MAX_MS 50
#endif

struct event_base;

/* loop_run - until event_base_loopbreak or until there are no events; -1: it
 * failed */
int loop_run(struct event_base *base) MUSTCHECK;
/* loop_excuse - what this turn does is done once, before anybody is served */
void loop_excuse(void);
/* loop_longest_us - the longest turn so far, those excused left out */
uint64_t loop_longest_us(void);

#endif

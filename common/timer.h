/*
 * timer.h - a callback after some milliseconds
 *
 * libevent's timer without what no callback of ours wants to know.  Fires
 * once for each timer_set_ms, from the loop, never inside a call here.
 */
#ifndef COMMON_TIMER_H
#define COMMON_TIMER_H

#include <sys/time.h>

#include "common/base.h"

struct event_base;
struct timer;

/* timer_new - cannot fail: without memory the process ends */
struct timer *timer_new(
    struct event_base *base, void (*fn)(void *arg), void *arg);
/* timer_free - also inside its own callback; NULL is fine */
void timer_free(struct timer *t);
/* timer_set_ms - fires then; an earlier setting is void.  0: in the next turn
 * of the loop */
void timer_set_ms(struct timer *t, uint64_t ms);
void timer_stop(struct timer *t);
bool timer_is_set(const struct timer *t);

/* timer_timeval - for libevent's own calls */
struct timeval timer_timeval(uint64_t ms);

#endif

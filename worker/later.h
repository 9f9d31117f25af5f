/*
 * later.h - do it after this turn of the loop
 *
 * For freeing what may be in use up the stack, and for answers that must not
 * come inside the call that asked.
 */
#ifndef WORKER_LATER_H
#define WORKER_LATER_H

#include "common/base.h"

struct event;
struct event_base;

void later(struct event_base *base, void (*fn)(void *arg), void *arg);
/* later_ms - after ms milliseconds; cannot be taken back */
void later_ms(
    struct event_base *base, uint32_t ms, void (*fn)(void *arg), void *arg);

/* later_event_free - it does not fire any more; it may be in its callback. NULL
 * is fine */
void later_event_free(struct event_base *base, struct event *ev);

#endif

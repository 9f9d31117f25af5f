/*
 * done.h - finished ops on their way to the loop
 *
 * Any thread pushes; the loop's thread delivers in the order of pushing, then
 * releases.  An op's deliver may call done_free.
 */
#ifndef STORE_DONE_H
#define STORE_DONE_H

#include "supervisor/store/op.h"

struct event_base;
struct done;

int done_new(
    struct event_base *base, struct done **out, struct err *e) MUSTCHECK;
/* done_on_damaged - what to call behind ops that were delivered with
 * ERR_DAMAGED: it may end the process, or close the store */
void done_on_damaged(
    struct done *d, void (*cb)(const struct err *why, void *arg), void *arg);
/* done_on_events - what to call before an op is delivered that is on disk and
 * has put events; it may not free the store.  NULL: nothing */
void done_on_events(
    struct done *d, void (*cb)(uint64_t tenant, void *arg), void *arg);
/* done_free - releases what was not delivered; nobody pushes any more */
void done_free(struct done *d);
/* done_push - a list linked by next; NULL is fine */
void done_push(struct done *d, struct op *list);
/* done_deliver - on the loop's thread, not inside a delivery: deliver now what
 * was pushed */
void done_deliver(struct done *d);

#endif

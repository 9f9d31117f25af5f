/* sandbox_int.h - what the files of a sandbox's state machine share:
 * sandbox.c (finding, life, waiters), sandbox_tell.c (to the worker),
 * sandbox_event.c (from the worker, and by the clock). */
#ifndef SERVICE_SANDBOX_INT_H
#define SERVICE_SANDBOX_INT_H

#include "supervisor/service/internal.h"

/* sandbox_set_state - word is what the database calls it */
void sandbox_set_state(
    struct sandbox *sb, enum sandbox_state state, enum sandbox_word word);
void sandbox_save(struct sandbox *sb);
/* sandbox_leave_names - no longer found by its identifier */
void sandbox_leave_names(struct sandbox *sb);
/* sandbox_bury - dead, with this last word; sandbox_free_if_done frees it
 * once it holds no run */
void sandbox_bury(struct sandbox *sb, enum sandbox_word word);
void sandbox_free_if_done(struct sandbox *sb);
void sandbox_wait_fire(struct sandbox *sb, struct sandbox_waiters *q, int rc,
    const struct err *why);
void sandbox_send_remove(struct sandbox *sb, struct peer *p);
/* sandbox_takes_runs - whether its runs may go to the worker: not while it is
 * looked for after a crash and perhaps never came to be */
bool sandbox_takes_runs(const struct sandbox *sb);
void sandbox_tell_runs(struct sandbox *sb);

#endif

/*
 * event_put.h - events are written, in the transaction of what they tell
 *
 * On the writer's thread.  Each marks its op (op.h, events_of), so that the
 * loop is told when it is on disk.
 */
#ifndef STORE_EVENT_PUT_H
#define STORE_EVENT_PUT_H

#include "supervisor/store/op.h"
#include "supervisor/store/store.h"

#define EVENT_TRIM_EVERY 64
#define EVENT_TRIM_STEP 1024 /* that go at once, at most */

/* event_put - seq is set; what is too old goes */
int event_put(struct db *db, struct op *op, struct store_event *row,
    struct err *e) MUSTCHECK;
/* event_put_once - unless the run has one of this kind */
int event_put_once(struct db *db, struct op *op, struct store_event *row,
    struct err *e) MUSTCHECK;
/* event_put_run - of a run's row: EVENT_RUN_CREATED, _STARTED (when it was
 * started), _ENDED */
int event_put_run(struct db *db, struct op *op, enum event_kind kind,
    const struct store_run *r, struct err *e) MUSTCHECK;
/* event_put_sandbox - its row is about to become r: whatever follows from how
 * it stood before */
int event_put_sandbox(struct db *db, struct op *op,
    const struct store_sandbox *r, struct err *e) MUSTCHECK;
/* event_of_run - the event as it would be put; to be cleared */
void event_of_run(
    enum event_kind kind, const struct store_run *r, struct store_event *out);
/* event_of_expired - so many runs of a tenant went, or their files */
void event_of_expired(
    uint64_t tenant, uint64_t runs, uint64_t files_of, struct store_event *out);
/* event_of_news - likewise, of now */
struct store_news;
void event_of_news(const struct store_news *news, struct store_event *out);

#endif

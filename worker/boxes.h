/*
 * boxes.h - the boxes of a worker (box.h), and which of them is meant
 *
 * A box is found by the number of the sandbox that uses it, by its UUID, and by
 * the backend's handle.
 */
#ifndef WORKER_BOXES_H
#define WORKER_BOXES_H

#include "common/base.h"
#include "common/err.h"
#include "common/msg/msg_gen.h"
#include "worker/backend.h"
#include "worker/box.h"
#include "worker/tasks.h"

/* Boxes that this worker does not know, while they are removed; a front asks a
 * worker for fewer at a time. */
#define BOXES_UNKNOWN_MAX 512

struct boxes;

/* boxes_new - host is kept by pointer; its backend and ways
 * may be filled in later, before any other call */
struct boxes *boxes_new(const struct box_host *host);
/* boxes_free - forgets all, takes none away; the backend must be gone */
void boxes_free(struct boxes *bs);

/* ---- from the front
 * All of these: ERR_PROTO when the message cannot be, as one of one tenant
 * about what is another's. */

/* boxes_open - ERR_PROTO also when the sandbox or the UUID has one already;
 * everything else is told to the front */
int boxes_open(
    struct boxes *bs, const struct box_start *s, struct err *e) MUSTCHECK;
/* boxes_settled - SANDBOX_SETTLED: of its runs the front has told all */
int boxes_settled(struct boxes *bs, const struct msg_sandbox_settled *m,
    struct err *e) MUSTCHECK;
/* boxes_set_ttl - SANDBOX_TTL; nothing for one that is not here */
int boxes_set_ttl(
    struct boxes *bs, const struct msg_sandbox_ttl *m, struct err *e) MUSTCHECK;
/* boxes_set_shares - SANDBOX_SHARES: of the processors, and how fast its agent
 * is read, if it runs */
int boxes_set_shares(struct boxes *bs, const struct msg_sandbox_shares *m,
    struct err *e) MUSTCHECK;
/* boxes_remove - SANDBOX_REMOVE, for any box there ever was: its tasks end, it
 * is taken away, REMOVED is told */
int boxes_remove(struct boxes *bs, const struct msg_sandbox_remove *m,
    struct err *e) MUSTCHECK;
/* boxes_start_task - RUN_START; takes *s.  Told twice it is started once; in
 * no box it is lost */
int boxes_start_task(struct boxes *bs, uint64_t sandbox, struct task_start *s,
    struct err *e) MUSTCHECK;
/* boxes_find_asks - of that tenant's sandbox; *out NULL: it has no box here */
int boxes_find_asks(const struct boxes *bs, uint64_t sandbox, uint64_t tenant,
    struct box_asks **out, struct err *e) MUSTCHECK;
/* boxes_find_task - by the run's number and its tenant's; *out NULL: none */
int boxes_find_task(const struct boxes *bs, uint64_t number, uint64_t tenant,
    struct tasks_item **out, struct err *e) MUSTCHECK;

/* ---- what concerns all boxes */

/* boxes_on_change - from the backend's watch */
void boxes_on_change(
    struct boxes *bs, const struct backend_handle *h, enum backend_change what);
/* boxes_look - the engine is there: ask now for what waited to be asked */
void boxes_look(struct boxes *bs);
/* boxes_pause, boxes_resume - stop reading from agents, and go on */
void boxes_pause(struct boxes *bs);
void boxes_resume(struct boxes *bs);
/* boxes_is_busy - true while one is being made or taken away */
bool boxes_is_busy(struct boxes *bs);

#endif

/*
 * left_behind.h - what runs left behind in their sandboxes: asked for, counted
 *
 * Nothing of it is kept here but how many there are: who wants to know more
 * asks the agent, by way of its worker.  A question is asked again while the
 * sandbox is not to be reached, for LEFT_ASK_MS in all; what a sandbox that is
 * gone left behind is nothing.
 */
#ifndef CORE_LEFT_BEHIND_H
#define CORE_LEFT_BEHIND_H

#include "common/base.h"
#include "common/err.h"
#include "common/leftlist.h"
#include "common/msg/msg_gen.h"
#include "common/uuid.h"

#define LEFT_ASK_MS 5000
#define LEFT_ASKS_OPEN_MAX 256 /* of all clients */

struct event_base;
struct fleet;
struct left_behind;
struct left_ask;
struct sandbox;
struct sandboxes;

struct left_behind *left_behind_new(
    struct event_base *base, struct fleet *fleet, struct sandboxes *sandboxes);
void left_behind_free(struct left_behind *lb);

struct left_wish {
	uint64_t sandbox; /* its number */
	struct uuid run;
	enum msg_left_action action;
	uint32_t process; /* to kill; 0: all of the run */
};
/* rc 0 with l; or ERR_NOTFOUND: there is no such process; ERR_BACKEND: no
 * answer in time; ERR_WRONG_STATE: it may have been done, or not.  The question
 * is gone when this returns. */
typedef void (*left_cb)(
    int rc, const struct leftlist *l, const struct err *why, void *arg);

/* left_ask_open - cb comes later, never inside, unless it is closed before;
 * NULL with *e when LEFT_ASKS_OPEN_MAX are */
struct left_ask *left_ask_open(struct left_behind *lb,
    const struct left_wish *wish, left_cb cb, void *arg, struct err *e);
void left_ask_close(struct left_ask *a); /* NULL too */

/* left_behind_on_record - of a run's log: counts what a command left in sb, a
 * moment before its agent says it of its own accord; sb may be NULL */
void left_behind_on_record(struct sandbox *sb, const struct span *record);

/* From the worker; ERR_PROTO ends its channel. */
int left_behind_on_answer(struct left_behind *lb,
    const struct msg_left_answer *m, struct err *e) MUSTCHECK;

#endif

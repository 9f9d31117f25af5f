/*
 * asks.h - questions to the agents in sandboxes
 *
 * A question goes to the sandbox's worker and from there to its agent
 * (common/agent_ask.h).  It is asked again while the agent cannot be reached,
 * for ASK_PATIENCE_MS in all, and cancelled at the worker when nobody waits for
 * it any more.  An answer comes from inside the sandbox: who asked must decode
 * and check it.
 */
#ifndef CORE_ASKS_H
#define CORE_ASKS_H

#include "common/agent_ask.h"
#include "common/base.h"
#include "common/err.h"
#include "common/msg/msg_gen.h"

#define ASK_PATIENCE_MS 5000
#define ASKS_OPEN_MAX 256 /* of all tenants */
#define ASKS_TENANT_MAX 64

struct event_base;
struct fleet;
struct asks;
struct ask;
struct sandboxes;

struct asks *asks_new(
    struct event_base *base, struct fleet *fleet, struct sandboxes *sandboxes);
void asks_free(struct asks *as); /* open questions are dropped, unanswered */

enum ask_repeat {
	ASK_ONCE, /* a second time would do something else */
	ASK_AGAIN /* fit to be asked again after a lost link or worker */
};

/* What is asked; arguments are copied. */
struct ask_wish {
	uint64_t sandbox; /* its number */
	enum ask_kind kind;
	enum ask_repeat repeat;
	struct span arguments; /* at most MSG_ASK_ARGUMENTS_MAX bytes */
};
/*
 * ask_cb - the question is over, and gone when this returns
 *
 * rc is 0 with the answer's bytes; or ERR_LOST: the sandbox is gone;
 * ERR_NOTFOUND: the agent found no such thing; ERR_WRONG_STATE: it may have
 * been done or not, or the agent is too old; ERR_BACKEND: no answer in time, or
 * refused.
 */
typedef void (*ask_cb)(
    int rc, const struct span *answer, const struct err *why, void *arg);

/* ask_open - cb comes later, never inside.  NULL with *e: there is no such
 * sandbox (ERR_LOST), or too many questions are open (ERR_LIMIT) */
struct ask *ask_open(struct asks *as, const struct ask_wish *wish, ask_cb cb,
    void *arg, struct err *e);
void ask_close(struct ask *a); /* without cb; NULL too */

/* asks_worker_went - what that worker was asked it will not answer */
void asks_worker_went(struct asks *as, uint32_t worker);
void asks_on_answer(struct asks *as, const struct msg_answer *m);

#endif

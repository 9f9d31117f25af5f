/*
 * sandbox_step.h - how a sandbox moves from state to state: pure
 *
 * No list, no channel, no database: a state and an event give the next state
 * and what is to be done.  sandbox.c does it, and is the only one who does.
 *
 *	NEW        to be made, when it is its turn; no worker has it
 *	CREATING   a worker makes it
 *	DOUBTFUL   the worker that was making it is gone: is it there?
 *	LOOKING    the next worker looks for it
 *	AWAY       it was ready; its worker is gone
 *	ADOPTING   the next worker takes it over
 *	READY      it takes runs
 *	LEAVING    to be removed as soon as a worker is there, or again later
 *	REMOVING   a worker removes it
 *	GONE       for good
 *
 *	NEW ----> CREATING ------------------> READY
 *	             |  ^                      ^ | ^
 *	 worker gone v  | is not there         | | | taken over
 *	         DOUBTFUL --> LOOKING ---------+ v |
 *	                                       AWAY --> ADOPTING
 *
 *	any of these, when it is not wanted:   LEAVING <--> REMOVING --> GONE
 *	any of these, when it is lost or cannot be made:                 GONE
 *
 * Runs are sent behind the request to make a sandbox, which waits for its turn
 * among those of all tenants (decision 52); while it is looked for
 * or taken over they wait, since it may not be there: what never began goes to
 * a fresh one then.
 */
#ifndef CORE_SANDBOX_STEP_H
#define CORE_SANDBOX_STEP_H

#include "common/base.h"
#include "common/words_gen.h"

enum sandbox_state {
	SANDBOX_NEW,
	SANDBOX_CREATING,
	SANDBOX_DOUBTFUL,
	SANDBOX_LOOKING,
	SANDBOX_AWAY,
	SANDBOX_ADOPTING,
	SANDBOX_READY,
	SANDBOX_LEAVING,
	SANDBOX_REMOVING,
	SANDBOX_GONE,
	SANDBOX_NSTATE
};

enum sandbox_happening {
	SANDBOX_WORKER_CAME, /* its worker can be told things */
	SANDBOX_WORKER_WENT,
	SANDBOX_TURN_CAME,     /* the engine may be asked to make it */
	SANDBOX_IS_UP,         /* the worker: its agent is there */
	SANDBOX_FAILED,        /* the worker: it cannot be made, or adopted */
	SANDBOX_LOST,          /* the worker: it is not there (any more) */
	SANDBOX_HUNG,          /* its agent does not do its work */
	SANDBOX_UNRECORDED,    /* it has no row, and gets none */
	SANDBOX_UNWANTED,      /* deleted by a client, replaced, or expired */
	SANDBOX_REMOVED,       /* the worker: nothing is left of it */
	SANDBOX_REMOVE_FAILED, /* the worker: something may be left */
	SANDBOX_RETRY,         /* time to ask again for the removal */
	SANDBOX_NHAPPENING
};

/* What is to be done, in this order. */
enum sandbox_deed {
	SANDBOX_DO_NOTHING = 0,
	SANDBOX_DO_CLOSE_GATE = 1 << 0,  /* its runs may not be sent */
	SANDBOX_DO_LEAVE_NAME = 1 << 1,  /* no longer found by its identifier */
	SANDBOX_DO_TOUCH = 1 << 2,       /* its time begins */
	SANDBOX_DO_SAVE = 1 << 3,        /* row: the state's word */
	SANDBOX_DO_TELL_CREATE = 1 << 4, /* to the worker */
	SANDBOX_DO_TELL_ADOPT = 1 << 5,
	SANDBOX_DO_TELL_REMOVE = 1 << 6,
	SANDBOX_DO_RESEND = 1 << 7,    /* runs that a worker had, again */
	SANDBOX_DO_OPEN_GATE = 1 << 8, /* its runs may be sent */
	SANDBOX_DO_SAY_READY = 1 << 9, /* to who waits for it */
	SANDBOX_DO_SAY_FAILED = 1 << 10,
	SANDBOX_DO_REQUEUE = 1 << 11,    /* what was not sent, to a successor */
	SANDBOX_DO_END_LOST = 1 << 12,   /* its runs end as lost, ... */
	SANDBOX_DO_END_FAILED = 1 << 13, /* could not start, ... */
	SANDBOX_DO_END_CANCELED = 1 << 14, /* or canceled */
	SANDBOX_DO_RETRY_LATER = 1 << 15,
	SANDBOX_DO_SAY_STUCK = 1 << 16, /* the removal failed for now */
	SANDBOX_DO_SAY_GONE = 1 << 17,
	SANDBOX_DO_ASK_TURN = 1 << 18 /* at the engine, among all tenants */
};

struct sandbox_move {
	enum sandbox_state to;
	unsigned int deeds;     /* enum sandbox_deed, OR-ed */
	enum sandbox_word word; /* what the row says, where deeds has SAVE */
};

/* sandbox_step - what happening means in state from.  What cannot be (a late
 * answer of a worker to something that is over) changes nothing: to is from
 * and deeds is SANDBOX_DO_NOTHING. */
struct sandbox_move sandbox_step(
    enum sandbox_state from, enum sandbox_happening what);

/* sandbox_state_is_live - it holds its identifier */
bool sandbox_state_is_live(enum sandbox_state s);
const char *sandbox_state_name(enum sandbox_state s); /* for logs, tests */

#endif

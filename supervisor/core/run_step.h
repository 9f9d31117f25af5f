/*
 * run_step.h - how a run moves from phase to phase: pure
 *
 *	WAITING   in its sandbox's queue (sched.h)
 *	SENT      a worker has it, or is told of it again once it is back
 *	READING   over, and its log is read: for what it had done, if there is
 *	          no worker to say it, or for the digest of a long one
 *	STORING   over; the end is on its way to disk
 *	OVER      the end is on disk, or never will be
 *
 *	WAITING --> SENT --> STORING --> OVER
 *	   |          |         ^
 *	   |          +-> READING
 *	   +--------------------+   canceled or failed before it began
 *
 * The phase is the list: run.c keeps a run in the list of its phase and
 * nowhere else, and moves it as this table says.
 */
#ifndef CORE_RUN_STEP_H
#define CORE_RUN_STEP_H

#include "common/base.h"

enum run_phase {
	RUN_WAITING,
	RUN_SENT,
	RUN_READING,
	RUN_STORING,
	RUN_OVER,
	RUN_NPHASE
};

enum run_happening {
	RUN_ITS_TURN,          /* the scheduler */
	RUN_WORKER_CAME,       /* say it all again: RUN_START is idempotent */
	RUN_WORKER_ENDED,      /* the worker: it is over */
	RUN_WORKER_ENDED_LONG, /* the same, and its log wants a digest kept */
	RUN_CANCEL,            /* a client, or its row could not be written */
	/* Lost, deleted, or never came to be; or no spec is there to be sent.
	 */
	RUN_SANDBOX_GONE,
	RUN_LOG_READ, /* what is in the log is in the row */
	RUN_STORED,
	RUN_STORE_FAILED,
	RUN_NHAPPENING
};

enum run_deed {
	RUN_DO_NOTHING = 0,
	RUN_DO_SEND = 1 << 0,
	RUN_DO_TELL_CANCEL = 1 << 1, /* to the worker, which reports the end */
	RUN_DO_LEAVE_SANDBOX = 1 << 2, /* and its queue */
	RUN_DO_READ_LOG = 1 << 3,
	RUN_DO_FINISH = 1 << 4, /* decide how it ended */
	RUN_DO_STORE = 1 << 5,
	RUN_DO_STORE_LATER = 1 << 6,
	RUN_DO_FORGET = 1 << 7, /* worker and agent need it no more */
	RUN_DO_SAY_ENDED = 1 << 8,
	RUN_DO_LEAVE = 1 << 9 /* last: out of memory when nobody holds it */
};

struct run_move {
	enum run_phase to;
	unsigned int deeds; /* enum run_deed, OR-ed, done in their order */
};

/* run_step - what happening means in phase from; what cannot be (late news of
 * a run that is over) changes nothing */
struct run_move run_step(enum run_phase from, enum run_happening what);
const char *run_phase_name(enum run_phase p); /* for logs, tests */

#endif

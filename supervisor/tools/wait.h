/*
 * wait.h - a call that waits for its run
 *
 * Part of a tool call's state.  While it waits, a cancel of the call cancels
 * the run, and its progress, if the client asked for it, is the run's output
 * as it comes.
 */
#ifndef TOOLS_WAIT_H
#define TOOLS_WAIT_H

#include "common/base.h"
#include "common/call.h"
#include "common/err.h"
#include "supervisor/core/bus.h"
#include "supervisor/core/logs.h"
#include "supervisor/core/run.h"

struct event_base;
struct progress;
struct timer;

enum wait_until {
	WAIT_RECORDED, /* its beginning is on disk */
	WAIT_ENDED     /* its end is */
};

enum wait_outcome {
	WAIT_IS_RECORDED,
	WAIT_IS_OVER,   /* with the digest of its log */
	WAIT_TIMED_OUT, /* the call's deadline came first; it is recorded.
			 * With a digest, NULL: it could not be made */
	WAIT_FAILED     /* why: the run, or its end, could not be recorded */
};

struct wait;
typedef void (*wait_cb)(struct wait *w, enum wait_outcome outcome,
    const struct log_digest *d, const struct err *why);

struct wait {
	struct run *run; /* a reference, from wait_start to wait_clear */
	struct call *call;
	enum wait_until until;
	wait_cb cb;
	void *arg; /* the state of the tool's call (tool.h) */
	struct bus_member member;
	struct timer *deadline;
	bool is_late; /* the deadline has passed */
	struct run_reader reader;
	struct log_request *request;
	struct progress *progress;
};

/* wait_start - cb is called once, never inside.  base: the loop's */
void wait_start(struct wait *w, struct event_base *base, struct run *run,
    struct call *call, enum wait_until until, wait_cb cb, void *arg);
/* wait_clear - at any time; of one that never started, too */
void wait_clear(struct wait *w);

#endif

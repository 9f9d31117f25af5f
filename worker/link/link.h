/*
 * link.h - what carries frames between the worker and one agent
 *
 * A carrier knows how to reach the agent of its sandbox, again and again, and
 * delivers whole frames; what they mean is peer.h's.  unix.h is the carrier
 * for a local engine.
 *
 * Callbacks come from the loop, never from inside a call here.  Each may call
 * link_drop and link_free.
 */
#ifndef WORKER_LINK_LINK_H
#define WORKER_LINK_LINK_H

#include <sys/types.h>

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/msg/frame_gen.h"

/* All that waits to be sent.  Who sends large frames looks at link_room. */
#define LINK_OUT_MAX (2 * FRAME_DOWN_MAX)
/* Read from one link before the others have their turn. */
#define LINK_TURN_BYTES (1u << 20)

struct link;

struct link_user {
	/* The agent is there; whatever was said before is void. */
	void (*on_open)(struct link *l, void *arg);
	/* Negative with *e: no frame of a good agent; the stream ends and
	 * on_close follows with ERR_PROTO. */
	int (*on_frame)(
	    struct link *l, struct frame *f, void *arg, struct err *e);
	void (*on_turn)(struct link *l, void *arg); /* no more for now */
	/* The stream is gone, the carrier waits for the next one. */
	void (*on_close)(struct link *l, const struct err *why, void *arg);
	void (*on_drain)(struct link *l, void *arg); /* all was sent */
};

struct link_ops {
	/* Only this process is the agent; nobody is let in before. */
	void (*expect)(struct link *l, pid_t pid);
	void (*flush)(struct link *l);
	void (*drop)(struct link *l);    /* now; on_close is not called */
	void (*hang_up)(struct link *l); /* soon; on_close is */
	void (*set_reading)(struct link *l, bool on);
	void (*free)(struct link *l);
};

struct link {
	const struct link_ops *ops;
	const struct link_user *user;
	void *arg;
	struct buf out;
	bool is_open;
};

static inline void
link_set_user(struct link *l, const struct link_user *user, void *arg)
{
	l->user = user;
	l->arg = arg;
}
static inline void
link_expect(struct link *l, pid_t pid)
{
	l->ops->expect(l, pid);
}
/* link_flush - send what was put into l->out (frame_begin, frame_end): now,
 * or at the end of the turn if one is under way */
static inline void
link_flush(struct link *l)
{
	l->ops->flush(l);
}
static inline void
link_drop(struct link *l)
{
	l->ops->drop(l);
}
/* link_pause, link_resume - stop and go on reading */
static inline void
link_pause(struct link *l)
{
	l->ops->set_reading(l, false);
}
static inline void
link_resume(struct link *l)
{
	l->ops->set_reading(l, true);
}
static inline void
link_free(struct link *l)
{
	if (l != NULL)
		l->ops->free(l);
}

#endif

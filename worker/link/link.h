/*
 * link.h - frames to and from the agent of one box
 *
 * A carrier (carrier.h) makes the link and knows how to reach the agent, again
 * and again.  The link delivers whole frames; what they mean is peer.h's.  A
 * stream of frames begins with on_open and ends with on_close: nothing of one
 * stream holds in the next.
 *
 * Callbacks come from the loop, never from inside a call here.  Each may call
 * link_drop and link_free.
 */
#ifndef WORKER_LINK_LINK_H
#define WORKER_LINK_LINK_H

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/msg/frame_gen.h"
#include "worker/backend.h"

/* All that waits to be sent.  Who sends large frames looks at link_room. */
#define LINK_OUT_MAX (2 * FRAME_DOWN_MAX)
#define LINK_SOON_MS 100

struct link;

struct link_user {
	/* A stream begins: the agent is there. */
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

/* link_set_user - before anything else; user is kept by pointer */
void link_set_user(struct link *l, const struct link_user *user, void *arg);
/* link_expect - the box runs and this is how it was seen: its agent is let in
 * from now on, nobody else and nobody before */
void link_expect(struct link *l, const struct backend_container *c);

/* link_room - bytes that link_out still takes */
size_t link_room(const struct link *l);
/* link_out - where to append whole frames (frame_put_...), at most
 * link_room; then link_send: now, or at the end of the turn if one is under
 * way.  Without a stream they are dropped.  link_send_soon: with what is sent
 * next, or in LINK_SOON_MS. */
struct buf *link_out(struct link *l);
void link_send(struct link *l);
void link_send_soon(struct link *l);

void link_drop(struct link *l); /* the stream, now; on_close is not called */
/* link_hang_up - the stream, soon, and unsent frames with it; on_close is
 * called */
void link_hang_up(struct link *l);
/* link_pause, link_resume - stop and go on reading */
void link_pause(struct link *l);
void link_resume(struct link *l);
/* link_pace - at most so many bytes per second are read, or as many as the
 * carrier permits if those are fewer; 0: as many as it permits */
void link_pace(struct link *l, uint64_t bytes_per_s);
void link_free(struct link *l); /* NULL is fine */

#endif

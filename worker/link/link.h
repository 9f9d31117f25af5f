/*
 * link.h - frames to and from the agent of one box
 *
 * A carrier (carrier.h) reaches the agent, again and again, and gives each
 * connection to link_begin.  The link delivers whole frames; what they mean is
 * peer.h's.  A stream of frames begins with on_open and ends with on_close:
 * nothing of one stream holds in the next.
 *
 * Callbacks come from the loop or from link_begin, never from inside another
 * call here.  Each may call link_free.
 */
#ifndef WORKER_LINK_LINK_H
#define WORKER_LINK_LINK_H

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/msg/frame_gen.h"

/* Bytes that wait to be sent.  Senders of large frames look at link_room. */
#define LINK_OUT_MAX (2 * FRAME_DOWN_MAX)
#define LINK_SOON_MS 100
/* Read from one link before the others have their turn. */
#define LINK_TURN_BYTES (256u << 10)

struct event;
struct event_base;
struct link;
struct timer;

/* How fast a link may be read: bytes that may be come at a steady rate and are
 * kept for at most a second; what was read beyond them is waited for
 * afterwards. */
struct pace {          /* link.c's; times are of the monotonic clock */
	uint64_t most; /* bytes per second; 0: any */
	uint64_t rate; /* of them, for now; 0: any */
	int64_t budget;
	uint64_t at_ms; /* when that was */
};

/* pace_init - never more than most; 0: as much as there is */
void pace_init(struct pace *p, uint64_t most, uint64_t now_ms);
/* pace_set - from now on; 0: as pace_init said */
void pace_set(struct pace *p, uint64_t rate, uint64_t now_ms);
/* pace_charge - n bytes were read: how many ms until more may be */
uint64_t pace_charge(struct pace *p, size_t n, uint64_t now_ms);

struct link_user {
	/* A stream begins: the agent is there. */
	void (*on_open)(void *arg);
	/* Negative with *e: no frame of a good agent; the stream ends and
	 * on_close follows with ERR_PROTO. */
	int (*on_frame)(struct frame *f, void *arg, struct err *e);
	void (*on_turn)(void *arg); /* no more for now */
	/* The stream is gone; another one may begin. */
	void (*on_close)(const struct err *why, void *arg);
	void (*on_drain)(void *arg); /* all was sent */
};

/* For others to read, for link.c to write. */
struct link {
	struct event_base *base;
	const struct link_user *user;
	void *arg;
	int fd;         /* the stream, -1: none */
	int failed;     /* errno of a send */
	struct buf out; /* at most LINK_OUT_MAX */
	struct buf in;  /* a frame that is not whole yet */
	struct event *on_read;
	struct event *on_write;
	struct timer *soon;   /* set: out waits for link_send */
	struct timer *refill; /* set: nothing is read for the pace's sake */
	struct pace pace;
	uint32_t generation; /* of the stream */
	bool in_turn;        /* read_cb runs */
	bool sends;          /* in this turn: link_send was called */
	bool paused;
	bool dead; /* freed in a later turn of the loop */
};

/* link_new - without a stream.  bytes_per_s: read from it, after the first so
 * many; 0: any.  Then link_set_user, before anything else; user is kept by
 * pointer. */
struct link *link_new(struct event_base *base, uint64_t bytes_per_s);
void link_set_user(struct link *l, const struct link_user *user, void *arg);
void link_free(struct link *l); /* NULL is fine; the carrier's door first */

/* link_begin - fd is the agent's connection, a stream socket that does not
 * block, and the link's from now on.  A stream that is there ends. */
void link_begin(struct link *l, int fd);
/* link_hang_up - end the stream soon, and unsent frames with it; on_close is
 * called */
void link_hang_up(struct link *l);

/* link_room - bytes that link_out still takes */
static inline size_t
link_room(const struct link *l)
{
	return buf_room(&l->out);
}
/* link_out - where to append whole frames (frame_put_...), at most
 * link_room; then link_send: now, or at the end of the turn if one is under
 * way.  Without a stream they are dropped.  link_send_soon: with the next
 * link_send, or in LINK_SOON_MS. */
static inline struct buf *
link_out(struct link *l)
{
	return &l->out;
}
void link_send(struct link *l);
void link_send_soon(struct link *l);

/* link_pause, link_resume - stop and go on reading */
void link_pause(struct link *l);
void link_resume(struct link *l);
/* link_pace - at most so many bytes per second are read, or as many as
 * link_new permits if those are fewer; 0: as many as it permits */
void link_pace(struct link *l, uint64_t bytes_per_s);

#endif

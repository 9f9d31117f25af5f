/*
 * peer.h - the agent as the worker sees it: channels on a link
 *
 * schema/frame.txt says what a channel is.  What comes up is taken for
 * hostile: only what is permitted now, with all fields within limits, of a
 * channel that was opened, in order and within the credit granted, is passed
 * on; anything else ends the stream, and on_down says ERR_PROTO.  That what
 * it says is also true is for the callbacks to see; they return negative with
 * *e when it is not.
 *
 * A stream is up from HELLO_END on.  Channels are of one stream: when it is
 * lost they are, before on_down is called.
 */
#ifndef WORKER_LINK_PEER_H
#define WORKER_LINK_PEER_H

#include "common/base.h"
#include "common/err.h"
#include "common/msg/frame_gen.h"
#include "common/runlog.h"
#include "common/uuid.h"
#include "worker/link/link.h"

#define PEER_RUNS_MAX 8192   /* in one HELLO */
#define PEER_WALK_WINDOW 256 /* entries granted at a time */

struct peer;
struct peer_chan;

/* A run whose log the agent keeps, from byte from to length. */
struct peer_run {
	struct uuid uuid;
	bool ended;
	uint64_t from;
	uint64_t length;
};

struct peer_hello {
	uint32_t version; /* of the link, that the agent speaks */
	struct uuid boot; /* the agent's life */
	struct peer_run *runs;
	uint32_t nruns;
};

struct peer_ops {
	/* The stream is up; *h is the peer's until the next HELLO. */
	int (*on_hello)(const struct peer_hello *h, void *arg, struct err *e);
	void (*on_turn)(void *arg);  /* no more for now */
	void (*on_drain)(void *arg); /* room again */
	/* Not up any more; the carrier waits for the next stream. */
	void (*on_down)(const struct err *why, void *arg);
	/* A line about itself; as often as it likes.  NULL: nobody hears. */
	void (*on_said)(const struct frame_said *m, void *arg);
};

/* What comes on a channel of one kind; what is NULL is malformed for it.  Any
 * may close the channel, or free the peer. */
struct peer_chan_ops {
	int (*on_known)(bool fresh, void *arg, struct err *e);
	/* The next n bytes of the stream; peer_take when they are taken. */
	int (*on_data)(const uint8_t *p, size_t n, void *arg, struct err *e);
	int (*on_entry)(const struct frame_entry *m, void *arg, struct err *e);
	/* The agent has ended it, 0 or an errno: the channel is gone.  text is
	 * whatever the sandbox wants us to read. */
	void (*on_close)(int code, const char *text, void *arg);
	/* The stream is lost or the peer freed, and the channel gone with it.
	 * Calls no peer_x. */
	void (*on_lost)(void *arg);
};

/* peer_new - the link is the peer's.  Callbacks may free the peer. */
struct peer *peer_new(struct link *link, const struct peer_ops *ops, void *arg);
void peer_free(struct peer *p);
/* peer_limit_greeting - of each stream from now on: one that is not up after
 * so long, while it was read, is given up; 0, as without it: none is */
void peer_limit_greeting(struct peer *p, uint32_t ms);
/* peer_ping - asks the agent whether it is there; false: it has not answered
 * the last time, and is not asked again.  Only while the stream is up. */
bool peer_ping(struct peer *p);
/* peer_lease - how long the agent may go on without us */
void peer_lease(struct peer *p, uint64_t ms);
/* peer_has_room - for n further bytes and some small frames */
bool peer_has_room(const struct peer *p, size_t n);

/*
 * peer_open_x - a channel, with its first window granted
 *
 * chan and limit of m are filled in here.  The peer must be up.  An agent
 * that does not read, so that not even a small frame fits into what waits to
 * be sent, loses its stream.
 */
struct peer_chan *peer_open_sequence(struct peer *p,
    struct frame_open_sequence m, const struct peer_chan_ops *ops, void *arg);
struct peer_chan *peer_open_read(struct peer *p, struct frame_open_read m,
    const struct peer_chan_ops *ops, void *arg);
struct peer_chan *peer_open_walk(struct peer *p, struct frame_open_walk m,
    const struct peer_chan_ops *ops, void *arg);

/* peer_open_ask - grants ASK_ANSWER_MAX bytes, once */
struct peer_chan *peer_open_ask(struct peer *p, struct frame_open_ask m,
    const struct peer_chan_ops *ops, void *arg);
/* peer_take_left - true: the agent has said anew (at hello, and at each answer
 * to a ping) how many processes live that commands left behind */
bool peer_take_left(struct peer *p, uint32_t *count);

/* peer_take - all before offset (bytes, entries) is taken for good, and as
 * much as before may come behind it */
void peer_take(struct peer_chan *c, uint64_t offset);
void peer_cancel(struct peer_chan *c, enum runlog_reason reason);
/* peer_close - nothing more of it is wanted; c is gone.  NULL is fine. */
void peer_close(struct peer_chan *c);
/* peer_forget - as peer_close, of what has ended: the agent need not be woken
 * for that alone */
void peer_forget(struct peer_chan *c);
/* peer_leave - its owner goes: c is gone here, the agent is not told.  NULL is
 * fine. */
void peer_leave(struct peer_chan *c);
/* peer_discard - of a run that nobody wants and no channel is for: the agent
 * stops it if it lives, and keeps no log of it; from: as far as its log was
 * taken, or is kept */
void peer_discard(struct peer *p, const struct uuid *run, uint64_t from);
/* peer_taken - that file, as the entry with this mark said, was copied */
void peer_taken(struct peer *p, const struct frame_taken *m);
/* peer_taken_stored - all those are in the store, or never will be */
void peer_taken_stored(struct peer *p, bool stored);

#endif

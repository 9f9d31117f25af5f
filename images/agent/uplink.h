/*
 * uplink.h - the link's state: connecting, frames in and out, fair sending
 *
 * Tries to connect every 5 ms, then after twice as long each time up to
 * 500 ms, until a worker has answered with WELCOME; and again whenever the
 * link is lost.  A malformed frame loses it too.
 *
 * On a bridge it waits for uplink_take instead.  Who is behind a bridge may be
 * gone without a word, so one that moves no byte for quiet_ms is lost: the
 * worker's PING comes more often (FRAME_BRIDGE_QUIET_MS).
 *
 * Frames are collected and leave together at the end of a loop turn.  After
 * uplink_hold they wait up to UPLINK_HOLD_US for more, and UPLINK_OUTPUT_US
 * from the first output on: a short command's whole log then leaves in one
 * write with the answer to OPEN_SEQUENCE (docs/decisions/0033).
 */
#ifndef AGENT_UPLINK_H
#define AGENT_UPLINK_H

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/msg/frame_gen.h"
#include "images/agent/flow.h"
#include "images/agent/uplink_stream.h"
#include "images/agent/loop.h"

#define UPLINK_BACKOFF_FIRST_MS 5
#define UPLINK_BACKOFF_MAX_MS 500
#define UPLINK_HOLD_US 40000
#define UPLINK_OUTPUT_US 8000
/* Above this no frame is taken from the worker and no file is sent. */
#define UPLINK_OUT_HIGH (512u << 10)
#define UPLINK_OUT_MAX (8u << 20)

enum uplink_state {
	UPLINK_DOWN,
	UPLINK_GREETING,
	UPLINK_UP
};

struct uplink_ops {
	void (*on_open)(void *arg); /* say HELLO */
	/* A frame other than WELCOME; not 0 when it is malformed. */
	int (*on_frame)(struct frame *f, void *arg, struct err *e);
	void (*on_close)(void *arg);
};

TAILQ_HEAD(flow_queue, flow);

struct uplink {
	struct loop *loop;
	const struct uplink_ops *ops;
	void *arg;
	struct uplink_stream link;
	loop_token token;
	uint32_t events;
	enum uplink_state state;
	bool blocked; /* the carrier takes no more now */
	bool choked;  /* whole frames wait in "in" for room in "out" */
	uint64_t hold_until_us; /* 0: flush at the end of the turn */
	uint64_t retry_at_ms;
	uint32_t backoff_ms;
	uint64_t quiet_ms; /* 0: for ever */
	uint64_t moved_ms; /* when the stream last moved a byte */
	struct buf in;
	struct buf out; /* for frame_put_x, then uplink_put */
	struct flow_queue queue;
};

void uplink_init(struct uplink *u, struct loop *loop, const char *address,
    const struct uplink_ops *ops, void *arg);
/* uplink_await - instead of connecting: wait for bridges */
void uplink_await(struct uplink *u, uint64_t quiet_ms);
/* uplink_take - a bridge's stream, which is u's from now on; it takes the place
 * of the one that is there */
void uplink_take(struct uplink *u, int fd);
/* uplink_tick - connect when it is time, give up a bridge that is quiet */
void uplink_tick(struct uplink *u, uint64_t now_ms);
/* uplink_put - after a frame_put_x into u->out, with what it returned: the
 * frame leaves with this turn.  The caller has made sure of room. */
void uplink_put(struct uplink *u, int rc);
bool uplink_has_room(const struct uplink *u); /* below UPLINK_OUT_HIGH */
bool uplink_is_up(const struct uplink *u);
/* uplink_kick - f may have something to send */
void uplink_kick(struct uplink *u, struct flow *f);
void uplink_drop(struct uplink *u, struct flow *f); /* before its end */
/* uplink_hold - if nothing waits to be sent, delays the next write;
 * uplink_hurry - output has come: delays it less; uplink_urgent - not at all */
void uplink_hold(struct uplink *u);
void uplink_hurry(struct uplink *u);
void uplink_urgent(struct uplink *u);
/* uplink_flush - at the end of each turn */
void uplink_flush(struct uplink *u);
/* uplink_next_ms - when a tick or a flush is due, in ms from now; -1: never */
int uplink_next_ms(const struct uplink *u);

#endif

/*
 * mux.h - the channels of the link: their numbers, and who has them
 *
 * A channel of schema/frame.txt is a struct chan inside the object that serves
 * it.  A kind's on_open (agent.c has the table) claims the number, and then
 * adds its channel or refuses the number.
 *
 *	claimed -> refused
 *	claimed -> open -> closed by us (mux_close), by the worker, or lost
 *
 * Frames of a number that was are passed over, of one that never was are
 * malformed.
 */
#ifndef AGENT_MUX_H
#define AGENT_MUX_H

#include "common/base.h"
#include "common/err.h"
#include "common/hashmap.h"
#include "common/msg/frame_gen.h"
#include "images/agent/uplink.h"

struct chan;

enum chan_gone {
	CHAN_CLOSED, /* by the worker */
	CHAN_LOST    /* the link is */
};

struct chan_ops {
	/* A NULL handler: this kind of channel has no such frame.  Negative:
	 * the frame is malformed.  A handler may close c. */
	int (*on_data)(
	    struct chan *c, const struct frame_data *m, struct err *e);
	int (*on_credit)(
	    struct chan *c, const struct frame_credit *m, struct err *e);
	int (*on_cancel)(
	    struct chan *c, const struct frame_cancel *m, struct err *e);
	int (*on_stream_end)(
	    struct chan *c, const struct frame_stream_end *m, struct err *e);
	/* It is not open any more; its owner may be gone after. */
	void (*on_gone)(struct chan *c, enum chan_gone how);
};

struct chan {
	struct hash_entry by_number;
	uint32_t number; /* 0: not open */
	const struct chan_ops *ops;
	void *arg; /* the ops' */
};

struct mux { /* mux.c writes */
	struct uplink *uplink;
	struct hashmap chans;
	uint32_t last; /* the highest number of this link */
};

void mux_init(struct mux *m, struct uplink *uplink);
/* mux_claim - number is new; ERR_PROTO when it is not */
int mux_claim(struct mux *m, uint32_t number, struct err *e) MUSTCHECK;
void mux_add(struct mux *m, struct chan *c, uint32_t number,
    const struct chan_ops *ops, void *arg);
/* mux_refuse - CLOSE for a number that was claimed; code is an errno */
void mux_refuse(struct mux *m, uint32_t number, int code, const char *text);
/* mux_close - from our side, without on_gone; fine when it is not open */
void mux_close(struct mux *m, struct chan *c, int code, const char *text);
void mux_on_lost(struct mux *m); /* the link is lost */

/* Frames from the worker. */
int mux_on_data(struct mux *m, const struct frame_data *f, struct err *e);
int mux_on_credit(struct mux *m, const struct frame_credit *f, struct err *e);
int mux_on_cancel(struct mux *m, const struct frame_cancel *f, struct err *e);
int mux_on_stream_end(
    struct mux *m, const struct frame_stream_end *f, struct err *e);
int mux_on_close(struct mux *m, const struct frame_close *f, struct err *e);

#endif

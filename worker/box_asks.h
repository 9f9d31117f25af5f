/*
 * box_asks.h - questions from the front to the agent of a box
 *
 * Each ASK is a channel to the agent and gets one ANSWER (schema/ipc.txt):
 * what the agent sent, which the front decodes and checks, or why there is
 * nothing.
 */
#ifndef WORKER_BOX_ASKS_H
#define WORKER_BOX_ASKS_H

#include "common/base.h"
#include "common/err.h"
#include "common/msg/msg_gen.h"
#include "worker/link/peer.h"

#define BOX_ASKS_MAX 16         /* open at once */
#define BOX_ASKS_WORKER_MAX 256 /* each may hold ASK_ANSWER_MAX bytes */

struct box_asks;

struct box_asks_host {
	struct ipc_chan **front;
	uint32_t open; /* box_asks.c counts: of all boxes */
};

/* box_asks_new - host is kept by pointer */
struct box_asks *box_asks_new(struct box_asks_host *host, uint64_t sandbox);
/* box_asks_free - answers what is open: the sandbox is gone */
void box_asks_free(struct box_asks *as);
/* box_asks_attach - the agent is there, and speaks that version of the link;
 * before box_asks_detach, or the free, its channels are gone */
void box_asks_attach(struct box_asks *as, struct peer *p, uint32_t version);
void box_asks_detach(struct box_asks *as);
/* box_asks_start - ERR_PROTO: there is no such kind */
int box_asks_start(
    struct box_asks *as, const struct msg_ask *m, struct err *e) MUSTCHECK;
/* box_asks_cancel - nothing when it was answered already */
void box_asks_cancel(struct box_asks *as, uint64_t number);

#endif

/*
 * left_asks.h - what the front asks about what a box's runs left behind
 *
 * Each LEFT_ASK is a channel to the agent and gets one LEFT_ANSWER: the
 * agent's list, whole, which the front decodes and checks, or why there is
 * none.  How many processes live there is told (SANDBOX_LEFT) when the agent
 * has said it: at hello, and as often as it is pinged; none only once.
 */
#ifndef WORKER_LEFT_ASKS_H
#define WORKER_LEFT_ASKS_H

#include "common/base.h"
#include "common/msg/msg_gen.h"
#include "worker/link/peer.h"

#define LEFT_ASKS_MAX 16 /* of a box, at once */

struct left_asks;

struct left_asks *left_asks_new(struct ipc_chan **front, uint64_t sandbox);
void left_asks_free(struct left_asks *la);
/* left_asks_attach - the agent is there; before left_asks_detach, or the free,
 * its channels are gone */
void left_asks_attach(struct left_asks *la, struct peer *p);
void left_asks_detach(struct left_asks *la);
void left_asks_start(struct left_asks *la, const struct msg_left_ask *m);
/* left_asks_refuse - of a box that is not here */
void left_asks_refuse(struct ipc_chan *front, const struct msg_left_ask *m);
/* left_asks_on_turn - the agent may have said how many there are */
void left_asks_on_turn(struct left_asks *la);

#endif

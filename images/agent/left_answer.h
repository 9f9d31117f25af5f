/*
 * left_answer.h - OPEN_LEFT: what a run left behind is listed, or killed
 *
 * The answer is there at once, so it is one frame of DATA on stream 0, a
 * leftlist (common/leftlist.h), and CLOSE behind it.
 */
#ifndef AGENT_LEFT_ANSWER_H
#define AGENT_LEFT_ANSWER_H

#include "common/base.h"
#include "common/err.h"
#include "images/agent/remnants.h"
#include "images/agent/mux.h"

int left_answer_on_open(struct mux *mux, struct remnants *ls,
    const struct frame_open_left *m, struct err *e) MUSTCHECK;

#endif

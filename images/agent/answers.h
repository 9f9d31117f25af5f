/*
 * answers.h - OPEN_ASK: questions with a short answer
 *
 * The answer is there at once: one frame of DATA on stream 0 and CLOSE behind
 * it.  A new kind is its number in common/agent_ask.h and a row of the table in
 * answers.c.
 */
#ifndef AGENT_ANSWERS_H
#define AGENT_ANSWERS_H

#include "common/base.h"
#include "common/err.h"
#include "images/agent/mux.h"
#include "images/agent/remnants.h"

int answers_on_open(struct mux *mux, struct remnants *ls,
    const struct frame_open_ask *m, struct err *e) MUSTCHECK;

#endif

/*
 * spares.h - pipes made ahead, for the next command
 *
 * They are made when a command has ended and nobody waits, and belong to the
 * sandbox's user already; the loop watches their reading ends.  Nobody but us
 * has ever had them open.
 */
#ifndef AGENT_SPARES_H
#define AGENT_SPARES_H

#include "common/base.h"
#include "images/agent/loop.h"

#define SPARES_MAX 2 /* stdout and stderr of one command */

struct spare {
	int fd; /* does not block; the write end does */
	int write_end;
	loop_token token; /* of EPOLLIN at fd; 0: not watched */
};

/* spares_take - one with a watch that calls cb(arg), or false */
bool spares_take(
    struct loop *loop, loop_cb cb, void *arg, struct spare *out) MUSTCHECK;
/* spares_fill - as many as there may be, or fewer */
void spares_fill(struct loop *loop);
/* spares_make - one without a watch; 0 or an errno */
int spares_make(struct spare *out) MUSTCHECK;

#endif

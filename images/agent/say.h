/*
 * say.h - what the agent has to say about itself, for the server's log
 *
 * Lines wait here for the link, at most SAY_WAITING_MAX.  A burst of SAY_BURST
 * is taken, then one line in SAY_EVERY_MS; dropped lines are counted, and the
 * next line carries the count.  A command that ends by itself is no line.
 *
 * There is one list in the program, so that a module without a pointer to the
 * agent (places.c) can use it.  Lines of a keeper, which is a copy, go nowhere.
 */
#ifndef AGENT_SAY_H
#define AGENT_SAY_H

#include "common/base.h"
#include "common/msg/frame_gen.h"
#include "common/uuid.h"

#define SAY_WAITING_MAX 16u
#define SAY_BURST 10u
#define SAY_EVERY_MS 2000u

/* say_line - run: which one it is about, NULL: none; cut at
 * FRAME_SAID_TEXT_MAX. errno is preserved. */
void say_line(enum frame_said_level level, enum frame_said_what what,
    const struct uuid *run, const char *fmt, ...) PRINTF(4, 5);
/* say_is_waiting - there is one to be taken */
bool say_is_waiting(void);
/* say_take - the oldest, which is not kept any longer; its text is good until
 * the next say_line */
void say_take(struct frame_said *out);

#endif

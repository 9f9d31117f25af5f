/* crowded.h - no process is free in this sandbox: which run has them */
#ifndef AGENT_CROWDED_H
#define AGENT_CROWDED_H

#include "images/agent/procs.h"

/*
 * crowded_text - of an end for want of a process, who has most of them and
 * what ends these, in the place of proc_end_text's words; of every other end,
 * and where nobody else has any, text stays as it is
 *
 *	size	of text, which is cut at a character's end to fit with its NUL
 */
void crowded_text(
    struct procs *ps, const struct proc_end *end, char *text, size_t size);

#endif

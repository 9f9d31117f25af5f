/*
 * probe_program.h - what shows whether a network keeps two Pods apart
 *
 *	agent listen PORT			takes connections, hangs up
 *	agent reach ADDRESS:PORT MS		0 as soon as one was taken
 *	agent barred ADDRESS:PORT MS QUIET_MS	0 when none was for QUIET_MS
 *
 * reach and barred end with 1, after a line on stderr, when that has not come
 * about in MS.  Both try again and again: a listener may come up later than who
 * calls it, and a network's rules later than the Pod that they are for.
 * ADDRESS is a number, IPv6 in brackets.  barred says nothing about why:
 * somebody else must reach the same listener meanwhile.
 */
#ifndef AGENT_PROBE_PROGRAM_H
#define AGENT_PROBE_PROGRAM_H

#include "common/base.h"

/* probe_program_is - whether argv asks for one of them, well or badly */
bool probe_program_is(int argc, char **argv);
/* probe_program_run - its exit status; EXIT_USAGE after a line on stderr */
int probe_program_run(int argc, char **argv);

#endif

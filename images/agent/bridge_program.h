/*
 * bridge_program.h - "agent bridge": joins standard input and output with the
 * agent
 *
 * A worker that shares no directory with a sandbox has the engine start this
 * program in it, once per link.  What comes on standard input goes to the
 * agent's inner socket (bridges.h), and what the agent sends to standard
 * output.  It reads none of it, and needs two buffers and nothing else.
 *
 * An end on any side ends it at once, and what is on its way is dropped:
 * whoever links next goes on from offsets.
 */
#ifndef AGENT_BRIDGE_PROGRAM_H
#define AGENT_BRIDGE_PROGRAM_H

/* bridge_program_run - its exit status: 0 when either side hung up, 1, after a
 * line on stderr, when no agent listens */
int bridge_program_run(void);

#endif

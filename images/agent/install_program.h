/*
 * install_program.h - "agent install DIR": puts a copy of this program into a
 * directory that a sandbox mounts
 *
 * The copy is DIR/agent, by one step: what stands there is whole, or was there
 * before.  Its mode is 0111.  What can be run and not be read the kernel makes
 * undumpable from its first instruction on, so a command of the same user can
 * look into no bridge (bridge_program.h) in the moment before the bridge
 * forbids it.
 */
#ifndef AGENT_INSTALL_PROGRAM_H
#define AGENT_INSTALL_PROGRAM_H

/* install_program_run - its exit status: 0, or 1 after a line on stderr */
int install_program_run(const char *dir);

#endif

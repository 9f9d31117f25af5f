/*
 * search.h - the search path of a command
 *
 * A program of a name is tried in one directory after the other.  Each that
 * lacks it costs an exec that fails, and mostly it is the same program again.
 * So a keeper remembers, for SEARCH_KNOWN_US at most, which directories lacked
 * the one it ran last: but only those in which nobody can put anything.  They
 * and all above them are root's and writable for no one else, and since they
 * were looked at nothing of root's has run in the sandbox or was written there
 * by PID 1 (search_changes).
 */
#ifndef AGENT_SEARCH_H
#define AGENT_SEARCH_H

#include "images/agent/keeper.h"

#define SEARCH_KNOWN_US 1000000

/* search_exec - on the command's side, instead of libc's execvp: it returns
 * when nothing could be run, the errno */
long search_exec(const struct keeper_job *job);

/* In PID 1.  search_note_root: from now on a process of root's may be alive;
 * search_note_write: something was put into a directory.  search_changes: for
 * a job (keeper.h). */
void search_note_root(void);
void search_note_write(void);
uint32_t search_changes(void);

#endif

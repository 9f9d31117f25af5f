/*
 * caps.h - what the processes of a sandbox may do beyond their user id
 *
 * PID 1 keeps what the container gave it.  Commands run by root keep the same
 * less what the server withholds: what the container has for the agent alone,
 * which are always KILL and SETPCAP (KILL would reach the keepers' signals past
 * user ids, SETPCAP the bounding set).  Commands of uid 1000 keep nothing.
 *
 * The bounding set is emptied once, in PID 1, and not for each command: PID 1
 * and the keepers never exec, so it takes nothing from them, and root's
 * commands get their list through exec by the inheritable set.
 */
#ifndef AGENT_CAPS_H
#define AGENT_CAPS_H

#include "common/base.h"
#include "common/runspec.h"

/* caps_init - once, in PID 1; what is not permitted to it stays as it is.
 * withheld: the capabilities (1 << CAP_x) that no command has */
void caps_init(uint64_t withheld);
/* caps_apply - in a command before exec, after the change of user.  0 or an
 * errno below 0.  Only system calls: the caller shares its memory. */
int caps_apply(enum runspec_user user);

#endif

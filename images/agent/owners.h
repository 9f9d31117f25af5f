/*
 * owners.h - whose a sandbox's processes and files are
 *
 * An agent that is root starts commands as user 1000 or as root, and gives
 * files to either.  One that is another user (a Pod at the level "restricted":
 * not root, no capability) changes neither: all that it starts and writes is
 * its own user's, with the groups that it has itself, and root is refused.
 */
#ifndef AGENT_OWNERS_H
#define AGENT_OWNERS_H

#include "common/base.h"
#include "common/runspec.h"

#define OWNERS_SANDBOX_UID 1000

/* owners_are_many - the agent is root */
bool owners_are_many(void);
/* owners_lack - why nothing here can be user's, for people; NULL: it can */
const char *owners_lack(enum runspec_user user);
/* owners_give - makes it user's, whom owners_lack was asked about; 0, or -1
 * with errno */
int owners_give(int fd, enum runspec_user user) MUSTCHECK;

#endif

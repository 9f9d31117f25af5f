/*
 * owner.h - names of users and groups, for messages
 *
 * From /etc/passwd and /etc/group alone, which a confined worker may read
 * (docker.c's files): no plug-in of the machine is loaded.
 */
#ifndef WORKER_DOCKER_OWNER_H
#define WORKER_DOCKER_OWNER_H

#include <sys/types.h>

#include "common/base.h"

#define OWNER_USERS "/etc/passwd"
#define OWNER_GROUPS "/etc/group"
#define OWNER_NAME_MAX 64

/* owner_user, owner_group - the name, else the number */
const char *owner_user(uid_t uid, char out[OWNER_NAME_MAX]);
const char *owner_group(gid_t gid, char out[OWNER_NAME_MAX]);
/* owner_say_refusal - why this process may not open that Unix socket, and what
 * to do, in size bytes */
void owner_say_refusal(const char *path, char *out, size_t size);

#endif

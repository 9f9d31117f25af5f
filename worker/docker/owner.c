#include "worker/docker/owner.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>

#define ENTRY_BYTES 16384 /* of a group with many members */

const char *
owner_user(uid_t uid, char out[OWNER_NAME_MAX])
{
	FILE *f = fopen(OWNER_USERS, "re");
	struct passwd entry, *found;
	char room[ENTRY_BYTES];

	(void)snprintf(out, OWNER_NAME_MAX, "%lu", (unsigned long)uid);
	if (f == NULL)
		return out;
	while (fgetpwent_r(f, &entry, room, sizeof(room), &found) == 0)
		if (found->pw_uid == uid) {
			(void)snprintf(
			    out, OWNER_NAME_MAX, "%s", found->pw_name);
			break;
		}
	(void)fclose(f);
	return out;
}

const char *
owner_group(gid_t gid, char out[OWNER_NAME_MAX])
{
	FILE *f = fopen(OWNER_GROUPS, "re");
	struct group entry, *found;
	char room[ENTRY_BYTES];

	(void)snprintf(out, OWNER_NAME_MAX, "%lu", (unsigned long)gid);
	if (f == NULL)
		return out;
	while (fgetgrent_r(f, &entry, room, sizeof(room), &found) == 0)
		if (found->gr_gid == gid) {
			(void)snprintf(
			    out, OWNER_NAME_MAX, "%s", found->gr_name);
			break;
		}
	(void)fclose(f);
	return out;
}

void
owner_say_refusal(const char *path, char *out, size_t size)
{
	char user[OWNER_NAME_MAX], owner[OWNER_NAME_MAX], group[OWNER_NAME_MAX];
	struct stat st;

	(void)owner_user(geteuid(), user);
	if (stat(path, &st) == -1) {
		(void)snprintf(out, size,
		    "user %s may not go to it: a directory above it is another "
		    "user's alone",
		    user);
		return;
	}
	(void)owner_user(st.st_uid, owner);
	(void)owner_group(st.st_gid, group);
	if ((st.st_mode & (S_IRGRP | S_IWGRP)) == (S_IRGRP | S_IWGRP))
		(void)snprintf(out, size,
		    "it is for group %s, which user %s is not in: usermod -aG "
		    "%s %s, and start anew",
		    group, user, group, user);
	else
		(void)snprintf(out, size,
		    "it is for user %s alone, and this is user %s: chgrp %s "
		    "and chmod 660 it, or have whoever makes it do so",
		    owner, user, owner_group(getegid(), group));
}

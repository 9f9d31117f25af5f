#include "images/agent/owners.h"

#include <stdio.h>

bool
owners_are_many(void)
{
	return geteuid() == 0;
}

const char *
owners_lack(enum runspec_user user)
{
	static char text[96];

	if (user != RUNSPEC_USER_ROOT || owners_are_many())
		return NULL;
	(void)snprintf(text, sizeof(text),
	    "there is no root in this sandbox: all its commands run as user "
	    "%u",
	    (unsigned int)geteuid());
	return text;
}

int
owners_give(int fd, enum runspec_user user)
{
	uid_t id = user == RUNSPEC_USER_ROOT ? 0 : OWNERS_SANDBOX_UID;

	return owners_are_many() ? fchown(fd, id, id) : 0;
}

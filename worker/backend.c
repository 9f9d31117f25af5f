#include "worker/backend.h"

#include <stdio.h>

#include "common/exit.h"

void
backend_handle_named(struct backend_handle *h, const char *id_or_name)
{
	memset(h, 0, sizeof(*h));
	(void)snprintf(h->id, sizeof(h->id), "%s", id_or_name);
}

void
backend_handle_set_tenant(struct backend_handle *h, const char *tenant)
{
	(void)snprintf(h->tenant, sizeof(h->tenant), "%s", tenant);
}

void
backend_why_ended(const struct backend_container *c, char *why, size_t size)
{
	if (c->removing)
		(void)snprintf(
		    why, size, "its container was removed from outside");
	else if (c->report != NULL && c->report->ended[0] != '\0')
		(void)snprintf(why, size, "%s", c->report->ended);
	else if (c->oom_killed)
		(void)snprintf(why, size, "out of memory");
	else if (c->exit_code == EXIT_ABANDONED)
		(void)snprintf(why, size,
		    "no server came for its TTL and SANDBOX_GRACE_SECONDS");
	else if (c->exit_code == EXIT_SPACE)
		(void)snprintf(why, size,
		    "its file system held far more than SANDBOX_DISK_MB or "
		    "SANDBOX_DISK_INODES");
	else
		(void)snprintf(
		    why, size, "exited with status %d", c->exit_code);
}

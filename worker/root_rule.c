#include "worker/root_rule.h"

#include <stdio.h>
#include <sys/stat.h>

const char *
root_rule_refusal(const struct policy *p, const struct backend *backend)
{
	if (p->as_root == POLICY_ROOT_ALLOW)
		return NULL;
	if (p->as_root == POLICY_ROOT_DENY)
		return "commands as root are not allowed here "
		       "(SANDBOX_AS_ROOT=deny): leave as_user out";
	switch (backend->ops->users(backend)) {
	case BACKEND_USERS_UNKNOWN:
		return "whether the engine remaps users is not known yet "
		       "(SANDBOX_AS_ROOT=remapped): try again";
	case BACKEND_USERS_SAME:
		return "commands as root are not allowed here: "
		       "SANDBOX_AS_ROOT=remapped, and the engine remaps no "
		       "users: leave as_user out, or start the engine with "
		       "--userns-remap=default";
	case BACKEND_USERS_MAPPED:
		break;
	}
	return NULL;
}

static bool
is_users(const struct policy *p, const struct backend *backend,
    enum backend_users users)
{
	return p->as_root == POLICY_ROOT_REMAPPED &&
	    backend->ops->users(backend) == users;
}

bool
root_rule_is_unknown(const struct policy *p, const struct backend *backend)
{
	return is_users(p, backend, BACKEND_USERS_UNKNOWN);
}

/* A process that may not be looked at counts as root's. */
static bool
is_root_here(const struct backend_container *c)
{
	char path[32];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%lld", (long long)c->pid);
	return stat(path, &st) == 0 && st.st_uid == 0;
}

bool
root_rule_is_broken(const struct policy *p, const struct backend *backend,
    const struct backend_container *c)
{
	return is_users(p, backend, BACKEND_USERS_MAPPED) && is_root_here(c);
}

/*
 * root_rule.h - SANDBOX_AS_ROOT: may commands be root of their sandbox?
 */
#ifndef WORKER_ROOT_RULE_H
#define WORKER_ROOT_RULE_H

#include "common/base.h"
#include "worker/backend.h"
#include "worker/policy.h"

/* root_rule_refusal - NULL, or why commands may not be root */
const char *root_rule_refusal(
    const struct policy *p, const struct backend *backend);
/* root_rule_is_unknown - what holds is not known yet; then no agent is let in:
 * its commands would be refused for nothing */
bool root_rule_is_unknown(
    const struct policy *p, const struct backend *backend);
/* root_rule_is_broken - the engine says that it remaps users, and the kernel
 * shows the first process of this box as root of the host */
bool root_rule_is_broken(const struct policy *p, const struct backend *backend,
    const struct backend_container *c);
#define ROOT_RULE_BROKEN                                                       \
	"SANDBOX_AS_ROOT is remapped and the engine says that it remaps, but " \
	"the sandbox's root is root of this host"

#endif

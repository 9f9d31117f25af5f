/*
 * isolation.h - how the engine holds a sandbox, by its own inspection
 *
 * What was found, not what was asked for.  Bounded, whatever the engine says:
 * words are cut and made printable, lists are short, and what is no number of
 * 0 or more is 0.
 */
#ifndef WORKER_DOCKER_ISOLATION_H
#define WORKER_DOCKER_ISOLATION_H

#include <jansson.h>

#include "common/base.h"
#include "worker/backend.h"
#include "worker/policy.h"

/* What of it is the host's, or the engine's, and so the same for all. */
struct isolation_host {
	const struct policy *policy;
	bool has_seccomp;   /* the engine enforces profiles */
	bool has_own_users; /* it remaps */
	json_t *advisories; /* NULL: not known */
};
/* isolation_write - one JSON object from the inspection; "" when that is none.
 * docs/operations.md has its members. */
void isolation_write(const char *s, size_t n, const struct isolation_host *h,
    char out[BACKEND_ISOLATION_MAX + 1]);

#endif

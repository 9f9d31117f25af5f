/*
 * proc_spec.h - what a process is started with
 *
 * Everything is kept by pointer, and must stay as long as the process lives:
 * a job whose keeper died before it began is given to another one.
 */
#ifndef AGENT_PROC_SPEC_H
#define AGENT_PROC_SPEC_H

#include "common/base.h"
#include "common/runspec.h"
#include "common/uuid.h"

struct proc_spec {
	char *const *argv; /* NULL behind the last; as in runspec_command */
	char *const *env;  /* K=V each, on top of env.h's, NULL at the end */
	const char *cwd;
	enum runspec_user user;
	uint32_t
	    flags; /* RUNSPEC_SHELL, RUNSPEC_MERGE_STDERR; no others count */
	uint32_t timeout_ms;
	/* Whose it is when what it leaves behind may live on (remnants.h);
	 * NULL: all of it ends with it. */
	const struct proc_origin *origin;
};

struct proc_origin {
	struct uuid run;
	uint16_t command;
};

static inline struct proc_spec
proc_spec_of(const struct runspec_command *c, enum runspec_user user)
{
	return (struct proc_spec){.argv = c->argv,
	    .env = c->env,
	    .cwd = c->cwd,
	    .user = user,
	    .flags = c->flags,
	    .timeout_ms = c->timeout_ms};
}

#endif

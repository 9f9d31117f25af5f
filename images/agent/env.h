/*
 * env.h - what a process is started with: program, arguments, environment
 *
 * Its environment is the image's and what goes with that (base_env.h), then
 * the command's USER, LOGNAME and PWD, and HOME where the image has none; the
 * call's entries replace those of the same name.
 *
 * Shell text is run by a login shell, as "bash -lc" does.  Where the call says
 * a PATH, or the image one that is not the usual one, an assignment of it goes
 * before the text, since profiles set PATH anew.
 */
#ifndef AGENT_ENV_H
#define AGENT_ENV_H

#include "common/base.h"
#include "images/agent/proc_spec.h"

#define ENV_OWN_MAX 5

struct env_start {
	char *const *argv;
	char **env;
	const char *program; /* as in struct keeper_job */
	const char *search;
	const char *shell_argv[5];
	/* owned */
	char *shell_text; /* NULL: the spec's */
	char *own[ENV_OWN_MAX];
	uint32_t own_count;
};

/* env_build - *s points into spec and owns the rest; env_clear when started */
void env_build(struct env_start *s, const struct proc_spec *spec);
void env_clear(struct env_start *s);

#endif

/*
 * env.h - what a process is started with: program, arguments, environment
 *
 * Base environment: PATH (the agent's own), HOME, USER, LOGNAME, LANG, PWD;
 * its own entries replace those of the same name.
 */
#ifndef AGENT_ENV_H
#define AGENT_ENV_H

#include "common/base.h"
#include "images/agent/proc_spec.h"

#define ENV_DEFAULT_PATH                                                       \
	"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

#define ENV_SHELL_WORDS 3 /* before its text */

struct env_start {
	char *const *argv;
	char **env;
	const char *program; /* as in struct keeper_job */
	const char *search;
	/* owned */
	char *shell_argv[ENV_SHELL_WORDS + 2]; /* but for the text */
	char *base[6];
	uint32_t nbase;
};

/* env_init - keep PATH of the agent's own environment; once at start */
void env_init(void);
/* env_build - *s points into spec and owns the rest; env_clear when started */
void env_build(struct env_start *s, const struct proc_spec *spec);
void env_clear(struct env_start *s);

#endif

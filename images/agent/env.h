/*
 * env.h - what a command is started with: program, arguments, environment
 *
 * Base environment: PATH (the agent's own), HOME, USER, LOGNAME, LANG, PWD;
 * the command's own entries replace those of the same name.
 */
#ifndef AGENT_ENV_H
#define AGENT_ENV_H

#include "common/base.h"
#include "common/runspec.h"

#define ENV_DEFAULT_PATH                                                       \
	"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct env_start {
	char **argv;
	char **env;
	const char *program; /* as in struct keeper_job */
	const char *search;
	/* owned */
	char *shell_argv[4];
	char *base[6];
	uint32_t nbase;
};

/* env_init - keep PATH of the agent's own environment; once at start */
void env_init(void);
/* env_build - *s points into c and owns the rest; env_clear when started */
void env_build(struct env_start *s, const struct runspec_command *c,
    enum runspec_user user);
void env_clear(struct env_start *s);

#endif

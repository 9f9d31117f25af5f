/*
 * base_env.h - what every command has in its environment, whoever asked for it
 *
 * The image's variables, which the engine gives PID 1, and below them ours:
 * LANG, and PYTHONUNBUFFERED, without which what a Python program printed is
 * lost when it is killed.  Ours give way to the image's, an empty value
 * included; USER, LOGNAME and PWD are the command's own (env.h) and never the
 * image's.
 * Engines add HOSTNAME, and Podman what marks a container.  Nothing of the
 * server's is in PID 1's environment: what it tells the agent stands in the
 * command line (terms.h).
 *
 * HOME is the image's when it is not what engines set by themselves: the home
 * of user 0 in the image's passwd, or "/" where that names none.
 *
 * An image may be anybody's: of its variables but PATH and HOME,
 * BASE_ENV_IMAGE_MAX with BASE_ENV_BYTES_MAX in all are kept, the first ones;
 * that others are not is said in the server's log, without their values.  What
 * has no name or no "=" is no variable.  Of two of one name the last one
 * counts.
 */
#ifndef AGENT_BASE_ENV_H
#define AGENT_BASE_ENV_H

#include "common/base.h"

#define BASE_ENV_PATH                                                          \
	"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define BASE_ENV_IMAGE_MAX 256
#define BASE_ENV_BYTES_MAX 65536u
#define BASE_ENV_MAX (BASE_ENV_IMAGE_MAX + 2) /* with ours */

/* base_env_init - env as of the agent's start, which must stay as it is;
 * passwd: where the image has its users.  Once at start */
void base_env_init(char *const *env, const char *passwd);
/* base_env_path - the image's PATH, or BASE_ENV_PATH */
const char *base_env_path(void);
/* base_env_home - NULL: the image says none */
const char *base_env_home(void);
/* base_env_rest - the others, K=V each, BASE_ENV_MAX at most, then NULL */
char *const *base_env_rest(void);

#endif

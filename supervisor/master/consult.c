#include "supervisor/master/consult.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "common/child.h"
#include "common/exit.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/place.h"
#include "common/privdrop.h"
#include "common/xmalloc.h"
#include "supervisor/master/tlsfiles.h"

#define ENV_MAX 256
#define WORDS_MAX 4

struct consult_env {
	char *vars[ENV_MAX + 1];
	size_t n;
};

static void
add_var(const char *key, const char *value, void *arg)
{
	struct consult_env *env = arg;

	if (env->n < ENV_MAX)
		env->vars[env->n++] = xasprintf("%s=%s", key, value);
}

static int
drop_privileges(const struct users *users, enum msg_role role, struct err *e)
{
	struct privdrop_user user;

	if (users_find(users, role, &user) && privdrop_apply(&user, e) != 0)
		return e->code;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		return err_errno(e, "prctl");
	return 0;
}

/* Does not return when it works.  keep: descriptors below that stay open. */
static void
become(const char *program, enum msg_role role, const char *const *words,
    int keep, const struct conf *conf, const struct users *users, struct err *e)
{
	char *argv[WORDS_MAX + 1] = {NULL};
	struct consult_env env = {.n = 0};
	int failed;

	for (size_t i = 0; words[i] != NULL; i++)
		argv[i] = xstrdup(words[i]);
	conf_each(conf, users_conf_of(role), add_var, &env);
	fd_close_from(keep);
	if (drop_privileges(users, role, e) == 0) {
		(void)execve(program, argv, env.vars);
		failed = errno;
		if (failed != EACCES || place_check_way(program, e) == 0)
			(void)err_set(e, ERR_SYS, "%s", strerror(failed));
		(void)err_wrap(e, "cannot execute %s", program);
	}
	while (env.n > 0)
		free(env.vars[--env.n]);
	for (size_t i = 0; argv[i] != NULL; i++)
		free(argv[i]);
}

void
consult_doctor(const char *program, bool as_json, const struct conf *conf,
    const struct users *users, struct err *e)
{
	const char *const words[] = {"mcp-sandboxd-worker", "doctor",
	    as_json ? "json" : "table",
	    users_are_apart(users) ? "apart" : "together", NULL};

	become(
	    program, MSG_ROLE_WORKER, words, STDERR_FILENO + 1, conf, users, e);
}

void
consult_purge(const char *program, const char *id, bool is_agreed, int lock,
    const struct conf *conf, const struct users *users, struct err *e)
{
	const char *const words[] = {"mcp-sandboxd-worker", "purge", id,
	    is_agreed ? "yes" : "ask", NULL};

	/* The copy stays open behind exec, and with it the lock. */
	if ((lock != STDERR_FILENO + 1 &&
		dup2(lock, STDERR_FILENO + 1) == -1) ||
	    fcntl(STDERR_FILENO + 1, F_SETFD, 0) == -1)
		(void)err_errno(e, "the lock");
	else
		become(program, MSG_ROLE_WORKER, words, STDERR_FILENO + 2, conf,
		    users, e);
}

/* To where the program looks for them: out of each other's way first.  The
 * first descriptor that is not to be kept. */
static int
place_files(const int *files)
{
	int copies[TLSFILES_COUNT];

	for (int i = 0; i < TLSFILES_COUNT; i++)
		copies[i] = files[i] == -1 ? -1 :
					     fcntl(files[i], F_DUPFD_CLOEXEC,
						 CHILD_CTL_FD + TLSFILES_COUNT);
	for (int i = 0; i < TLSFILES_COUNT; i++) {
		(void)close(CHILD_CTL_FD + i);
		if (copies[i] != -1)
			(void)dup2(copies[i], CHILD_CTL_FD + i);
	}
	return CHILD_CTL_FD + TLSFILES_COUNT;
}

static NORETURN void
become_check(const struct consult_check *c)
{
	int keep = place_files(c->files);
	const char *const words[] = {
	    c->program, "check", c->word[0] == '\0' ? NULL : c->word, NULL};
	struct err e;

	become(c->program, c->role, words, keep, c->conf, c->users, &e);
	log_error("%s", e.msg);
	_exit(EXIT_PRIVILEGE);
}

int
consult_check(const struct consult_check *c)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		become_check(c);
	if (pid == -1 || waitpid(pid, &status, 0) != pid) {
		log_error("%s: %s", c->program, strerror(errno));
		return EXIT_MEMORY;
	}
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	log_error("%s was ended by signal %d", c->program, WTERMSIG(status));
	return EXIT_BUG;
}

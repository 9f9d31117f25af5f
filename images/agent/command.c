#include "images/agent/command.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "common/exit.h"
#include "images/agent/caps.h"
#include "images/agent/keeper.h"

static NORETURN void
command_fail(struct keeper_job *job, enum keeper_stage stage, int error)
{
	job->stage = stage;
	job->error = error;
	_exit(EXIT_CANNOT);
}

/* Raw system calls: libc's wrappers want to tell other threads. */
static void
become_user(struct keeper_job *job)
{
	long id = job->user == RUNSPEC_USER_ROOT ? 0 : COMMAND_UID;
	int error;

	if (id != 0) {
		/* so that /dev/stdout can be opened by name */
		(void)syscall(SYS_fchown, STDOUT_FILENO, id, id);
		(void)syscall(SYS_fchown, STDERR_FILENO, id, id);
	}
	if (syscall(SYS_setgroups, 0L, NULL) == -1 ||
	    syscall(SYS_setresgid, id, id, id) == -1 ||
	    syscall(SYS_setresuid, id, id, id) == -1)
		command_fail(job, KEEPER_USER, errno);
	error = caps_apply(job->user);
	if (error != 0)
		command_fail(job, KEEPER_USER, error);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		command_fail(job, KEEPER_USER, errno);
}

/* One directory of a search path, dir of n bytes; the errno of exec. */
static int
exec_in(const struct keeper_job *job, const char *dir, size_t n)
{
	char path[PATH_MAX];
	size_t name = strlen(job->program);

	if (n + name + 2 > sizeof(path))
		return ENAMETOOLONG;
	memcpy(path, dir, n);
	if (n > 0)
		path[n++] = '/';
	memcpy(path + n, job->program, name + 1);
	(void)execve(path, job->argv, job->env);
	return errno;
}

/* As execvp: a program that may not be run hides behind later ones that may;
 * anything but "not here" ends the search. */
static int
exec_search(const struct keeper_job *job)
{
	const char *p = job->search;
	bool denied = false;
	int error;

	if (*job->program == '\0')
		return ENOENT; /* not the directories themselves */
	for (;;) {
		size_t n = strcspn(p, ":");

		error = exec_in(job, p, n);
		if (error == EACCES)
			denied = true;
		else if (error != ENOENT && error != ENOTDIR &&
		    error != ENAMETOOLONG)
			return error;
		if (p[n] == '\0')
			return denied ? EACCES : ENOENT;
		p += n + 1;
	}
}

int
command_main(void *arg)
{
	struct keeper_job *job = arg;
	sigset_t none;

	(void)setsid();
	if (dup2(job->out, STDOUT_FILENO) == -1 ||
	    dup2(job->err == -1 ? job->out : job->err, STDERR_FILENO) == -1)
		command_fail(job, KEEPER_FORK, errno);
	become_user(job);
	if (chdir(job->cwd) == -1)
		command_fail(job, KEEPER_CWD, errno);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (strchr(job->program, '/') == NULL)
		command_fail(job, KEEPER_EXEC, exec_search(job));
	(void)execve(job->program, job->argv, job->env);
	command_fail(job, KEEPER_EXEC, errno);
}

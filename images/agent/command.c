#include "images/agent/command.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/ioctl.h>

#include "common/exit.h"
#include "images/agent/caps.h"
#include "images/agent/keeper.h"
#include "images/agent/owners.h"
#include "images/agent/raw.h"

/* Of a signal set, as the kernel has it. */
#define SIGSET_BYTES 8

static NORETURN void
command_fail(struct keeper_job *job, enum keeper_stage stage, long error)
{
	job->stage = stage;
	job->error = (int)error;
	for (;;)
		(void)RAW(SYS_exit_group, EXIT_CANNOT, 0, 0, 0);
}

static void
become_user(struct keeper_job *job)
{
	long id = job->user == RUNSPEC_USER_ROOT ? 0 : OWNERS_SANDBOX_UID;
	long rc = 0;

	if (owners_are_many()) {
		rc = RAW(SYS_setresgid, id, id, id, 0);
		if (rc == 0)
			rc = RAW(SYS_setresuid, id, id, id, 0);
	}
	if (rc == 0)
		rc = caps_apply(job->user);
	if (rc != 0)
		command_fail(job, KEEPER_USER, -rc);
}

/* While it is root: a terminal becomes the controlling one whosever it is. */
static void
place_fds(struct keeper_job *job)
{
	long rc = 0;

	for (uint8_t i = 0; i < job->nfds && rc >= 0; i++)
		rc = RAW(SYS_dup3, job->fds[i].fd, job->fds[i].place, 0, 0);
	if (rc >= 0 && job->has_terminal)
		rc = RAW(SYS_ioctl, STDIN_FILENO, TIOCSCTTY, 0, 0);
	if (rc < 0)
		command_fail(job, KEEPER_FORK, -rc);
}

/* It returns when it fails: the errno. */
static long
exec_program(const struct keeper_job *job, const char *path)
{
	return -RAW(SYS_execve, path, job->argv, job->env, 0);
}

/* One directory of a search path, dir of n bytes; the errno of exec. */
static long
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
	return exec_program(job, path);
}

/* As execvp: a program that may not be run hides behind later ones that may;
 * anything but "not here" ends the search. */
static long
exec_search(const struct keeper_job *job)
{
	const char *p = job->search;
	bool denied = false;
	long error;

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

void
command_main(struct keeper_job *job)
{
	static const uint8_t none[SIGSET_BYTES];
	long rc;

	(void)RAW(SYS_setsid, 0, 0, 0, 0);
	place_fds(job);
	become_user(job);
	rc = RAW(SYS_chdir, job->cwd, 0, 0, 0);
	if (rc < 0)
		command_fail(job, KEEPER_CWD, -rc);
	(void)RAW(SYS_rt_sigprocmask, SIG_SETMASK, none, 0, SIGSET_BYTES);
	command_fail(job, KEEPER_EXEC,
	    strchr(job->program, '/') == NULL ?
		exec_search(job) :
		exec_program(job, job->program));
}

#include "images/agent/command.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

#include "common/exit.h"
#include "images/agent/caps.h"
#include "images/agent/keeper.h"
#include "images/agent/raw.h"
#include "images/agent/search.h"
#include "images/agent/steady.h"

/* Of a signal set, as the kernel has it. */
#define SIGSET_BYTES 8

/* The keeper's, for the next command's side, which reads it. */
static struct steady cwd;

static NORETURN void
command_fail(struct keeper_job *job, enum keeper_stage stage, long error)
{
	job->stage = stage;
	job->error = (int)error;
	for (;;)
		(void)RAW(SYS_exit_group, EXIT_CANNOT, 0, 0, 0);
}

static void
become_user(struct keeper_job *job, const struct command_ready *r)
{
	long id = job->user == RUNSPEC_USER_ROOT ? 0 : COMMAND_UID;
	long rc = r->group;

	if (id == 0) {
		(void)RAW(SYS_prctl, PR_SET_PDEATHSIG, 0, 0, 0);
		rc = RAW(SYS_setresgid, 0, 0, 0, 0);
	} else if (!job->owned) {
		/* so that /dev/stdout can be opened by name */
		(void)RAW(SYS_fchown, STDOUT_FILENO, id, id, 0);
		(void)RAW(SYS_fchown, STDERR_FILENO, id, id, 0);
	}
	if (rc == 0)
		rc = RAW(SYS_setresuid, id, id, id, 0);
	if (rc == 0)
		rc = caps_apply(job->user);
	if (rc != 0)
		command_fail(job, KEEPER_USER, -rc);
}

/* Where root's code may run, it may have signalled who waited for the job. */
static void
drop_signals(void)
{
	static const struct timespec now = {0, 0};
	static const uint8_t all[SIGSET_BYTES] = {
	    255, 255, 255, 255, 255, 255, 255, 255};

	while (RAW(SYS_rt_sigtimedwait, all, NULL, &now, SIGSET_BYTES) > 0)
		continue;
}

void
command_prepare(struct command_ready *r)
{
	const long id = COMMAND_UID;

	(void)RAW(SYS_setsid, 0, 0, 0, 0);
	/* The group alone: it gives nobody a right to this process. */
	r->group = RAW(SYS_setresgid, id, id, id, 0);
	/* Without its keeper it may take no job.  A change of the user or the
	 * group ends this. */
	(void)RAW(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0);
}

void
command_await(void)
{
	(void)RAW(SYS_close, STDOUT_FILENO, 0, 0, 0);
	(void)RAW(SYS_close, STDERR_FILENO, 0, 0, 0);
}

static void
put_at(struct keeper_job *job, int fd, int place)
{
	long rc = fd == place ? 0 : RAW(SYS_dup3, fd, place, 0, 0);

	if (rc < 0)
		command_fail(job, KEEPER_FORK, -rc);
}

static long
enter_cwd(const struct keeper_job *job)
{
	int fd = steady_fd(&cwd, job->cwd, job->changes, job->begin_us);

	return fd == -1 ? RAW(SYS_chdir, job->cwd, 0, 0, 0) :
			  RAW(SYS_fchdir, fd, 0, 0, 0);
}

void
command_learn(const struct keeper_job *job)
{
	steady_hold(&cwd, job->cwd, job->changes, job->begin_us);
}

void
command_main(struct keeper_job *job, const struct command_ready *r)
{
	static const struct sched_param plain;
	static const uint8_t none[SIGSET_BYTES];
	int err = job->err == -1 ? job->out : job->err;
	long rc;

	if (r->is_batch)
		(void)RAW(SYS_sched_setscheduler, 0, SCHED_OTHER, &plain, 0);
	put_at(job, job->out, STDOUT_FILENO);
	put_at(job, err, STDERR_FILENO);
	become_user(job, r);
	rc = enter_cwd(job);
	if (rc < 0)
		command_fail(job, KEEPER_CWD, -rc);
	if (job->changes == 0)
		drop_signals();
	(void)RAW(SYS_rt_sigprocmask, SIG_SETMASK, none, 0, SIGSET_BYTES);
	command_fail(job, KEEPER_EXEC,
	    strchr(job->program, '/') == NULL ?
		search_exec(job) :
		-RAW(SYS_execve, job->program, job->argv, job->env, 0));
}

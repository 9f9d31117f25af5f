#include "images/agent/keeper.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "common/fd.h"
#include "images/agent/command.h"
#include "images/agent/tree.h"

#define KEEPER_STACK_BYTES 65536
#define KEEPER_LOOK_MS 5

struct keeper {
	pid_t command;
	bool ended; /* the command itself */
	bool empty; /* no child of any kind is left */
	struct keeper_report report;
};

/* Reap what is dead; learn whether the command, and whether all, is gone.
 * How many were dead. */
static unsigned int
keeper_reap(struct keeper *k)
{
	unsigned int n = 0;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		n++;
		if (pid != k->command)
			continue;
		k->ended = true;
		k->report.status = status;
		k->report.end_us = clock_mono_us();
	}
	k->empty = pid == -1 && errno == ECHILD;
	return n;
}

/* Signals are blocked for good here: they are fetched, not handled, and only
 * SIGKILL and SIGSTOP of the sandbox's root can disturb. */
static int
wait_signal(long ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000};
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigaddset(&set, SIGTERM);
	return ms < 0 ? sigwaitinfo(&set, NULL) : sigtimedwait(&set, NULL, &ts);
}

/*
 * Over when all are reaped, or when for KEEPER_KILL_MS none has died: then the
 * kernel holds one.  A storm of forks takes longer, but makes progress.
 */
static void
keeper_kill_tree(struct keeper *k)
{
	uint64_t last = clock_mono_us();
	uint64_t end = last + KEEPER_KILL_MAX_MS * 1000;
	uint64_t now = last;

	while (!k->empty && now < end && now - last < KEEPER_KILL_MS * 1000) {
		(void)tree_kill(getpid(), NULL, NULL, end);
		if (keeper_reap(k) > 0)
			last = clock_mono_us();
		/* Each death is a SIGCHLD; when no more come, look again. */
		while (!k->empty && wait_signal(KEEPER_LOOK_MS) != -1)
			if (keeper_reap(k) > 0)
				last = clock_mono_us();
		now = clock_mono_us();
	}
	k->report.left = !k->empty;
}

static uint64_t
children_cpu_us(void)
{
	struct rusage ru;

	if (getrusage(RUSAGE_CHILDREN, &ru) == -1)
		return 0;
	return (uint64_t)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000000 +
	    (uint64_t)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec);
}

static void
keeper_watch(struct keeper *k)
{
	while (!k->ended) {
		int sig = wait_signal(-1);

		(void)keeper_reap(k);
		if (sig == SIGTERM && !k->ended) {
			k->report.killed = 1;
			break;
		}
	}
	if (!k->empty)
		keeper_kill_tree(k);
}

static NORETURN void
keeper_main(struct keeper_job *job)
{
	static uint8_t stack[KEEPER_STACK_BYTES] __attribute__((aligned(16)));
	/* Should its end not be seen, it was killed. */
	struct keeper k = {.report = {.slot = job->slot, .status = SIGKILL}};

	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	(void)prctl(PR_SET_NAME, "keeper", 0, 0, 0);
	if (dup2(job->out, STDOUT_FILENO) == -1 ||
	    dup2(job->err == -1 ? job->out : job->err, STDERR_FILENO) == -1)
		_exit(1);
	fd_close_from(KEEPER_REPORT_FD + 1);
	k.command = clone(command_main, stack + sizeof(stack),
	    CLONE_VM | CLONE_VFORK | SIGCHLD, job);
	if (k.command == -1) {
		job->stage = KEEPER_FORK;
		job->error = errno;
	}
	/* The pipes must end with the command, not with this process. */
	(void)close(STDOUT_FILENO);
	(void)close(STDERR_FILENO);
	if (k.command != -1)
		keeper_watch(&k);

	k.report.keeper = getpid();
	k.report.stage = (uint8_t)job->stage;
	k.report.error = job->error;
	k.report.cpu_us = children_cpu_us();
	if (k.report.end_us == 0)
		k.report.end_us = clock_mono_us();
	/* One write of less than PIPE_BUF: whole or not at all. */
	if (write(KEEPER_REPORT_FD, &k.report, sizeof(k.report)) == -1)
		_exit(1);
	_exit(0);
}

pid_t
keeper_start(struct keeper_job *job)
{
	pid_t pid;

	job->stage = KEEPER_STARTED;
	job->error = 0;
	pid = fork();
	if (pid == 0)
		keeper_main(job);
	return pid;
}

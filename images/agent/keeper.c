#include "images/agent/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/slice.h"
#include "images/agent/command.h"
#include "images/agent/keeper_job.h"
#include "images/agent/tree.h"

#define KEEPER_STACK_BYTES 65536
#define KEEPER_LOOK_MS 5

struct keeper {
	const struct keeper_job *job;
	pid_t command;
	bool ended; /* the command itself */
	bool empty; /* no child of any kind is left */
	pid_t self;
	uint64_t cpu_us; /* of all children before */
	struct keeper_report report;
};

/* Of the process, and of those that it reaped itself.  Not of all children of
 * ours, as getrusage has it: that would be the largest of earlier jobs. */
static void
note_memory(struct keeper *k, const struct rusage *used)
{
	uint64_t bytes = (uint64_t)used->ru_maxrss * 1024;

	if (bytes > k->report.memory_peak_bytes)
		k->report.memory_peak_bytes = bytes;
}

/* Reap what is dead; learn whether the command, and whether all, is gone.
 * How many were dead. */
static unsigned int
keeper_reap(struct keeper *k)
{
	struct rusage used;
	unsigned int n = 0;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &used)) > 0) {
		n++;
		note_memory(k, &used);
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

/* SIGTERM is a doorbell: the word itself is on the socket, with the number of
 * the job it is for, so one that comes too late hits no other job. */
static bool
is_told_to_kill(const struct keeper *k)
{
	static struct keeper_in in;
	bool told = false;
	struct err e;

	while (keeper_receive(KEEPER_SOCKET_FD, KEEPER_LOOK, &in, &e) == 1) {
		told = told || in.order == k->job->order;
		keeper_in_clear(&in);
	}
	return told;
}

/* Some are about to end, too: the rest of a pipe, what a shell substituted.
 * Whether anything lives on, and may. */
static bool
keeper_leaves(struct keeper *k)
{
	uint64_t end = k->report.end_us + KEEPER_STRAGGLE_MS * 1000;
	uint64_t now;

	if (!k->job->leave || k->report.killed)
		return false;
	while (!k->empty && (now = clock_mono_us()) < end) {
		int sig = wait_signal((long)((end - now + 999) / 1000));

		(void)keeper_reap(k);
		if (sig == SIGTERM && is_told_to_kill(k))
			return false;
	}
	return !k->empty;
}

static void
keeper_watch(struct keeper *k)
{
	while (!k->ended) {
		int sig = wait_signal(-1);

		(void)keeper_reap(k);
		if (sig == SIGTERM && !k->ended && is_told_to_kill(k)) {
			k->report.killed = 1;
			break;
		}
	}
	if (k->empty)
		return;
	k->report.behind = keeper_leaves(k);
	if (!k->report.behind)
		keeper_kill_tree(k);
}

/* Retired: until the last one is dead. */
static void
keeper_stay(struct keeper *k)
{
	while (!k->empty) {
		(void)wait_signal(-1);
		(void)keeper_reap(k);
	}
}

/* The file is root's because we are not dumpable. */
static void
raise_oom_score(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd == -1)
		return;
	if (write(fd, KEEPER_OOM_SCORE, sizeof(KEEPER_OOM_SCORE) - 1) == -1) {
		/* lower is fine too */
	}
	(void)close(fd);
}

/* Returns whether this keeper can go on. */
static bool
keeper_run(struct keeper *k, struct keeper_job *job)
{
	static uint8_t stack[KEEPER_STACK_BYTES] __attribute__((aligned(16)));
	uint64_t cpu_us;

	/* Should its end not be seen, it was killed. */
	*k = (struct keeper){.job = job,
	    .self = k->self,
	    .cpu_us = k->cpu_us,
	    .report = {
		.keeper = k->self, .slot = job->slot, .status = SIGKILL}};
	job->begin_us = clock_mono_us();
	k->command =
	    clone(command_main, stack + sizeof(stack), CLONE_VM | SIGCHLD, job);
	if (k->command == -1) {
		job->stage = KEEPER_FORK;
		job->error = errno;
	} else {
		keeper_watch(k);
	}
	k->report.stage = (uint8_t)job->stage;
	k->report.error = job->error;
	cpu_us = children_cpu_us();
	k->report.cpu_us = cpu_us - k->cpu_us;
	k->cpu_us = cpu_us;
	if (k->report.end_us == 0)
		k->report.end_us = clock_mono_us();
	/* One write of less than PIPE_BUF: whole or not at all. */
	if (write(KEEPER_REPORT_FD, &k->report, sizeof(k->report)) == -1)
		return false;
	return !k->report.left;
}

void
keeper_main(int socket, _Atomic uint32_t *begun)
{
	static struct keeper_in in;
	struct keeper k = {.empty = true, .self = getpid()};
	struct err e;

	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == -1 ||
	    /* Commands inherit these two. */
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
	    setgroups(0, NULL) == -1)
		_exit(1);
	(void)prctl(PR_SET_NAME, "keeper", 0, 0, 0);
	if (socket != KEEPER_SOCKET_FD &&
	    dup3(socket, KEEPER_SOCKET_FD, O_CLOEXEC) == -1)
		_exit(1);
	fd_close_from(KEEPER_SOCKET_FD + 1);
	raise_oom_score();
	slice_shorten(SLICE_OWN);
	while (keeper_receive(KEEPER_SOCKET_FD, KEEPER_WAIT, &in, &e) == 1) {
		bool more = true;

		if (in.type == KEEPER_MSG_JOB) {
			*begun = in.order;
			more = keeper_run(&k, &in.job);
		}
		/* The pipes last until the report, which PID 1 then needs no
		 * second look for. */
		keeper_in_clear(&in);
		if (!more || k.report.behind)
			break;
	}
	if (k.report.behind)
		keeper_stay(&k);
	_exit(0);
}

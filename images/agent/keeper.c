#include "images/agent/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
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
	struct keeper_shared *shared;
	pid_t self;
	uint32_t done;        /* the order of the job before */
	struct keeper_in *in; /* with the job, when it has begun */
	bool took;            /* it took the job itself, and has its pipes */
	pid_t command;
	bool ended; /* the command itself */
	bool empty; /* no child of any kind is left */
	struct keeper_report report;
};

/* Of the process, and of those that it reaped itself.  Not of all children of
 * ours, as getrusage has it: that would count earlier jobs, too. */
static void
note_use(struct keeper *k, const struct rusage *used)
{
	uint64_t bytes = (uint64_t)used->ru_maxrss * 1024;

	if (bytes > k->report.memory_peak_bytes)
		k->report.memory_peak_bytes = bytes;
	k->report.cpu_us +=
	    (uint64_t)(used->ru_utime.tv_sec + used->ru_stime.tv_sec) *
		1000000 +
	    (uint64_t)(used->ru_utime.tv_usec + used->ru_stime.tv_usec);
}

static void
note_end(struct keeper *k, pid_t pid, int status, const struct rusage *used)
{
	note_use(k, used);
	if (pid != k->command)
		return;
	k->ended = true;
	k->report.status = status;
	k->report.end_us = clock_mono_us();
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
		note_end(k, pid, status, &used);
	}
	k->empty = pid == -1 && errno == ECHILD;
	return n;
}

/* Signals are blocked here, but for the bell in wait_child: they are fetched,
 * not handled, and only SIGKILL and SIGSTOP of the sandbox's root can
 * disturb. */
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

/* Whether one has died, within ms.  The bell is not for this: it rings as often
 * as the kill takes looks, and would be taken for deaths. */
static bool
wait_death(long ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000};
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	return sigtimedwait(&set, NULL, &ts) != -1;
}

/*
 * Over when all are reaped, or when none has died between so many looks, which
 * take KEEPER_KILL_MS: then the kernel holds one.  Looks are counted, not time:
 * who had no processor could not die, and nor do we look then.  A storm of
 * forks takes longer, but makes progress.
 */
static void
keeper_kill_tree(struct keeper *k)
{
	uint64_t end = clock_mono_us() + KEEPER_KILL_MAX_MS * 1000;
	unsigned int quiet = 0;

	while (!k->empty && quiet < KEEPER_KILL_MS / KEEPER_LOOK_MS &&
	    clock_mono_us() < end) {
		(void)tree_kill(getpid(), NULL, NULL, end);
		quiet = keeper_reap(k) > 0 ? 0 : quiet + 1;
		/* Each death is a SIGCHLD; when no more come, look again. */
		while (!k->empty && wait_death(KEEPER_LOOK_MS))
			if (keeper_reap(k) > 0)
				quiet = 0;
	}
	k->report.left = !k->empty;
}

/* ---- the job */

static bool
has_begun(const struct keeper *k)
{
	return atomic_load(&k->shared->begun) != k->done;
}

/* SIGTERM is a doorbell: the word itself is in shared memory, the number of the
 * job it is for, so one that comes too late hits no other job. */
static bool
is_told_to_kill(const struct keeper *k)
{
	return has_begun(k) &&
	    atomic_load(&k->shared->kill) == atomic_load(&k->shared->begun);
}

static void
bell_cb(int sig)
{
	(void)sig; /* wait4 returns */
}

/* Until one ends, or the bell rings; should it ring just before, it rings
 * again soon.  Who waits for a child, and not for its signal, is woken on the
 * processor that the child gives up. */
static void
wait_child(struct keeper *k)
{
	struct rusage used;
	sigset_t bell;
	int status;
	pid_t pid;

	(void)sigemptyset(&bell);
	(void)sigaddset(&bell, SIGTERM);
	(void)sigprocmask(SIG_UNBLOCK, &bell, NULL);
	pid = wait4(-1, &status, WUNTRACED, &used);
	(void)sigprocmask(SIG_BLOCK, &bell, NULL);
	if (pid <= 0)
		return;
	if (!WIFSTOPPED(status))
		note_end(k, pid, status, &used);
	else if (!has_begun(k))
		/* Root's code has stopped it while it waited. */
		(void)kill(pid, SIGCONT);
}

/* Waits for a job and begins it, if it is not another keeper's by now.  False:
 * PID 1 needs this keeper no more. */
static bool
keeper_take(struct keeper *k, enum keeper_pipes pipes)
{
	struct keeper_job *job = &k->in->job;
	uint32_t before = k->done;
	struct err e;

	if (keeper_receive(KEEPER_SOCKET_FD, pipes, k->in, &e) != 0)
		return false;
	job->begin_us = clock_mono_us();
	return atomic_compare_exchange_strong(
	    &k->shared->begun, &before, job->order);
}

/* The command's process: it shares the keeper's memory, but the keeper sleeps
 * until it ends or is killed, and takes no memory meanwhile. */
static int
wait_cb(void *arg)
{
	struct keeper *k = arg;

	command_prepare();
	command_await();
	if (!keeper_take(k, KEEPER_PIPES_KEPT))
		_exit(0);
	command_main(&k->in->job);
}

static int
command_cb(void *arg)
{
	const struct keeper *k = arg;

	command_prepare();
	command_main(&k->in->job);
}

static pid_t
keeper_clone(struct keeper *k, int (*begin)(void *))
{
	static uint8_t stack[KEEPER_STACK_BYTES] __attribute__((aligned(16)));

	return clone(begin, stack + sizeof(stack), CLONE_VM | SIGCHLD, k);
}

/* Has the command's process be there, with a job or waiting for one; what
 * fails stands in the job.  False as of keeper_take. */
static bool
keeper_begin(struct keeper *k)
{
	struct keeper_job *job = &k->in->job;

	k->took = false;
	/* Who waits for the report goes first. */
	(void)sched_yield();
	k->command = keeper_clone(k, wait_cb);
	if (k->command != -1)
		return true;
	if (!keeper_take(k, KEEPER_PIPES_CLOSED))
		return false;
	k->took = true;
	k->command = keeper_clone(k, command_cb);
	if (k->command == -1) {
		job->stage = KEEPER_FORK;
		job->error = errno;
	}
	return true;
}

/* Some are about to end, too: the rest of a pipe, what a shell substituted.
 * Whether anything lives on, and may. */
static bool
keeper_leaves(struct keeper *k)
{
	uint64_t end = k->report.end_us + KEEPER_STRAGGLE_MS * 1000;
	uint64_t now;

	if (!k->in->job.leave || k->report.killed)
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
		wait_child(k);
		(void)keeper_reap(k);
		if (!k->ended && is_told_to_kill(k)) {
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

static void
keeper_end_job(struct keeper *k)
{
	k->done = k->in->job.order;
	if (!k->took) /* they were the command's */
		k->in->job.out = k->in->job.err = -1;
	keeper_in_clear(k->in);
}

/* Returns whether this keeper can go on. */
static bool
keeper_run(struct keeper *k)
{
	const struct keeper_job *job = &k->in->job;

	/* Should its end not be seen, it was killed. */
	k->report =
	    (struct keeper_report){.keeper = k->self, .status = SIGKILL};
	k->ended = k->empty = false;
	if (!keeper_begin(k))
		return false;
	if (k->command != -1)
		keeper_watch(k);
	else
		k->empty = true;
	if (!has_begun(k))
		return false; /* another keeper gets the job, if there is one */
	k->report.slot = job->slot;
	k->report.stage = (uint8_t)job->stage;
	k->report.error = job->error;
	if (k->report.end_us == 0)
		k->report.end_us = clock_mono_us();
	/* One write of less than PIPE_BUF: whole or not at all. */
	if (write(KEEPER_REPORT_FD, &k->report, sizeof(k->report)) == -1)
		return false;
	keeper_end_job(k);
	return !k->report.left && !k->report.behind;
}

void
keeper_main(int socket, struct keeper_shared *shared)
{
	static struct keeper_in in;
	struct keeper k = {.shared = shared, .in = &in, .self = getpid()};
	static const struct sigaction bell = {.sa_handler = bell_cb};

	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == -1 ||
	    /* Commands inherit these two. */
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
	    setgroups(0, NULL) == -1 || sigaction(SIGTERM, &bell, NULL) == -1)
		_exit(1);
	(void)prctl(PR_SET_NAME, "keeper", 0, 0, 0);
	if (socket != KEEPER_SOCKET_FD &&
	    dup3(socket, KEEPER_SOCKET_FD, O_CLOEXEC) == -1)
		_exit(1);
	fd_close_from(KEEPER_SOCKET_FD + 1);
	raise_oom_score();
	slice_shorten(SLICE_OWN);
	while (keeper_run(&k))
		continue;
	if (k.report.behind)
		keeper_stay(&k);
	_exit(0);
}

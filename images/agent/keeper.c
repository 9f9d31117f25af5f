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
	sigset_t death;         /* SIGCHLD */
	sigset_t death_or_bell; /* and SIGTERM */
	struct keeper_in *in;   /* the job */
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

/* SIGCHLD and SIGTERM are blocked for good and fetched here, so that none is
 * lost; ms < 0 waits for ever.  The signal, or -1. */
static int
wait_signal(const sigset_t *set, long ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

	return ms < 0 ? sigwaitinfo(set, NULL) : sigtimedwait(set, NULL, &ts);
}

/*
 * Ends when all are reaped, or when none has died in KEEPER_KILL_MS of looks:
 * then the kernel holds one.  Looks are counted and not the time: on a busy
 * machine neither the tree nor the keeper may have had a processor.  A storm of
 * forks takes longer, but makes progress.  SIGTERM is not fetched meanwhile,
 * so that a flood of it does not keep the keeper from looking again.
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
		while (
		    !k->empty && wait_signal(&k->death, KEEPER_LOOK_MS) != -1)
			if (keeper_reap(k) > 0)
				quiet = 0;
	}
	k->report.left = !k->empty;
}

/* ---- the job */

/* SIGTERM is a doorbell: the order to kill is in shared memory and names the
 * job, so one that comes too late hits no other job. */
static bool
is_told_to_kill(const struct keeper *k)
{
	return atomic_load(&k->shared->kill) == k->in->job.order;
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
		int sig = wait_signal(
		    &k->death_or_bell, (long)((end - now + 999) / 1000));

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
		int sig = wait_signal(&k->death_or_bell, -1);

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
		(void)wait_signal(&k->death, -1);
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

static int
command_cb(void *job)
{
	command_main(job);
}

/* Returns whether this keeper can take another job. */
static bool
keeper_run(struct keeper *k)
{
	static uint8_t stack[KEEPER_STACK_BYTES] __attribute__((aligned(16)));
	struct keeper_job *job = &k->in->job;

	/* Should its end not be seen, it was killed. */
	k->report = (struct keeper_report){
	    .keeper = k->self, .slot = job->slot, .status = SIGKILL};
	k->ended = k->empty = false;
	atomic_store(&k->shared->begun, job->order);
	k->command =
	    clone(command_cb, stack + sizeof(stack), CLONE_VM | SIGCHLD, job);
	if (k->command == -1) {
		job->stage = KEEPER_FORK;
		job->error = errno;
		k->empty = true;
	} else {
		keeper_watch(k);
	}
	k->report.stage = (uint8_t)job->stage;
	k->report.error = job->error;
	if (k->report.end_us == 0)
		k->report.end_us = clock_mono_us();
	/* One write of less than PIPE_BUF: whole or not at all. */
	if (write(KEEPER_REPORT_FD, &k->report, sizeof(k->report)) == -1)
		return false;
	/* Only now: the end of a pipe would wake PID 1 before the report. */
	keeper_in_clear(k->in);
	return !k->report.left && !k->report.behind;
}

static void
keeper_init(struct keeper *k, int socket)
{
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
	(void)sigemptyset(&k->death);
	(void)sigaddset(&k->death, SIGCHLD);
	k->death_or_bell = k->death;
	(void)sigaddset(&k->death_or_bell, SIGTERM);
	raise_oom_score();
	slice_shorten(SLICE_OWN);
}

void
keeper_main(int socket, struct keeper_shared *shared)
{
	static struct keeper_in in;
	struct keeper k = {.shared = shared, .in = &in, .self = getpid()};
	struct err e;

	keeper_init(&k, socket);
	while (keeper_receive(KEEPER_SOCKET_FD, &in, &e) == 0 && keeper_run(&k))
		continue;
	if (k.report.behind)
		keeper_stay(&k);
	_exit(0);
}

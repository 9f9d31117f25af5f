/*
 * keeper.c - a keeper's job on its way, and a keeper's life
 *
 *	keeper_main: wait for a job -> clone the command -> watch
 *		-> all dead, or killed: report, and wait for the next job
 *		-> something would not die: report "left", and end
 *		-> something lives on, and may: report "behind", stay with it
 *
 * SIGCHLD and SIGTERM are blocked for good and fetched, so that none is lost:
 * only SIGKILL and SIGSTOP of the sandbox's root can disturb a keeper.
 */
#include "images/agent/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/msg/wire.h"
#include "common/slice.h"
#include "images/agent/command.h"
#include "images/agent/owners.h"
#include "images/agent/tree.h"

#define KEEPER_STACK_BYTES 65536
#define KEEPER_LOOK_MS 5
#define FDS_MAX (KEEPER_PLACES + 1) /* and the file of a large job */

enum keeper_msg {
	MSG_JOB = 1,
	MSG_FILE
};

union control {
	char space[CMSG_SPACE(sizeof(int) * FDS_MAX)];
	struct cmsghdr align;
};

/* ---- a job, sent by PID 1 */

static int
packet_send(int socket, const struct buf *b, const int *fds, size_t nfds)
{
	struct iovec iov = {buf_data(b), buf_len(b)};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	union control control;

	if (nfds > 0) {
		struct cmsghdr *cm = &control.align; /* the first */

		memset(&control, 0, sizeof(control));
		mh.msg_control = control.space;
		mh.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(cm), fds, sizeof(int) * nfds);
	}
	return sendmsg(socket, &mh, MSG_DONTWAIT | MSG_NOSIGNAL) == -1 ? errno :
									 0;
}

/* With its NUL, so that the other side need not copy it. */
static void
put_string(struct buf *b, const char *s)
{
	wire_put_bytes(b, s, strlen(s) + 1);
}

static void
put_strings(struct buf *b, char *const *list)
{
	uint32_t n = 0;

	while (list[n] != NULL)
		n++;
	wire_put_u32(b, n);
	for (uint32_t i = 0; i < n; i++)
		put_string(b, list[i]);
}

static void
job_encode(struct buf *b, const struct keeper_job *job)
{
	wire_put_u8(b, MSG_JOB);
	wire_put_u32(b, job->order);
	wire_put_u32(b, job->slot);
	wire_put_u8(b, (uint8_t)job->user);
	wire_put_u8(b, job->leave);
	wire_put_u8(b, job->has_terminal);
	wire_put_u8(b, job->nfds);
	for (uint8_t i = 0; i < job->nfds; i++)
		wire_put_u8(b, job->fds[i].place);
	put_string(b, job->program);
	put_string(b, job->search);
	put_string(b, job->cwd);
	put_strings(b, job->argv);
	put_strings(b, job->env);
}

/* The job as a file, and a packet that says so. */
static int
file_send(int socket, const struct buf *job, int *fds, size_t nfds)
{
	AUTO(buf_clear) struct buf b;
	AUTO(auto_close) int file = -1;
	struct err e;

	buf_init(&b, KEEPER_PACKET_MAX);
	file = fd_memfd_sealed("job", buf_data(job), buf_len(job), &e);
	if (file < 0)
		return ENOMEM;
	fds[nfds] = file;
	wire_put_u8(&b, MSG_FILE);
	return packet_send(socket, &b, fds, nfds + 1);
}

int
keeper_send(int socket, const struct keeper_job *job)
{
	/* keeps its memory from one job to the next, unless it was large */
	static struct buf b;
	int fds[FDS_MAX], error;

	for (uint8_t i = 0; i < job->nfds; i++)
		fds[i] = job->fds[i].fd;
	b.max = KEEPER_JOB_MAX;
	job_encode(&b, job);
	error = buf_len(&b) <= KEEPER_PACKET_MAX ?
	    packet_send(socket, &b, fds, job->nfds) :
	    file_send(socket, &b, fds, job->nfds);
	buf_consume(&b, buf_len(&b));
	if (b.cap > KEEPER_PACKET_MAX)
		buf_shrink(&b);
	return error;
}

/* ---- and received by a keeper */

static const char *
get_string(struct wire_in *in)
{
	size_t n;
	const uint8_t *p = wire_get_bytes(in, KEEPER_JOB_MAX, &n);

	if (p == NULL || n == 0 || p[n - 1] != '\0') {
		in->bad = "string";
		return "";
	}
	return (const char *)p;
}

static void
get_strings(struct wire_in *in, char **list, uint32_t max)
{
	uint32_t n = wire_get_u32(in);

	if (n >= max) {
		in->bad = "list";
		n = 0;
	}
	/* exec does not write to them, whatever its prototype says. */
	for (uint32_t i = 0; i < n; i++)
		list[i] = (char *)(uintptr_t)get_string(in);
	list[n] = NULL;
}

static int
job_decode(struct keeper_in *in, struct wire_in *w, struct err *e)
{
	struct keeper_job *job = &in->job;

	job->order = wire_get_u32(w);
	job->slot = wire_get_u32(w);
	job->user = wire_get_u8(w) == RUNSPEC_USER_ROOT ? RUNSPEC_USER_ROOT :
							  RUNSPEC_USER_SANDBOX;
	job->leave = wire_get_u8(w);
	job->has_terminal = wire_get_u8(w);
	if (wire_get_u8(w) != job->nfds)
		w->bad = "descriptors";
	for (uint8_t i = 0; i < job->nfds; i++) {
		job->fds[i].place = wire_get_u8(w);
		if (job->fds[i].place >= KEEPER_PLACES)
			w->bad = "place";
	}
	job->program = get_string(w);
	job->search = get_string(w);
	job->cwd = get_string(w);
	get_strings(w, in->argv, ARRAY_LEN(in->argv));
	get_strings(w, in->env, ARRAY_LEN(in->env));
	job->argv = in->argv;
	job->env = in->env;
	return wire_get_end(w, e);
}

/* The descriptors that came along; how many. */
static size_t
take_fds(struct msghdr *mh, int fds[FDS_MAX])
{
	struct cmsghdr *cm = CMSG_FIRSTHDR(mh);
	size_t n;

	if (cm == NULL || cm->cmsg_type != SCM_RIGHTS)
		return 0;
	n = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	if (n > FDS_MAX)
		n = FDS_MAX;
	memcpy(fds, CMSG_DATA(cm), n * sizeof(int));
	return n;
}

/* The packet, or for a large job the file, behind its type. */
static int
open_message(struct keeper_in *in, size_t n, const int *file, struct wire_in *w,
    struct err *e)
{
	size_t size;
	uint8_t type;

	wire_in_init(w, in->packet, n);
	type = wire_get_u8(w);
	if (type == MSG_FILE) {
		if (fd_read_sealed(
			*file, KEEPER_JOB_MAX, &in->file, &size, e) != 0)
			return e->code;
		wire_in_init(w, in->file, size);
		type = wire_get_u8(w);
	}
	if (type != MSG_JOB)
		return err_set(e, ERR_PROTO, "message %u", type);
	return 0;
}

int
keeper_receive(int socket, struct keeper_in *in, struct err *e)
{
	struct iovec iov = {in->packet, sizeof(in->packet)};
	union control control;
	struct msghdr mh = {.msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = control.space,
	    .msg_controllen = sizeof(control.space)};
	int fds[FDS_MAX];
	AUTO(auto_close) int file = -1;
	struct wire_in w;
	size_t nfds;
	ssize_t n;

	n = recvmsg(socket, &mh, MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return err_set(
		    e, ERR_SYS, "keeper: %s", n == 0 ? "end" : strerror(errno));
	nfds = take_fds(&mh, fds);
	if (in->packet[0] == MSG_FILE && nfds > 0)
		file = fds[--nfds];
	memset(&in->job, 0, sizeof(in->job));
	in->file = NULL;
	for (; in->job.nfds < nfds && in->job.nfds < KEEPER_PLACES;
	     in->job.nfds++)
		in->job.fds[in->job.nfds].fd = fds[in->job.nfds];
	if (open_message(in, (size_t)n, &file, &w, e) != 0)
		return e->code;
	return job_decode(in, &w, e);
}

void
keeper_in_clear(struct keeper_in *in)
{
	while (in->job.nfds > 0)
		(void)close(in->job.fds[--in->job.nfds].fd);
	free(in->file);
	in->file = NULL;
}

/* ---- what becomes of the command */

struct keeper {
	struct keeper_shared *shared;
	pid_t self;
	sigset_t death;         /* SIGCHLD */
	sigset_t death_or_bell; /* and SIGTERM */
	struct keeper_in *in;   /* the job */
	bool is_subreaper;      /* else orphans are PID 1's: gVisor */
	pid_t command;
	bool ended; /* the command itself */
	bool empty; /* no child of any kind is left */
	struct keeper_report report;
};

/* Adds what a dead child used, with the children that it reaped.  getrusage of
 * all children would count earlier jobs, too. */
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

/* Reaps all that is dead and notes whether the command, and whether all, is
 * gone.  Returns how many were dead. */
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

/* ms < 0: for ever.  The signal, or -1. */
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
	/* What lost its parent is out of reach: PID 1 looks for it. */
	k->report.left = !k->empty || !k->is_subreaper;
}

/* SIGTERM is a doorbell: the order to kill is in shared memory and names the
 * job, so one that comes too late hits no other job. */
static bool
is_told_to_kill(const struct keeper *k)
{
	return atomic_load(&k->shared->kill) == k->in->job.order;
}

/* Nothing that the command started may live on. */
static bool
ends_all(const struct keeper *k)
{
	return !k->in->job.leave || k->report.killed;
}

/* Gives stragglers (the rest of a pipe, a process substitution) a moment to
 * end.  Returns whether something lives on, and may. */
static bool
keeper_leaves(struct keeper *k)
{
	uint64_t end = k->report.end_us + KEEPER_STRAGGLE_MS * 1000;
	uint64_t now;

	if (ends_all(k))
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
	if (k->empty && (k->is_subreaper || !ends_all(k)))
		return;
	k->report.behind = keeper_leaves(k);
	if (!k->report.behind)
		keeper_kill_tree(k);
}

/* ---- life */

/* Retired: reaps until the last process is dead. */
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

	/* The status stands if the end is never seen. */
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
	/* After the report: the end of a pipe would wake PID 1 earlier. */
	keeper_in_clear(k->in);
	return !k->report.left && !k->report.behind;
}

static void
keeper_init(struct keeper *k, int socket)
{
	k->is_subreaper = prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
	/* Commands inherit these two. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
	    (owners_are_many() && setgroups(0, NULL) == -1))
		_exit(1);
	(void)prctl(PR_SET_NAME, "keeper", 0, 0, 0);
	if (socket != KEEPER_SOCKET_FD &&
	    dup3(socket, KEEPER_SOCKET_FD, O_CLOEXEC) == -1)
		_exit(1);
	fd_close_from(KEEPER_SOCKET_FD + 1);
	/* Occupies the numbers of places (KEEPER_PLACES). */
	for (int fd = KEEPER_SOCKET_FD + 1; fd < KEEPER_PLACES; fd++)
		if (dup3(STDIN_FILENO, fd, O_CLOEXEC) == -1)
			_exit(1);
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

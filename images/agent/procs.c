/*
 * procs.c - process trees: their table, and each from its keeper's job to the
 * end of its output
 *
 *	RUNNING		a keeper is at work on it
 *	ORPHANED	the keeper was killed, or gave up; PID 1 kills what it
 *			watched (reap.h)
 *	DRAINING	no process is left, or the rest lives on (remnants.h);
 *			the pipes hold output that its owner has no room for yet
 *	ENDED		the owner is told, and it is freed (procs_settle)
 *
 *	proc_begin -> RUNNING --report--> DRAINING -> ENDED
 *	                 |  \                ^
 *	                 |   keeper lost,    |
 *	                 |   or gave up -> ORPHANED
 *	                 keeper died before it began: RUNNING, with another one
 *
 * A kill asks the keeper; when that does not report in time it is killed
 * itself, and PID 1 does its work.  The reason why PID 1 asked stands in
 * "asked", and whether the process had ended by itself before is decided from
 * the keeper's report (proc_end.h).
 */
#include "images/agent/procs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>

#include "common/clock.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "images/agent/env.h"
#include "images/agent/oom.h"
#include "images/agent/tree.h"

#define PROCS_REPORTS_PER_READ 16
/* How long a keeper may take to kill its tree before it is given up. */
#define KEEPER_GRACE_MS (KEEPER_KILL_MAX_MS + 500)
/* When so many die in a row before they begin, somebody kills them, or they
 * cannot read their job. */
#define KEEPERS_GONE_MAX 8

enum proc_state {
	PROC_RUNNING,
	PROC_ORPHANED,
	PROC_DRAINING,
	PROC_ENDED
};

struct proc {
	enum proc_state state;
	struct proc_spec spec;
	const struct proc_ops *ops;
	void *arg;
	struct procs *all;
	uint32_t slot;        /* in the table */
	struct output out[2]; /* stdout, stderr */

	pid_t keeper; /* 0: none */
	struct keeper_report report;
	uint64_t started_us;
	uint64_t deadline_ms;
	uint64_t give_up_ms; /* of the keeper, 0: not asked to kill */
	uint64_t oom_before;
	uint32_t gone;       /* keepers that died before they began with it */
	enum proc_why asked; /* why it is killed, PROC_EXITED: it is not */
	struct remnant_group *group; /* what lives on; NULL: nothing */
	struct runlog_left left;     /* as it is told */
	struct proc_end end;
};

/* ---- one process */

static struct proc *
proc_new(struct procs *all, const struct proc_spec *spec, uint32_t slot,
    const struct proc_ops *ops, void *arg)
{
	struct proc *p = xcalloc(1, sizeof(*p));

	p->spec = *spec;
	p->slot = slot;
	p->all = all;
	p->ops = ops;
	p->arg = arg;
	for (unsigned int i = 0; i < ARRAY_LEN(p->out); i++)
		output_init(&p->out[i], all->loop, i, &ops->output, arg);
	p->oom_before = oom_count();
	p->started_us = clock_mono_us();
	/* Rounded up: never before its time. */
	p->deadline_ms = (p->started_us + 999) / 1000 + spec->timeout_ms;
	return p;
}

static void
close_outputs(struct proc *p)
{
	for (size_t i = 0; i < ARRAY_LEN(p->out); i++)
		output_close(&p->out[i]);
}

static void
proc_free(struct proc *p)
{
	close_outputs(p);
	free(p);
}

/* ---- start */

static int
open_outputs(struct proc *p, int *out, int *err)
{
	int error = output_open(&p->out[0], p->spec.user, out);

	if (error == 0 && (p->spec.flags & RUNSPEC_MERGE_STDERR) == 0)
		error = output_open(&p->out[1], p->spec.user, err);
	return error;
}

/* To a keeper, with its pipes; 0 or an errno. */
static int
proc_give(struct proc *p)
{
	/* The keeper has copies of these until it reports. */
	AUTO(auto_close) int out = -1;
	AUTO(auto_close) int err = -1;
	struct keeper_job job = {.slot = p->slot,
	    .cwd = p->spec.cwd,
	    .user = p->spec.user,
	    .leave = p->spec.origin != NULL};
	struct env_start start;
	int error;

	error = open_outputs(p, &out, &err);
	if (error != 0)
		return error;
	/* Its standard input is ours, /dev/null. */
	job.fds[0] = (struct keeper_fd){STDIN_FILENO, STDIN_FILENO};
	job.fds[1] = (struct keeper_fd){out, STDOUT_FILENO};
	job.fds[2] = (struct keeper_fd){err != -1 ? err : out, STDERR_FILENO};
	job.nfds = 3;
	env_build(&start, &p->spec);
	job.argv = start.argv;
	job.env = start.env;
	job.program = start.program;
	job.search = start.search;
	p->keeper = keepers_start(&p->all->keepers, &job);
	error = p->keeper == -1 ? errno : 0;
	env_clear(&start);
	return error;
}

static int
proc_begin(struct proc *p)
{
	int error = proc_give(p);

	if (error != 0) {
		p->keeper = 0;
		close_outputs(p);
		return error;
	}
	for (size_t i = 0; i < ARRAY_LEN(p->out); i++)
		output_watch(&p->out[i]);
	return 0;
}

/* ---- end */

/* Takes what the pipes hold; the process has ended when they are empty. */
static void
proc_drain(struct proc *p)
{
	bool empty = true;

	for (size_t i = 0; i < ARRAY_LEN(p->out); i++)
		empty = output_drain(&p->out[i]) && empty;
	if (!empty)
		return;
	p->state = PROC_ENDED;
	proc_end_fill(&p->end, &p->report, p->asked, p->oom_before);
	p->end.wall_us = p->report.end_us > p->started_us ?
	    p->report.end_us - p->started_us :
	    0;
	p->end.cpu_us = p->report.cpu_us;
	p->end.memory_peak_bytes = p->report.memory_peak_bytes;
	/* A group that was killed during the drain is not told. */
	if (p->group == NULL || remnants_take_output(p->group, p->out))
		p->end.left = p->left.count > 0 ? &p->left : NULL;
}

static void
proc_drain_begin(struct proc *p)
{
	p->state = PROC_DRAINING;
	p->keeper = 0;
	for (size_t i = 0; i < ARRAY_LEN(p->out); i++)
		output_drain_begin(
		    &p->out[i], p->group != NULL ? OUTPUT_KEEP : OUTPUT_CLOSE);
	proc_drain(p);
}

/* The keeper has retired.  What is below it becomes a group, or is killed when
 * the command was killed or out of memory. */
static void
proc_leave(struct proc *p)
{
	struct proc_end end = {0};

	proc_end_fill(&end, &p->report, p->asked, p->oom_before);
	if (p->asked != PROC_EXITED || end.why == PROC_OUT_OF_MEMORY)
		remnants_kill_tree(p->keeper);
	else
		p->group = remnants_add(
		    &p->all->remnants, p->spec.origin, p->keeper, &p->left);
}

static void
proc_on_report(struct proc *p, const struct keeper_report *report)
{
	if (p->state != PROC_RUNNING)
		return;
	p->report = *report;
	if (report->behind)
		proc_leave(p);
	if (report->left) {
		p->state = PROC_ORPHANED;
		p->keeper = 0;
		return;
	}
	proc_drain_begin(p);
}

static void
proc_on_keeper_lost(struct proc *p)
{
	if (p->state != PROC_RUNNING)
		return;
	p->state = PROC_ORPHANED;
	p->keeper = 0;
	memset(&p->report, 0, sizeof(p->report));
	p->end.keeper_lost = true;
	p->report.status = SIGKILL; /* as wait(2) would say it */
	p->report.killed = p->asked != PROC_EXITED;
	p->report.end_us = clock_mono_us();
}

static void
proc_on_orphans_gone(struct proc *p)
{
	if (p->state == PROC_ORPHANED)
		proc_drain_begin(p);
}

static void
proc_on_keeper_gone(struct proc *p)
{
	int error;

	if (p->state != PROC_RUNNING)
		return;
	/* A process that is to be killed need not begin any more. */
	if (p->asked != PROC_EXITED || ++p->gone == KEEPERS_GONE_MAX) {
		proc_on_keeper_lost(p);
		proc_on_orphans_gone(p);
		return;
	}
	close_outputs(p);
	error = proc_begin(p);
	if (error == 0)
		return;
	p->state = PROC_ENDED;
	proc_end_unstarted(&p->end, KEEPER_FORK, error);
	p->end.wall_us = clock_mono_us() - p->started_us;
}

/* ---- while it runs */

static void
proc_resume(struct proc *p)
{
	if (p->state == PROC_DRAINING)
		proc_drain(p);
	else if (p->state == PROC_RUNNING)
		for (size_t i = 0; i < ARRAY_LEN(p->out); i++)
			output_resume(&p->out[i]);
}

void
procs_kill(struct proc *p, enum proc_why why)
{
	if (p->state != PROC_RUNNING || p->keeper == 0 || p->give_up_ms != 0)
		return;
	p->asked = why;
	p->give_up_ms = clock_mono_ms() + KEEPER_GRACE_MS;
	keepers_kill(&p->all->keepers, p->keeper);
}

static void
proc_tick(struct proc *p, uint64_t now_ms)
{
	if (p->state != PROC_RUNNING || p->keeper == 0)
		return;
	if (p->give_up_ms != 0 && now_ms >= p->give_up_ms) {
		/* Starved, or stopped again: PID 1 does its work. */
		(void)kill(p->keeper, SIGKILL);
		p->end.keeper_stuck = true;
		p->give_up_ms = now_ms + KEEPER_GRACE_MS;
	} else if (p->give_up_ms == 0 && now_ms >= p->deadline_ms) {
		procs_kill(p, PROC_TIMED_OUT);
	}
}

static uint64_t
proc_next_ms(const struct proc *p)
{
	if (p->state != PROC_RUNNING)
		return UINT64_MAX;
	return p->give_up_ms != 0 ? p->give_up_ms : p->deadline_ms;
}

/* ---- all of them */

static void
procs_report_cb(uint32_t events, void *arg)
{
	(void)events;
	procs_read_reports(arg);
}

int
procs_init(struct procs *ps, struct loop *loop, struct err *e)
{
	int fds[2];

	memset(ps, 0, sizeof(*ps));
	ps->loop = loop;
	if (pipe2(fds, O_CLOEXEC) == -1)
		return err_set(e, ERR_SYS, "pipe: %s", strerror(errno));
	ps->report_fd = fds[0];
	if (dup3(fds[1], KEEPER_REPORT_FD, O_CLOEXEC) == -1)
		return err_set(e, ERR_SYS, "dup: %s", strerror(errno));
	(void)close(fds[1]);
	if (fcntl(ps->report_fd, F_SETFL, O_NONBLOCK) == -1)
		return err_set(e, ERR_SYS, "fcntl: %s", strerror(errno));
	ps->report_token =
	    loop_add(loop, ps->report_fd, EPOLLIN, procs_report_cb, ps);
	if (ps->report_token == 0)
		return err_set(e, ERR_SYS, "epoll_ctl: %s", strerror(errno));
	keepers_init(&ps->keepers);
	remnants_init(&ps->remnants, loop);
	return 0;
}

static int
free_slot(const struct procs *ps)
{
	for (int i = 0; i < PROCS_MAX; i++)
		if (ps->live[i] == NULL)
			return i;
	return -1;
}

struct proc *
procs_start(struct procs *ps, const struct proc_spec *spec,
    const struct proc_ops *ops, void *arg)
{
	int error, slot = free_slot(ps);
	struct proc *p;

	if (slot == -1 || ps->closing) {
		errno = EAGAIN;
		return NULL;
	}
	p = proc_new(ps, spec, (uint32_t)slot, ops, arg);
	error = proc_begin(p);
	if (error != 0) {
		proc_free(p);
		errno = error;
		return NULL;
	}
	ps->live[slot] = p;
	ps->nlive++;
	return p;
}

/* Tells the owner of an ended process, who may start the next one in it, and
 * frees the process. */
static void
procs_settle(struct procs *ps, struct proc *p)
{
	if (p->state != PROC_ENDED)
		return;
	ps->live[p->slot] = NULL;
	ps->nlive--;
	p->ops->on_end(&p->end, p->arg);
	proc_free(p);
}

void
procs_resume(struct procs *ps, struct proc *p)
{
	proc_resume(p);
	procs_settle(ps, p);
}

static void
take_report(struct procs *ps, const struct keeper_report *report)
{
	struct proc *p;

	if (report->slot >= PROCS_MAX)
		return;
	/* Before the owner hears: its next process can use this keeper. */
	keepers_on_report(&ps->keepers, report);
	ps->left_orphans = ps->left_orphans || report->left != 0;
	p = ps->live[report->slot];
	if (p == NULL || p->keeper != report->keeper)
		return;
	proc_on_report(p, report);
	procs_settle(ps, p);
}

void
procs_read_reports(struct procs *ps)
{
	struct keeper_report reports[PROCS_REPORTS_PER_READ];
	ssize_t n;

	/* Each is one atomic write of its keeper, which alone can reach the
	 * other end, so what is read is always whole ones. */
	do {
		n = read(ps->report_fd, reports, sizeof(reports));
		for (ssize_t i = 0; i < n / (ssize_t)sizeof(reports[0]); i++)
			take_report(ps, &reports[i]);
	} while (n == (ssize_t)sizeof(reports));
}

static struct proc *
find_by_keeper(const struct procs *ps, pid_t pid)
{
	for (size_t i = 0; i < PROCS_MAX; i++)
		if (ps->live[i] != NULL && ps->live[i]->keeper == pid)
			return ps->live[i];
	return NULL;
}

bool
procs_on_reaped(struct procs *ps, pid_t pid)
{
	enum keepers_loss loss;
	struct proc *p;

	/* A keeper may have reported and ended since the reports were read:
	 * its word is in the pipe by now. */
	if (find_by_keeper(ps, pid) != NULL)
		procs_read_reports(ps);
	loss = keepers_on_reaped(&ps->keepers, pid);
	remnants_on_reaped(&ps->remnants, pid);
	p = find_by_keeper(ps, pid);
	if (p != NULL) {
		if (loss == KEEPERS_UNBEGUN)
			proc_on_keeper_gone(p);
		else
			proc_on_keeper_lost(p);
		procs_settle(ps, p);
	}
	return loss == KEEPERS_LOST;
}

void
procs_on_orphans_gone(struct procs *ps)
{
	for (size_t i = 0; i < PROCS_MAX; i++) {
		struct proc *p = ps->live[i];

		if (p == NULL || p->state != PROC_ORPHANED)
			continue;
		proc_on_orphans_gone(p);
		procs_settle(ps, p);
	}
}

void
procs_tick(struct procs *ps, uint64_t now_ms)
{
	size_t seen = 0;

	for (size_t i = 0; i < PROCS_MAX && seen < ps->nlive; i++) {
		struct proc *p = ps->live[i];

		if (p == NULL)
			continue;
		seen++;
		if (proc_next_ms(p) <= now_ms)
			proc_tick(p, now_ms);
	}
}

uint64_t
procs_next_ms(const struct procs *ps)
{
	uint64_t next = UINT64_MAX;
	size_t seen = 0;

	for (size_t i = 0; i < PROCS_MAX && seen < ps->nlive; i++) {
		const struct proc *p = ps->live[i];

		if (p == NULL)
			continue;
		seen++;
		if (proc_next_ms(p) < next)
			next = proc_next_ms(p);
	}
	return next;
}

void
procs_kill_all(struct procs *ps)
{
	ps->closing = true;
	for (size_t i = 0; i < PROCS_MAX; i++)
		if (ps->live[i] != NULL)
			procs_kill(ps->live[i], PROC_KILLED);
}

/* ---- no process is free */

#define WORDS "cannot start a process: "

struct most {
	struct uuid run;
	size_t count; /* processes; 0: nobody has any */
};

/* Below the keeper of a command that goes on. */
static struct most
most_at_work(const struct procs *ps)
{
	struct most most = {.count = 0};
	pid_t first;

	for (size_t i = 0; i < PROCS_MAX; i++) {
		const struct proc *p = ps->live[i];
		size_t n;

		if (p == NULL || p->keeper <= 0 || p->spec.origin == NULL)
			continue;
		n = tree_list(p->keeper, &first, 1);
		if (n > most.count)
			most = (struct most){p->spec.origin->run, n};
	}
	return most;
}

/* The text has to fit a record's (struct runlog_end): with a run's id, little
 * room is left for words. */
void
procs_crowd_text(
    struct procs *ps, const struct proc_end *end, char *text, size_t size)
{
	AUTO(auto_free) char *whole = NULL;
	char run[UUID_TEXT_LEN + 1];
	struct most most;

	if (end->why != PROC_UNSTARTED || end->stage != KEEPER_FORK ||
	    end->error != EAGAIN)
		return;
	/* What was left behind comes first: nobody waits for it. */
	most.count = remnants_most(&ps->remnants, &most.run);
	if (most.count > 0) {
		uuid_format(&most.run, run);
		whole = xasprintf(WORDS "%zu left running by run %s; "
					"control_run kill or restart_sandbox",
		    most.count, run);
	} else {
		most = most_at_work(ps);
		if (most.count == 0)
			return;
		uuid_format(&most.run, run);
		whole = xasprintf(WORDS "%zu belong to run %s; "
					"control_run cancel or restart_sandbox",
		    most.count, run);
	}
	utf8_copy(text, size, whole);
}

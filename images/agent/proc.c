/*
 * proc.c - a process tree from its keeper's job to the end of its output
 *
 *	proc_begin -> RUNNING --report--> DRAINING -> ENDED
 *	                 |  \                ^
 *	                 |   keeper lost,    |
 *	                 |   or gave up -> ORPHANED
 *	                 keeper died before it began: RUNNING, with another one
 *
 * A kill asks the keeper; when that does not report in time it is killed
 * itself, and PID 1 (reap.h) does its work.  The reason why PID 1 asked stands
 * in "asked", and whether the process had ended by itself before is decided
 * from the keeper's report (proc_end.h).
 */
#include "images/agent/proc.h"

#include <errno.h>
#include <signal.h>

#include "common/clock.h"
#include "common/xmalloc.h"
#include "images/agent/env.h"
#include "images/agent/oom.h"

struct proc *
proc_new(const struct proc_spec *spec, uint32_t slot,
    const struct proc_host *host, const struct proc_ops *ops, void *arg)
{
	struct proc *p = xcalloc(1, sizeof(*p));

	p->spec = *spec;
	p->slot = slot;
	p->keepers = host->keepers;
	p->remnants = host->remnants;
	p->ops = ops;
	p->arg = arg;
	for (unsigned int i = 0; i < ARRAY_LEN(p->out); i++)
		output_init(&p->out[i], host->loop, i, &ops->output, arg);
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

void
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
	p->keeper = keepers_start(p->keepers, &job);
	error = p->keeper == -1 ? errno : 0;
	env_clear(&start);
	return error;
}

int
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

/* All processes are dead: take what the pipes hold, then it has ended. */
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
	/* What was killed while it was drained is not left behind. */
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

/* The keeper has retired: what is below it lives on, unless its command did
 * not end by itself. */
static void
proc_leave(struct proc *p)
{
	struct proc_end end = {0};

	proc_end_fill(&end, &p->report, p->asked, p->oom_before);
	if (p->asked != PROC_EXITED || end.why == PROC_OUT_OF_MEMORY)
		remnants_kill_tree(p->keeper);
	else
		p->group = remnants_add(
		    p->remnants, p->spec.origin, p->keeper, &p->left);
}

void
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

void
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

void
proc_on_orphans_gone(struct proc *p)
{
	if (p->state == PROC_ORPHANED)
		proc_drain_begin(p);
}

void
proc_on_keeper_gone(struct proc *p)
{
	int error;

	if (p->state != PROC_RUNNING)
		return;
	/* One to be killed need not begin any more. */
	if (p->asked != PROC_EXITED || ++p->gone == PROC_KEEPERS_GONE_MAX) {
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

void
proc_resume(struct proc *p)
{
	if (p->state == PROC_DRAINING)
		proc_drain(p);
	else if (p->state == PROC_RUNNING)
		for (size_t i = 0; i < ARRAY_LEN(p->out); i++)
			output_resume(&p->out[i]);
}

void
proc_kill(struct proc *p, enum proc_why why)
{
	if (p->state != PROC_RUNNING || p->keeper == 0 || p->give_up_ms != 0)
		return;
	p->asked = why;
	p->give_up_ms = clock_mono_ms() + PROC_KEEPER_GRACE_MS;
	keepers_kill(p->keepers, p->keeper);
}

void
proc_tick(struct proc *p, uint64_t now_ms)
{
	if (p->state != PROC_RUNNING || p->keeper == 0)
		return;
	if (p->give_up_ms != 0 && now_ms >= p->give_up_ms) {
		/* Starved, or stopped again: PID 1 does its work. */
		(void)kill(p->keeper, SIGKILL);
		p->end.keeper_stuck = true;
		p->give_up_ms = now_ms + PROC_KEEPER_GRACE_MS;
	} else if (p->give_up_ms == 0 && now_ms >= p->deadline_ms) {
		proc_kill(p, PROC_TIMED_OUT);
	}
}

uint64_t
proc_next_ms(const struct proc *p)
{
	if (p->state != PROC_RUNNING)
		return UINT64_MAX;
	return p->give_up_ms != 0 ? p->give_up_ms : p->deadline_ms;
}

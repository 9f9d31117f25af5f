/*
 * proc.h - a process tree under a keeper, whoever wanted it
 *
 *	PROC_RUNNING	a keeper is at work on it
 *	PROC_ORPHANED	the keeper was killed, or gave up; PID 1 kills what it
 *			watched
 *	PROC_DRAINING	no process is left, or the rest lives on (remnants.h);
 *			the pipes hold output that its owner has no room for yet
 *	PROC_ENDED	procs.c tells the owner, and frees it
 *
 * It knows nothing of logs, runs or the link.  Its owner says where output
 * goes (proc_ops) and is told the end.  All of this is called by procs.c, which
 * has the table of them and the keepers; owners call procs_*.
 */
#ifndef AGENT_PROC_H
#define AGENT_PROC_H

#include <sys/types.h>

#include "common/base.h"
#include "images/agent/keepers.h"
#include "images/agent/remnants.h"
#include "images/agent/output.h"
#include "images/agent/proc_end.h"
#include "images/agent/proc_spec.h"

/* How long a keeper may take to kill its tree before it is given up. */
#define PROC_KEEPER_GRACE_MS (KEEPER_KILL_MAX_MS + 500)

/* So many in a row are no accident: somebody kills them, or they cannot even
 * read their job. */
#define PROC_KEEPERS_GONE_MAX 8

enum proc_state {
	PROC_RUNNING,
	PROC_ORPHANED,
	PROC_DRAINING,
	PROC_ENDED
};

struct proc_ops {
	struct output_ops output;
	/* The last call; the process is freed when it returns. */
	void (*on_end)(const struct proc_end *end, void *arg);
};

struct proc { /* proc.c writes */
	enum proc_state state;
	struct proc_spec spec;
	const struct proc_ops *ops;
	void *arg;
	struct keepers *keepers;
	struct remnants *remnants;
	uint32_t slot;        /* in the table; keepers' reports name it */
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

/* What all of them share. */
struct proc_host {
	struct loop *loop;
	struct keepers *keepers;
	struct remnants *remnants;
};

struct proc *proc_new(const struct proc_spec *spec, uint32_t slot,
    const struct proc_host *host, const struct proc_ops *ops, void *arg);
void proc_free(struct proc *p);
/* proc_begin - give it to a keeper; 0 or an errno */
int proc_begin(struct proc *p) MUSTCHECK;
/* proc_on_report - its keeper is done; proc_on_keeper_lost - died without;
 * proc_on_keeper_gone - died before it had begun, so another one is asked, up
 * to PROC_KEEPERS_GONE_MAX times */
void proc_on_report(struct proc *p, const struct keeper_report *report);
void proc_on_keeper_lost(struct proc *p);
void proc_on_keeper_gone(struct proc *p);
/* proc_on_orphans_gone - in PROC_ORPHANED: all that can be killed is dead */
void proc_on_orphans_gone(struct proc *p);
/* proc_resume - its owner has room for output again */
void proc_resume(struct proc *p);
/* proc_kill - the whole tree; the first reason counts */
void proc_kill(struct proc *p, enum proc_why why);
void proc_tick(struct proc *p, uint64_t now_ms); /* deadlines */
/* proc_next_ms - clock_mono_ms when a tick is due; UINT64_MAX: never */
uint64_t proc_next_ms(const struct proc *p);

#endif

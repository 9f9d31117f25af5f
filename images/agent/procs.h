/*
 * procs.h - all process trees of this sandbox, and the keepers they run under
 *
 * An owner starts a process here, says where its output goes (proc_ops), and
 * hears last of its end by on_end, which is never called from inside
 * procs_start.  Nothing here knows of logs, runs or the link.  What commands
 * leave behind is here, too, when they have ended (remnants.h).
 */
#ifndef AGENT_PROCS_H
#define AGENT_PROCS_H

#include <sys/types.h>

#include "common/base.h"
#include "common/err.h"
#include "images/agent/keepers.h"
#include "images/agent/loop.h"
#include "images/agent/output.h"
#include "images/agent/proc_end.h"
#include "images/agent/proc_spec.h"
#include "images/agent/remnants.h"

#define PROCS_MAX 320 /* of SEQS_LIVE_MAX and PROCESSES_MAX */

struct proc; /* one of them */

struct proc_ops {
	struct output_ops output;
	/* The last call; the process is freed when it returns. */
	void (*on_end)(const struct proc_end *end, void *arg);
};

struct procs { /* procs.c writes */
	struct loop *loop;
	int report_fd;
	loop_token report_token;
	uint32_t nlive;
	struct proc *live[PROCS_MAX]; /* by slot, which a report names */
	struct keepers keepers;
	struct remnants remnants;
	bool left_orphans; /* a keeper could not kill all in time; reap.c's */
	bool closing;
};

/* procs_init - makes the pipe of the keepers' reports; KEEPER_REPORT_FD must
 * be open (on anything) and is replaced */
int procs_init(struct procs *ps, struct loop *loop, struct err *e) MUSTCHECK;
/* procs_start - NULL with errno when no process can be started (EAGAIN: there
 * are PROCS_MAX).  What spec points to stays until on_end. */
struct proc *procs_start(struct procs *ps, const struct proc_spec *spec,
    const struct proc_ops *ops, void *arg) MUSTCHECK;
/* procs_resume - its owner has room for output again; p may be gone after */
void procs_resume(struct procs *ps, struct proc *p);
/* procs_kill - the whole tree; the first reason counts */
void procs_kill(struct proc *p, enum proc_why why);
/*
 * procs_crowd_text - of an end for want of a process: which run has most of
 * them and what ends these, in the place of proc_end_text's words; of every
 * other end, and where nobody else has any, text stays as it is
 *
 *	size	of text, which is cut at a character's end to fit with its NUL
 */
void procs_crowd_text(
    struct procs *ps, const struct proc_end *end, char *text, size_t size);

void procs_read_reports(struct procs *ps);
/* procs_on_reaped - a child of ours is dead.  Whether processes that it kept
 * may be PID 1's now; procs_on_orphans_gone - those that can be killed are
 * dead */
bool procs_on_reaped(struct procs *ps, pid_t pid) MUSTCHECK;
void procs_on_orphans_gone(struct procs *ps);
void procs_tick(struct procs *ps, uint64_t now_ms);
/* procs_next_ms - clock_mono_ms when a tick is due; UINT64_MAX: never */
uint64_t procs_next_ms(const struct procs *ps);
/* procs_kill_all - at the agent's end; none is started any more */
void procs_kill_all(struct procs *ps);

#endif

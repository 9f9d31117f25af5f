/*
 * procs.h - all process trees of this sandbox, and the keepers they run under
 *
 * What commands leave behind is here, too, when they have ended (remnants.h).
 *
 * The table in which a keeper's report finds its process, the pipe on which
 * the reports come, the deadlines.  An owner starts a process here, and hears
 * from it last by on_end, which is never called from inside procs_start.
 */
#ifndef AGENT_PROCS_H
#define AGENT_PROCS_H

#include "common/base.h"
#include "common/err.h"
#include "images/agent/keepers.h"
#include "images/agent/loop.h"
#include "images/agent/proc.h"

#define PROCS_MAX 320 /* of SEQS_LIVE_MAX and PROCESSES_MAX */

struct procs { /* procs.c writes */
	struct loop *loop;
	int report_fd;
	loop_token report_token;
	uint32_t nlive;
	struct proc *live[PROCS_MAX];
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

void procs_read_reports(struct procs *ps);
/* procs_by_keeper - the one that pid works for, or NULL */
struct proc *procs_by_keeper(const struct procs *ps, pid_t pid);
/* procs_on_keeper_lost, procs_on_orphans_gone - see proc.h */
void procs_on_keeper_lost(
    struct procs *ps, struct proc *p, enum keepers_loss loss);
void procs_on_orphans_gone(struct procs *ps);
void procs_tick(struct procs *ps, uint64_t now_ms);
uint64_t procs_next_ms(const struct procs *ps);
/* procs_kill_all - at the agent's end; none is started any more */
void procs_kill_all(struct procs *ps);

#endif

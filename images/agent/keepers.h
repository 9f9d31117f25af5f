/*
 * keepers.h - PID 1's keepers: forked when needed, kept for the next command
 *
 *	IDLE		waits for a job: as many as are busy, but at least one
 *			and at most KEEPERS_IDLE_MAX
 *	BUSY		has a job and will report
 *	RETIRED		stays with what its command left behind (remnants.h)
 *	LEAVING		is to end, or said that it ends; not reaped yet
 *
 * A fork of PID 1 and the end of one cost a short command a fifth of its time,
 * which is why a keeper is used again (docs/decisions/0005).
 */
#ifndef AGENT_KEEPERS_H
#define AGENT_KEEPERS_H

#include <sys/queue.h>
#include <sys/types.h>

#include "common/base.h"
#include "images/agent/keeper.h"

#define KEEPERS_IDLE_MAX 4

struct keepers {
	TAILQ_HEAD(, keepers_entry) list; /* the last one used first */
	uint32_t nidle;
	uint32_t nbusy;
	uint32_t orders; /* jobs given out so far */
};

/* keepers_init - empty */
void keepers_init(struct keepers *ks);
/* keepers_prepare - forks an idle one, if there is none; best effort */
void keepers_prepare(struct keepers *ks);
/* keepers_start - gives job, whose order is filled in here, to a keeper; its
 * pid, or -1 with errno.  The job's descriptors stay the caller's. */
pid_t keepers_start(struct keepers *ks, struct keeper_job *job) MUSTCHECK;
/* keepers_kill - tells a busy one to kill its command's tree; it reports */
void keepers_kill(struct keepers *ks, pid_t pid);
/* keepers_on_report - it is done with its job */
void keepers_on_report(struct keepers *ks, const struct keeper_report *report);
/* keepers_on_reaped - pid is dead and is forgotten here */
enum keepers_loss {
	KEEPERS_QUIET,   /* it had no job */
	KEEPERS_UNBEGUN, /* it had not begun with its job */
	KEEPERS_LOST     /* something may be below it; or no keeper */
};
enum keepers_loss keepers_on_reaped(struct keepers *ks, pid_t pid) MUSTCHECK;
/* keepers_has - pid is one that is not reaped yet */
bool keepers_has(const struct keepers *ks, pid_t pid);

#endif

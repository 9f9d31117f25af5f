/*
 * reap.h - init's duties: signals, dead children, orphans
 *
 * All children of the agent are keepers, and all of a command's processes are
 * below its keeper, which is their subreaper.  So a child that is no keeper
 * can only come from a keeper that is gone: it was killed, with what it stayed
 * with (remnants.h) or by root's code, or it gave up on a process that would
 * not die.  The rule: whatever is below the agent
 * and not below a living keeper is killed, by the rule of tree.h.  A process
 * whose keeper died without a report waits for that (at most REAP_ORPHANS_MS)
 * and then ends as killed by a signal; others are not touched, since
 * theirs are below their own keepers.
 *
 * SIGTERM ends the agent.  As init it obeys only those from outside its PID
 * namespace (sent by kill(2), sender 0): the sandbox's root cannot end the
 * sandbox so.
 */
#ifndef AGENT_REAP_H
#define AGENT_REAP_H

#include "common/base.h"
#include "common/err.h"
#include "images/agent/loop.h"
#include "images/agent/procs.h"

#define REAP_ORPHANS_MS 100

struct reaper {
	struct loop *loop;
	struct procs *procs;
	int fd;
	loop_token token;
	bool orphans;
	uint64_t since_ms;
	uint64_t next_ms;
	bool quit;
};

/* reap_init - blocks all signals */
int reap_init(struct reaper *r, struct loop *loop, struct procs *procs,
    struct err *e) MUSTCHECK;
void reap_tick(struct reaper *r, uint64_t now_ms);
uint64_t reap_next_ms(const struct reaper *r); /* UINT64_MAX: never */
/* reap_shutdown - kill all there is and come back; the agent exits then */
void reap_shutdown(struct reaper *r);

#endif

/*
 * run.h - one run: its files, its commands one after another, its end
 *
 *	RUN_RUNNING	a keeper is at work on the current command
 *	RUN_ORPHANED	the keeper was killed, or gave up; PID 1 kills what it
 *			watched
 *	RUN_DRAINING	no process is left; the pipes hold output that the log
 *			has no room for yet
 *	RUN_CLEANING	all commands are done; the run's files are removed
 *	RUN_ENDED	the log is complete and waits to be acknowledged
 */
#ifndef AGENT_RUN_H
#define AGENT_RUN_H

#include <sys/types.h>

#include "common/base.h"
#include "common/runlog.h"
#include "common/runspec.h"
#include "common/uuid.h"
#include "images/agent/keepers.h"
#include "images/agent/loop.h"
#include "images/agent/outlog.h"
#include "images/agent/output.h"
#include "images/agent/uplink.h"

/* How long a keeper may take to kill its tree before it is given up. */
#define RUN_KEEPER_GRACE_MS (KEEPER_KILL_MAX_MS + 500)

/* So many in a row are no accident: somebody kills them, or they cannot even
 * read their job. */
#define RUN_KEEPERS_GONE_MAX 8

enum run_stage {
	RUN_RUNNING,
	RUN_ORPHANED,
	RUN_DRAINING,
	RUN_CLEANING,
	RUN_ENDED
};

struct run {
	enum run_stage state;
	struct uplink *uplink;
	struct keepers *keepers;
	struct outlog log;
	struct runspec spec;
	uint32_t slot;
	uint32_t command;
	struct output out[2]; /* stdout, stderr */

	pid_t keeper; /* 0: none */
	struct keeper_report report;
	uint64_t started_us;
	uint64_t deadline_ms;
	uint64_t give_up_ms; /* of the keeper, 0: not asked to kill */
	uint64_t oom_before;
	uint32_t gone;       /* keepers that died before they began with it */
	uint8_t kill_reason; /* why the current command is killed, or 0 */

	uint8_t stop; /* reason of a cancel, or 0 */
	bool failed;
	uint32_t failed_command;
	bool has_dir;
	uint32_t removed;
	struct runlog_run_end outcome;
	size_t *kept_total; /* in which this log's memory is counted */
	size_t kept_bytes;
};

/* run_new - takes the spec (and zeroes *spec) */
struct run *run_new(const struct uuid *id, struct runspec *spec,
    struct loop *loop, struct uplink *uplink, struct keepers *keepers,
    uint32_t slot);
void run_free(struct run *r);
void run_start(struct run *r);
/* run_on_report - its keeper is done; run_on_keeper_lost - died without;
 * run_on_keeper_gone - died before it had begun, so another one is asked, up
 * to RUN_KEEPERS_GONE_MAX times */
void run_on_report(struct run *r, const struct keeper_report *report);
void run_on_keeper_lost(struct run *r);
void run_on_keeper_gone(struct run *r);
/* run_on_orphans_gone - in RUN_ORPHANED: all that can be killed is dead */
void run_on_orphans_gone(struct run *r);
/* run_on_room - the log was acknowledged further */
void run_on_room(struct run *r);
/* run_count_kept - at its end: count the log's memory in *total from now on,
 * until it is freed; run_release_if_taken - free it once all of it is
 * acknowledged */
void run_count_kept(struct run *r, size_t *total);
void run_release_if_taken(struct run *r);
/* run_cancel - kill its tree, start nothing more; the first reason counts */
void run_cancel(struct run *r, enum runlog_reason reason);
/* run_tick - deadlines, and a slice of cleaning */
void run_tick(struct run *r, uint64_t now_ms);
/* run_next_ms - clock_mono_ms when a tick is due; UINT64_MAX: never */
uint64_t run_next_ms(const struct run *r);

#endif

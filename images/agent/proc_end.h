/*
 * proc_end.h - from what a keeper saw to the true reason of a process's end
 */
#ifndef AGENT_PROC_END_H
#define AGENT_PROC_END_H

#include "common/base.h"
#include "common/runlog.h"
#include "images/agent/keeper.h"
#include "images/agent/proc_spec.h"

enum proc_why {
	PROC_EXITED,
	PROC_SIGNALED,
	PROC_OUT_OF_MEMORY, /* the kernel's OOM killer */
	PROC_UNSTARTED,     /* stage and error say where and why */
	PROC_TIMED_OUT,
	PROC_KILLED /* its owner asked for it */
};

struct proc_end {
	enum proc_why why;
	int32_t exit_code; /* 128 + signal for a signal; as a shell has it */
	int32_t signal;    /* 0: none */
	enum keeper_stage stage;
	int error;
	uint64_t wall_us;
	uint64_t cpu_us;            /* user + system of the whole tree */
	uint64_t memory_peak_bytes; /* of its largest process */
	uint32_t memory_kills;      /* at the sandbox's limit while it ran */
	const struct runlog_left *left; /* behind; NULL: nothing */
	bool keeper_lost;               /* it died before it reported */
	bool keeper_stuck; /* it did not kill in time and was killed */
};

/*
 * proc_end_fill - why, exit code, signal and memory_kills, or stage and error
 *
 *	asked		why PID 1 asked the keeper to kill: PROC_TIMED_OUT or
 *			PROC_KILLED; PROC_EXITED: it did not
 *	oom_before	oom_count() when the process started
 * A process that had ended before the kill reached it has ended by itself.
 */
void proc_end_fill(struct proc_end *end, const struct keeper_report *report,
    enum proc_why asked, uint64_t oom_before);
/* proc_end_unstarted - it never came to exec */
void proc_end_unstarted(
    struct proc_end *end, enum keeper_stage stage, int error);
/* proc_end_reason - as logs and frames have it; of PROC_KILLED, for want of the
 * owner's reason, RUNLOG_CANCELED */
enum runlog_reason proc_end_reason(enum proc_why why);
/* proc_end_text - why it was not started, in words, "" when it was; cut at a
 * character's end to size bytes with the NUL */
void proc_end_text(const struct proc_end *end, const struct proc_spec *spec,
    char *text, size_t size);

#endif

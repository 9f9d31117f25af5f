/*
 * run_end.h - from what a keeper saw to the true reason of an end
 */
#ifndef AGENT_RUN_END_H
#define AGENT_RUN_END_H

#include "common/base.h"
#include "common/runlog.h"
#include "common/runspec.h"
#include "images/agent/keeper.h"

/*
 * run_end_fill - reason, exit code, signal and text of a command
 *
 *	kill_reason	why PID 1 asked for the kill, 0: it did not
 *	oom_before	oom_count() when the command started
 * A command that had ended by itself before the kill reached it ended by
 * itself.
 */
void run_end_fill(struct runlog_end *end, const struct keeper_report *report,
    uint8_t kill_reason, uint64_t oom_before, const struct runspec_command *c);
/* run_end_start_failed - the stage and errno in words */
void run_end_start_failed(struct runlog_end *end, unsigned int stage, int error,
    const struct runspec_command *c);
/* run_end_text - copy, cut at a character's end */
void run_end_text(struct runlog_end *end, const char *text);

#endif

/*
 * command.h - from a fresh clone of the keeper to the program
 *
 * Both run in the keeper's memory while the keeper goes on: they make system
 * calls (raw.h), write job->stage and job->error when one fails, and nothing
 * else; no errno, no malloc.  Own session, the pipes given to the command's
 * user, no supplementary groups, user and group 1000 or 0, capabilities as in
 * caps.h, no new privileges, the working directory, an empty signal mask, and
 * exec.
 */
#ifndef AGENT_COMMAND_H
#define AGENT_COMMAND_H

#include "images/agent/keeper.h"

#define COMMAND_UID 1000

/* command_prepare - what needs no job yet, once */
void command_prepare(void);
/* command_await - so that the job's pipes, when they come, come to their
 * places */
void command_await(void);
void command_main(struct keeper_job *job) NORETURN;

#endif

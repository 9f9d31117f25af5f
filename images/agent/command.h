/*
 * command.h - from a fresh clone of the keeper to the program
 *
 * Both run in the keeper's memory while the keeper goes on: they make system
 * calls (raw.h), write job->stage and job->error when one fails, and nothing
 * else; no errno, no malloc.  Own session, descriptors at their places, the
 * terminal, no supplementary groups, user and group 1000 or 0, capabilities as
 * in caps.h, no new privileges, the working directory, an empty signal mask,
 * and exec.
 */
#ifndef AGENT_COMMAND_H
#define AGENT_COMMAND_H

#include "images/agent/keeper.h"

#define COMMAND_UID 1000

void command_main(struct keeper_job *job) NORETURN;

#endif

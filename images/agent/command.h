/*
 * command.h - from a fresh clone of the keeper to the program
 *
 * Both run in the keeper's memory while the keeper goes on: they make system
 * calls (raw.h), write job->stage and job->error when one fails, and nothing
 * else; no errno, no malloc.  Own session, descriptors at their places, the
 * terminal, user and group of owners.h, capabilities as in caps.h, no new
 * privileges, the working directory, an empty signal mask, and exec.
 */
#ifndef AGENT_COMMAND_H
#define AGENT_COMMAND_H

#include "images/agent/keeper.h"

void command_main(struct keeper_job *job) NORETURN;

#endif

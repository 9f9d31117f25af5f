/*
 * command.h - from a fresh clone of the keeper to the program
 *
 * command_main (arg is the struct keeper_job) runs in the keeper's memory
 * while the keeper goes on: it makes system calls (raw.h), writes job->stage
 * and job->error when one fails, and nothing else; no errno, no malloc.  Own
 * session, the pipes given to the command's user, no supplementary groups, user
 * and group 1000 or 0, capabilities as in caps.h, no new privileges, the
 * working directory, an empty signal mask, and exec.
 */
#ifndef AGENT_COMMAND_H
#define AGENT_COMMAND_H

#define COMMAND_UID 1000

int command_main(void *arg);

#endif

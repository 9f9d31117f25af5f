/*
 * keeper_job.h - a job on its way from PID 1 to a keeper
 *
 * One packet of a SOCK_SEQPACKET pair: a type, then the job's fields.  The
 * pipes' write ends are passed with it.  A job too large for a packet is passed
 * as a sealed memory file behind them (KEEPER_MSG_FILE), so that sending never
 * blocks.  Both ends are ours: what does not decode is a bug.
 */
#ifndef AGENT_KEEPER_JOB_H
#define AGENT_KEEPER_JOB_H

#include "common/base.h"
#include "common/err.h"
#include "images/agent/base_env.h"
#include "images/agent/env.h"
#include "images/agent/keeper.h"

#define KEEPER_PACKET_MAX 65536
/* All of a run specification; the program and the PATH once more, up to
 * RUNSPEC_ARG_BYTES_MAX each; the image's PATH twice and its HOME, of which the
 * kernel allows as much; the rest of the image's variables
 * (BASE_ENV_BYTES_MAX); a NUL per string, and some hundred bytes. */
#define KEEPER_JOB_MAX (RUNSPEC_BYTES_MAX + (1u << 20))
/* and a NULL */
#define KEEPER_ENV_MAX (RUNSPEC_ENV_MAX + BASE_ENV_MAX + ENV_OWN_MAX + 1)

enum keeper_msg {
	KEEPER_MSG_JOB = 1,
	KEEPER_MSG_FILE
};

/* keeper_job_send - from PID 1; 0 or an errno.  The descriptors stay the
 * caller's. */
int keeper_job_send(int socket, const struct keeper_job *job) MUSTCHECK;

/* What a keeper received. */
struct keeper_in {
	struct keeper_job job; /* points into this struct, owns its pipes */
	uint8_t *file;         /* where the strings are, or in packet */
	uint8_t packet[KEEPER_PACKET_MAX];
	char *argv[RUNSPEC_ARGV_MAX + 1];
	char *env[KEEPER_ENV_MAX];
};

/* keeper_receive - waits for a job; negative: PID 1 has closed its end, or *e.
 * Memory is taken for a large one alone.  keeper_in_clear follows. */
int keeper_receive(int socket, struct keeper_in *in, struct err *e) MUSTCHECK;
/* keeper_in_clear - closes the pipes and frees */
void keeper_in_clear(struct keeper_in *in);

#endif

/*
 * keeper.h - the small process above each command
 *
 * A keeper is a forked copy of PID 1 (its user, not dumpable) and the subreaper
 * of the commands it is given, one at a time.  For each job from its socket it
 * starts the command, waits for the command's end or for PID 1's order to kill,
 * kills and reaps all that is left of the tree, and writes one struct
 * keeper_report to KEEPER_REPORT_FD.  It ends when PID 1 closes the socket, or
 * after a tree of which something would not die.
 *
 * When the job says so (leave), what is alive KEEPER_STRAGGLE_MS after the
 * command's own end is not killed: the report says "behind", and the keeper
 * retires.  It takes no other job, stays the subreaper of what was left, reaps
 * it and ends with the last of it.  Killing that takes killing the keeper, too
 * (remnants.h).
 *
 * The command starts by clone(CLONE_VM), so what went wrong before exec is seen
 * in shared memory when it has ended, and the keeper need not be woken by its
 * exec.  Until then the job must stay as it is.
 *
 * A keeper that dies without a report was killed by root's code in the
 * sandbox; see reap.h for what happens then.
 *
 * A job is one packet of a SOCK_SEQPACKET pair, with the command's descriptors
 * beside it.  A job too large for a packet is passed as a sealed memory file
 * behind them, so that sending never blocks.
 */
#ifndef AGENT_KEEPER_H
#define AGENT_KEEPER_H

#include <sys/types.h>

#include "common/base.h"
#include "common/err.h"
#include "common/runspec.h"
#include "images/agent/base_env.h"
#include "images/agent/env.h"

/* The write end of the pipe on which all keepers report; PID 1 has put it
 * there before the first fork. */
#define KEEPER_REPORT_FD 3
#define KEEPER_SOCKET_FD 4 /* in a keeper only */
/* A command's descriptors have numbers below this.  A keeper occupies these, so
 * that a received descriptor has none of them. */
#define KEEPER_PLACES 8
/* A keeper gives a tree up to PID 1 when none of it died in KEEPER_KILL_MS of
 * looks, or after KEEPER_KILL_MAX_MS. */
#define KEEPER_KILL_MS 100
#define KEEPER_STRAGGLE_MS 20
#define KEEPER_KILL_MAX_MS 2000
/* oom_score_adj of keepers, which commands inherit: the OOM killer takes them
 * before the agent, whatever their sizes. */
#define KEEPER_OOM_SCORE "500"

#define KEEPER_PACKET_MAX 65536
/* The largest job: all of a run specification; the program and the PATH once
 * more, up to RUNSPEC_ARG_BYTES_MAX each; the image's PATH twice and its HOME,
 * of which the kernel allows as much; the rest of the image's variables
 * (BASE_ENV_BYTES_MAX); a NUL per string, and some hundred bytes. */
#define KEEPER_JOB_MAX (RUNSPEC_BYTES_MAX + (1u << 20))
/* and a NULL */
#define KEEPER_ENV_MAX (RUNSPEC_ENV_MAX + BASE_ENV_MAX + ENV_OWN_MAX + 1)

enum keeper_stage { /* what failed before exec */
	KEEPER_STARTED = 0,
	KEEPER_FORK,
	KEEPER_USER,
	KEEPER_CWD,
	KEEPER_EXEC
};

struct keeper_fd {
	int fd;
	uint8_t place; /* its number in the command, below KEEPER_PLACES */
};

struct keeper_job {
	char *const *argv;
	char *const *env;
	const char *program; /* path to exec, or a name to look up in search */
	const char *search;  /* PATH of the command */
	const char *cwd;
	enum runspec_user user;
	/* What the command has open; 0, 1 and 2 are among the places. */
	struct keeper_fd fds[KEEPER_PLACES];
	uint8_t nfds;
	uint8_t has_terminal; /* 1: 0 becomes the controlling terminal */
	uint8_t leave;        /* 1: what outlives the command is left alone */
	uint32_t slot;        /* for the report */
	uint32_t order;       /* the job's number; a kill names it */

	/* Written before exec, by the command's side of the shared memory. */
	enum keeper_stage stage;
	int error;
};

/* What a keeper received. */
struct keeper_in {
	struct keeper_job job; /* points into this struct, owns its fds */
	uint8_t *file;         /* where the strings are, or in packet */
	uint8_t packet[KEEPER_PACKET_MAX];
	char *argv[RUNSPEC_ARGV_MAX + 1];
	char *env[KEEPER_ENV_MAX];
};

struct keeper_report {
	pid_t keeper;
	uint32_t slot;
	int32_t status; /* of the command, as from wait(2) */
	uint8_t killed; /* the kill began before the command had ended */
	uint8_t left;   /* something could not be killed in time; it exits */
	uint8_t behind; /* something lives on, and the keeper is retired */
	uint8_t stage;  /* enum keeper_stage; error goes with it */
	int32_t error;
	uint64_t end_us;            /* clock_mono_us when the command ended */
	uint64_t cpu_us;            /* of all that was reaped */
	uint64_t memory_peak_bytes; /* of the largest of them */
};

/* Memory that PID 1 and the keeper share. */
struct keeper_shared {
	_Atomic uint32_t begun; /* order of the last job begun; by the keeper */
	_Atomic uint32_t kill;  /* order of the job to kill, then SIGTERM */
};

/* keeper_send - from PID 1; 0 or an errno.  The descriptors stay the
 * caller's. */
int keeper_send(int socket, const struct keeper_job *job) MUSTCHECK;
/* keeper_receive - waits for a job; negative: PID 1 has closed its end, or *e.
 * Memory is taken for a large one alone.  keeper_in_clear follows. */
int keeper_receive(int socket, struct keeper_in *in, struct err *e) MUSTCHECK;
/* keeper_in_clear - closes the descriptors and frees */
void keeper_in_clear(struct keeper_in *in);

/* keeper_main - the process's life, right after fork; socket is its end */
void keeper_main(int socket, struct keeper_shared *shared) NORETURN;

#endif

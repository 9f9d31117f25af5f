/*
 * runspec.h - what to run: one encoding for the database, the job channel
 * and the agent.
 *
 * The front makes it from the client's arguments, the worker decodes and
 * checks it again, the agent executes it.  runspec_decode refuses whatever is
 * over the limits below.  Files are written by the agent before the first
 * command, below RUNSPEC_DIR_PREFIX + run's UUID, owned by the run's user,
 * and removed when the run ends.
 */
#ifndef COMMON_RUNSPEC_H
#define COMMON_RUNSPEC_H

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"

#define RUNSPEC_VERSION 1
#define RUNSPEC_COMMANDS_MAX 64
#define RUNSPEC_ARGV_MAX 1024
#define RUNSPEC_ARG_BYTES_MAX 131071 /* MAX_ARG_STRLEN less its NUL */
#define RUNSPEC_ENV_MAX 512
#define RUNSPEC_CWD_MAX 4095
#define RUNSPEC_FILES_MAX 16
#define RUNSPEC_FILE_NAME_MAX 255    /* no slash, not "." or ".." */
#define RUNSPEC_BYTES_MAX (2u << 20) /* encoded, all in all */
#define RUNSPEC_TIMEOUT_MAX_MS 86400000u
#define RUNSPEC_DIR_PREFIX "/tmp/.run-"

enum runspec_user {
	RUNSPEC_USER_SANDBOX = 0,
	RUNSPEC_USER_ROOT = 1
};
enum runspec_flag {
	RUNSPEC_CONTINUE_ON_ERROR = 1,
	RUNSPEC_LOCK = 2, /* the front's: one of its kind at a time in a
			   * sandbox; the agent has no use for it */
	RUNSPEC_KILL_LEFTOVERS = 4 /* what a command leaves behind ends with
				    * it */
};
enum runspec_command_flag {
	RUNSPEC_ALLOW_FAILURE = 1,
	/* argv[0] alone is text for "bash -lc" (sh -lc where the image has no
	 * bash) */
	RUNSPEC_SHELL = 2,
	/* the front's denylist matched: not executed, ends as failed with
	 * exit 1; argv[0] has the text */
	RUNSPEC_DENIED = 4,
	RUNSPEC_MERGE_STDERR = 8, /* stderr goes into the stdout pipe */
	/* a secret of its environment is not to be had: not executed, ends as
	 * start_failed; deny has the reason */
	RUNSPEC_NO_SECRET = 16
};

struct runspec_command {
	char **argv; /* argc strings, then NULL */
	uint32_t argc;
	char **env; /* nenv strings K=V, then NULL */
	uint32_t nenv;
	char *cwd;           /* absolute */
	uint32_t timeout_ms; /* 1..RUNSPEC_TIMEOUT_MAX_MS */
	uint32_t flags;
	char *deny; /* why it is not executed, "" when it is */
};

struct runspec_file {
	char *name;
	uint8_t *data;
	size_t len;
	uint32_t mode; /* 0600, 0700, ... only the low nine bits */
};

struct runspec {
	enum runspec_user user;
	uint32_t flags;
	struct runspec_command *commands;
	uint32_t ncommands; /* 1..RUNSPEC_COMMANDS_MAX */
	struct runspec_file *files;
	uint32_t nfiles;
};

/* runspec_clear - frees all, and overwrites the environment, which may hold
 * secrets; fine on a zeroed one */
void runspec_clear(struct runspec *s);
/* runspec_command_size - of one as it is encoded */
size_t runspec_command_size(const struct runspec_command *c);
/* runspec_fits - whether it can be encoded at all; errors as of
 * runspec_encode */
int runspec_fits(const struct runspec *s, struct err *e) MUSTCHECK;
/* runspec_encode - appends to b, whose limit must be RUNSPEC_BYTES_MAX or
 * more; ERR_LIMIT naming what is too large, ERR_INVAL for what decode would
 * refuse */
int runspec_encode(
    const struct runspec *s, struct buf *b, struct err *e) MUSTCHECK;
/* runspec_decode - *s is filled only on success and then the caller's to
 * clear */
int runspec_decode(
    const void *p, size_t n, struct runspec *s, struct err *e) MUSTCHECK;

#endif

/*
 * leftlist.h - what a run left behind in its sandbox, as the agent says it and
 * the front believes it: the answer to ASK_LEFT_LIST and ASK_LEFT_KILL.
 *
 * Encoded it has at most LEFTLIST_BYTES_MAX.  All of it comes from inside the
 * sandbox and may be forged; leftlist_decode checks each field.
 */
#ifndef COMMON_LEFTLIST_H
#define COMMON_LEFTLIST_H

#include "common/agent_ask.h"
#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/uuid.h"

#define LEFTLIST_BYTES_MAX ASK_ANSWER_MAX
#define LEFTLIST_PROCESSES_MAX 64
#define LEFTLIST_LOGS_MAX 16
#define LEFTLIST_TEXT_MAX 200
#define LEFTLIST_OUTPUT_MAX 40000 /* of all logs together */

struct leftlist_process {
	uint32_t id;
	uint32_t pid; /* in the sandbox */
	uint16_t command;
	const char *text; /* printable UTF-8, of ntext bytes */
	size_t ntext;
};

enum leftlist_state {
	LEFTLIST_RUNNING,
	LEFTLIST_ENDED,
	LEFTLIST_KILLED, /* on request */
	LEFTLIST_DISK_FULL,
	LEFTLIST_STATES
};

/* What the processes that one command left behind have printed since its
 * end. */
struct leftlist_log {
	uint16_t command;
	enum leftlist_state state;
	uint64_t bytes; /* all that came; output is the last of them */
	const uint8_t *output;
	size_t noutput;
};

struct leftlist {
	uint32_t total;  /* that live in the sandbox, of all runs */
	uint32_t count;  /* that live, of the run */
	uint32_t killed; /* by what was asked */
	uint32_t nprocesses;
	struct leftlist_process processes[LEFTLIST_PROCESSES_MAX];
	uint32_t nlogs;
	struct leftlist_log logs[LEFTLIST_LOGS_MAX];
};

/* The arguments of both questions. */
struct leftlist_ask {
	struct uuid run;
	uint32_t process; /* to kill, with all below it; 0: all of the run */
};

/* leftlist_encode_ask - appends to b */
void leftlist_encode_ask(const struct leftlist_ask *ask, struct buf *b);
int leftlist_decode_ask(
    struct span in, struct leftlist_ask *ask, struct err *e) MUSTCHECK;

/* leftlist_encode - appends to b */
void leftlist_encode(const struct leftlist *l, struct buf *b);
/* leftlist_decode - *l points into p; ERR_PROTO: these bytes are none */
int leftlist_decode(
    const uint8_t *p, size_t n, struct leftlist *l, struct err *e) MUSTCHECK;

#endif

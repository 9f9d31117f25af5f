/*
 * runlog.h - a run's log: the byte stream that the agent produces, the
 * worker appends to the spool unchanged, and the front's followers read.
 *
 * A sequence of records, each a 16-byte header (u8 magic 0xa7, u8 type, u16
 * command index, u32 payload length, i64 wall-clock microseconds; little
 * endian) and its payload.  An offset in the log is an offset in the spool,
 * so whoever lost the other side continues from the spool's length.
 *
 * Everything in it comes from inside the sandbox and may be forged; readers
 * walk it with runlog_scan.h, which checks each header, and the order if
 * asked.
 *
 * Order of a good log:  RUN_STARTED  (COMMAND_STARTED  (STDOUT|STDERR)*
 * LEFT? COMMAND_ENDED)*  RUN_ENDED.  Commands run one after another, by index.
 */
#ifndef COMMON_RUNLOG_H
#define COMMON_RUNLOG_H

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/words_gen.h"

#define RUNLOG_HEADER_BYTES 16
#define RUNLOG_MAGIC 0xa7
#define RUNLOG_PAYLOAD_MAX 65536
#define RUNLOG_RECORD_MAX 768 /* payload of a record other than output */
#define RUNLOG_END_MAX 256    /* of COMMAND_ENDED */
/* What is more is read as so much: a sum of them is still a number. */
#define RUNLOG_CPU_MAX_US (UINT64_C(1) << 48)
#define RUNLOG_MEMORY_MAX_BYTES (UINT64_C(1) << 50)
#define RUNLOG_KILLS_MAX 1000000
#define RUNLOG_RUN_END_BYTES 5 /* payload of RUN_ENDED */

enum runlog_type {
	RUNLOG_RUN_STARTED = 1,     /* payload: none */
	RUNLOG_COMMAND_STARTED = 2, /* payload: none */
	RUNLOG_STDOUT = 3,          /* bytes; cut at UTF-8 boundaries */
	RUNLOG_STDERR = 4,
	RUNLOG_COMMAND_ENDED = 5, /* struct runlog_end */
	RUNLOG_RUN_ENDED = 6,     /* struct runlog_run_end */
	RUNLOG_LEFT = 7           /* struct runlog_left */
};

struct runlog_header {
	enum runlog_type type;
	uint16_t command;
	uint32_t length; /* of the payload */
	int64_t wall_us;
};

struct runlog_end { /* COMMAND_ENDED */
	uint8_t reason;
	int32_t exit_code; /* 128 + signal for a signal, 137 for a timeout */
	int32_t signal;    /* 0: none */
	uint64_t stdout_bytes;
	uint64_t stderr_bytes;
	uint64_t wall_us; /* duration */
	uint64_t cpu_us;  /* user + system of the tree */
	/* For start_failed: what and why; else "".  As it was parsed, without
	 * control characters (text.h): it is shown to whoever asks. */
	char text[128];
	/* Of the largest process of the tree; 0: not known.  Records of agents
	 * of before end without it. */
	uint64_t memory_peak_bytes;
	/* Processes of the sandbox that the kernel killed at its memory limit
	 * while the command ran, of whichever command they were.  Agents
	 * before frame version 6 do not say. */
	uint32_t memory_kills;
};

struct runlog_run_end {    /* RUN_ENDED */
	uint8_t reason;    /* RUNLOG_EXIT: all commands were gone through */
	uint8_t failed;    /* 1: a command failed that may not */
	uint8_t artifacts; /* 1: something is below /artifacts */
	uint16_t command;  /* that failed or was running, else 0 */
};

#define RUNLOG_LEFT_SHOWN 6
#define RUNLOG_LEFT_TEXT 96

/* A process that the command left behind: printable UTF-8, as its command line
 * was.  id is the sandbox's for it, and never another's. */
struct runlog_left_one {
	uint32_t id;
	uint32_t pid;
	char text[RUNLOG_LEFT_TEXT + 1];
};

struct runlog_left {    /* LEFT */
	uint32_t count; /* at least 1 */
	uint8_t killed; /* 1: no more could be kept, they were killed */
	uint8_t nshown; /* the first of them */
	struct runlog_left_one shown[RUNLOG_LEFT_SHOWN];
};

/* Appending; the caller has made sure of the room. */
void runlog_put_header(struct buf *b, const struct runlog_header *h);
void runlog_put_end(struct buf *b, const struct runlog_end *end);
void runlog_put_run_end(struct buf *b, const struct runlog_run_end *end);
size_t runlog_end_size(const struct runlog_end *end);
void runlog_put_left(struct buf *b, const struct runlog_left *left);

/* runlog_parse_header - RUNLOG_HEADER_BYTES bytes at p; ERR_PROTO when it is
 * none or breaks a limit */
int runlog_parse_header(
    const uint8_t *p, struct runlog_header *h, struct err *e) MUSTCHECK;
int runlog_parse_end(const uint8_t *p, size_t n, struct runlog_end *end,
    struct err *e) MUSTCHECK;
int runlog_parse_run_end(const uint8_t *p, size_t n, struct runlog_run_end *end,
    struct err *e) MUSTCHECK;
int runlog_parse_left(const uint8_t *p, size_t n, struct runlog_left *left,
    struct err *e) MUSTCHECK;
/* runlog_is_printable - UTF-8 without control characters of ASCII; what is
 * shown is masked as well (utf8_mask_controls) */
bool runlog_is_printable(const char *text, size_t n);

#endif

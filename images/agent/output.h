/*
 * output.h - one pipe of a command, into the run's log
 *
 * What is read becomes records, cut where a UTF-8 character ends: up to three
 * bytes are held back until more comes or the stream ends.  When the log has
 * no room the pipe is not read, so the program blocks; output_resume reads on.
 */
#ifndef AGENT_OUTPUT_H
#define AGENT_OUTPUT_H

#include "common/base.h"
#include "common/runlog.h"
#include "images/agent/loop.h"
#include "images/agent/outlog.h"
#include "images/agent/uplink.h"

/* Per pipe and loop turn, for fairness between runs. */
#define OUTPUT_TURN_BYTES (4u * RUNLOG_PAYLOAD_MAX)
/* Room below which reading stops, and from which it goes on. */
#define OUTPUT_ROOM_MIN 4096u
#define OUTPUT_ROOM_RESUME 65536u
#define OUTPUT_BIG_PIPE_BYTES (1 << 20)

struct output {
	int fd;           /* -1: at its end, or never there */
	loop_token token; /* 0: paused */
	struct loop *loop;
	struct uplink *uplink;
	struct outlog *log;
	enum runlog_type type;
	uint32_t command;
	bool big;
	uint8_t held[4];
	size_t nheld;
	uint64_t bytes; /* in the log so far */
	uint64_t drain; /* still to take from the pipe at the end */
};

/* output_open - a pipe whose write end is *write_end; 0 or an errno */
int output_open(struct output *o, int *write_end) MUSTCHECK;
/* output_watch - start reading */
void output_watch(struct output *o);
/* output_resume - the log has room again */
void output_resume(struct output *o);
/* output_drain_begin - no process of the command is left: take no more than
 * is in the pipe now, whoever else may hold it open */
void output_drain_begin(struct output *o);
/* output_drain - true when all of it is in the log and the pipe is closed */
bool output_drain(struct output *o);
/* output_close - drop what is not in the log */
void output_close(struct output *o);

#endif

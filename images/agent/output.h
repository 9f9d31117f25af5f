/*
 * output.h - one pipe of a process, to whoever takes its bytes
 *
 * The taker says how much it has room for and where the bytes go, so that
 * they are copied once, by the kernel.  While it has no room the pipe is not
 * read, and the program blocks; output_resume reads on.
 *
 * A program that writes much in small pieces would wake the agent and the
 * worker for each piece.  So when a read of such a program found little, the
 * loop pauses for LOOP_REST_US, while the pipe, made larger, takes what comes.
 */
#ifndef AGENT_OUTPUT_H
#define AGENT_OUTPUT_H

#include <sys/uio.h>

#include "common/base.h"
#include "common/runspec.h"
#include "images/agent/loop.h"

/* At most so many bytes are asked of the taker at a time. */
#define OUTPUT_READ_BYTES 65536u
/* Per pipe and loop turn, for fairness between processes. */
#define OUTPUT_TURN_BYTES (4u * OUTPUT_READ_BYTES)
/* Room below which reading stops, and from which it goes on. */
#define OUTPUT_ROOM_MIN 4096u
#define OUTPUT_ROOM_RESUME 65536u
#define OUTPUT_BIG_PIPE_BYTES (1 << 20)
/* A program that writes much is read in pieces of these, if it can. */
#define OUTPUT_GULP_MIN 4096u
#define OUTPUT_GULP_BYTES (2u * OUTPUT_READ_BYTES)

/* Who takes the bytes; stream is 0 for stdout, 1 for stderr. */
struct output_ops {
	size_t (*room)(void *arg, unsigned int stream);
	/* Where up to n bytes (no more than room) go: the pieces in iov, of
	 * which there are one or two.  They may have room for less. */
	int (*space)(
	    void *arg, unsigned int stream, size_t n, struct iovec iov[2]);
	/* n bytes were put there, n > 0. */
	void (*taken)(void *arg, unsigned int stream, size_t n);
};

struct output {           /* output.c writes */
	int fd;           /* -1: at its end, or never there */
	loop_token token; /* 0: paused */
	struct loop *loop;
	const struct output_ops *ops;
	void *arg;
	unsigned int stream;
	bool big;
	bool deep; /* its pipe was enlarged: it holds what comes in a pause */
	uint64_t drain; /* still to take from the pipe at the end */
	bool kept;      /* not closed after that, but moved (output_move) */
};

/* output_init - without a pipe */
void output_init(struct output *o, struct loop *loop, unsigned int stream,
    const struct output_ops *ops, void *arg);
/* output_open - a pipe that user may open by name; *write_end is the caller's.
 * 0 or an errno */
int output_open(
    struct output *o, enum runspec_user user, int *write_end) MUSTCHECK;
/* output_watch - start reading */
void output_watch(struct output *o);
/* output_resume - the taker has room again */
void output_resume(struct output *o);
/* output_drain_begin - the end of what is taken: no more than is in the pipe
 * now, whoever else may hold it open */
enum output_then {
	OUTPUT_CLOSE,
	OUTPUT_KEEP /* for output_move */
};
void output_drain_begin(struct output *o, enum output_then then);
/* output_drain - true when all of it is taken and the pipe is closed or, when
 * it is kept and has no end yet, ready to be moved */
bool output_drain(struct output *o);
/* output_move - the pipe of *from, which is drained, becomes that of *to, which
 * was initialised */
void output_move(struct output *from, struct output *to);
/* output_close - drop what is not taken */
void output_close(struct output *o);

#endif

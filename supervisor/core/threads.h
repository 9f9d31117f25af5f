/*
 * threads.h - what would keep the loop too long, done by threads of their own
 *
 * A job belongs to whoever made it, is the threads' between threads_add and
 * done, and comes back on the loop, in a later turn.  What it points to must
 * not be touched by the loop in between.
 *
 * There are two lines of jobs, from which threads take in turns: those that
 * read logs, of which there may be very many, and the others, which a client
 * waits for and whose number who adds them bounds.
 */
#ifndef CORE_THREADS_H
#define CORE_THREADS_H

#include <sys/queue.h>

#include "common/base.h"
#include "common/err.h"

#define THREADS_MAX 8
#define THREADS_ROOM_BYTES (256u << 10)

struct event_base;
struct threads;

enum thread_line {
	THREAD_LINE_LOGS,
	THREAD_LINE_REQUESTS,
	THREAD_LINES
};

enum thread_verdict {
	THREAD_DONE,
	THREAD_AGAIN /* a slice was done: behind all that wait in the line */
};

/* Embedded in what the job is about. */
struct thread_job {
	TAILQ_ENTRY(thread_job) link;
	/* work - on a thread; room: THREADS_ROOM_BYTES to work with */
	enum thread_verdict (*work)(struct thread_job *job, void *room);
	/* done - on the loop: the job is its maker's again, who may free it,
	 * or all threads */
	void (*done)(struct thread_job *job);
	/* drop - instead of done: threads_free was called; NULL: nothing */
	void (*drop)(struct thread_job *job);
};

int threads_new(struct event_base *base, unsigned int threads,
    struct threads **out, struct err *e) MUSTCHECK;
/* threads_free - waits for work that has begun; jobs are dropped.  May be
 * called inside done.  NULL is fine */
void threads_free(struct threads *t);
void threads_add(
    struct threads *t, enum thread_line line, struct thread_job *job);
/* threads_skip - no work: done is called in a later turn, in order with others
 * that are done */
void threads_skip(struct threads *t, struct thread_job *job);

#endif

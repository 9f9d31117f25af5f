/* queue.h - ops on their way to a thread: pushed by one, taken by another. */
#ifndef STORE_QUEUE_H
#define STORE_QUEUE_H

#include <pthread.h>

#include "supervisor/store/op.h"

#define QUEUE_WAIT_FOREVER UINT64_MAX

struct queue {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	struct op *head;
	struct op **tail;
	uint64_t count;
	uint64_t bytes;
	uint64_t wanted; /* the taker sleeps until there are so many */
	bool stopped;
};

void queue_init(struct queue *q);
void queue_clear(struct queue *q); /* releases what is in it */
/* queue_push - one op, or several linked by next, which stay together */
void queue_push(struct queue *q, struct op *list);
/* queue_take - up to max ops in order, linked by next; waits for the first
 * wait_ms at most.  NULL: time is over, or queue_stop was called and all is
 * taken; then queue_is_stopped. */
struct op *queue_take(struct queue *q, size_t max, uint64_t wait_ms);
/* queue_wait - until there is one, or for wait_ms; whether there is */
bool queue_wait(struct queue *q, uint64_t wait_ms);
/* queue_gather - sleeps until there are count, or for wait_us */
void queue_gather(struct queue *q, uint64_t count, uint64_t wait_us);
void queue_stop(struct queue *q);
bool queue_is_stopped(struct queue *q);
uint64_t queue_count(struct queue *q, uint64_t *bytes);

/* queue_is_full - more waits than a queue should hold (STORE_QUEUE_MAX) */
bool queue_is_full(struct queue *q);

/* queue_cond_init - a condition that waits by CLOCK_MONOTONIC
 * queue_cond_wait - until somebody signals, or that moment (clock_mono_us) */
void queue_cond_init(pthread_cond_t *cond);
int queue_cond_wait(
    pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t at_us);
/* queue_thread - start a thread that no signal is delivered to */
int queue_thread(
    pthread_t *out, void *(*main)(void *), void *arg, struct err *e) MUSTCHECK;

#endif

/*
 * queue.c - a list under a mutex, with a condition for its one taker
 *
 * The taker is woken only by the op that it waits for: with more it is awake,
 * or about to look again.
 */
#include "supervisor/store/queue.h"

#include <signal.h>
#include <time.h>

#include "common/clock.h"
#include "supervisor/store/store.h"

void
queue_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(cond, &attr);
	(void)pthread_condattr_destroy(&attr);
}

int
queue_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t at_us)
{
	const struct timespec until = {.tv_sec = (time_t)(at_us / 1000000),
	    .tv_nsec = (long)(at_us % 1000000) * 1000};

	return pthread_cond_timedwait(cond, mutex, &until);
}

void
queue_init(struct queue *q)
{
	memset(q, 0, sizeof(*q));
	q->tail = &q->head;
	q->wanted = 1;
	(void)pthread_mutex_init(&q->mutex, NULL);
	queue_cond_init(&q->cond);
}

void
queue_clear(struct queue *q)
{
	op_release_list(q->head);
	q->head = NULL;
	(void)pthread_cond_destroy(&q->cond);
	(void)pthread_mutex_destroy(&q->mutex);
}

void
queue_push(struct queue *q, struct op *list)
{
	uint64_t before;
	bool wake;

	(void)pthread_mutex_lock(&q->mutex);
	before = q->count;
	*q->tail = list;
	for (; list != NULL; list = list->next) {
		q->tail = &list->next;
		q->count++;
		q->bytes += list->bytes;
	}
	wake = before < q->wanted && q->count >= q->wanted;
	(void)pthread_mutex_unlock(&q->mutex);
	/* Not before: the thread would wake only to wait for the mutex. */
	if (wake)
		(void)pthread_cond_signal(&q->cond);
}

/* With the mutex held; returns when there is something or time is over. */
static void
wait_for_op(struct queue *q, uint64_t wait_ms)
{
	uint64_t until;
	int rc = 0;

	if (wait_ms == QUEUE_WAIT_FOREVER) {
		while (q->head == NULL && !q->stopped)
			(void)pthread_cond_wait(&q->cond, &q->mutex);
		return;
	}
	until = clock_mono_us() + wait_ms * 1000;
	while (q->head == NULL && !q->stopped && rc == 0)
		rc = queue_cond_wait(&q->cond, &q->mutex, until);
}

bool
queue_wait(struct queue *q, uint64_t wait_ms)
{
	bool found;

	(void)pthread_mutex_lock(&q->mutex);
	wait_for_op(q, wait_ms);
	found = q->head != NULL;
	(void)pthread_mutex_unlock(&q->mutex);
	return found;
}

void
queue_gather(struct queue *q, uint64_t count, uint64_t wait_us)
{
	const uint64_t until = clock_mono_us() + wait_us;
	int rc = 0;

	(void)pthread_mutex_lock(&q->mutex);
	q->wanted = count;
	while (q->count < count && !q->stopped && rc == 0)
		rc = queue_cond_wait(&q->cond, &q->mutex, until);
	q->wanted = 1;
	(void)pthread_mutex_unlock(&q->mutex);
}

static struct op *
take_locked(struct queue *q, size_t max)
{
	struct op *first = q->head, *last = NULL;

	while (q->head != NULL && max-- > 0) {
		last = q->head;
		q->head = last->next;
		q->count--;
		q->bytes -= last->bytes;
	}
	if (last != NULL)
		last->next = NULL;
	if (q->head == NULL)
		q->tail = &q->head;
	return first;
}

struct op *
queue_take(struct queue *q, size_t max, uint64_t wait_ms)
{
	struct op *first;

	(void)pthread_mutex_lock(&q->mutex);
	wait_for_op(q, wait_ms);
	first = take_locked(q, max);
	(void)pthread_mutex_unlock(&q->mutex);
	return first;
}

void
queue_stop(struct queue *q)
{
	(void)pthread_mutex_lock(&q->mutex);
	q->stopped = true;
	(void)pthread_cond_signal(&q->cond);
	(void)pthread_mutex_unlock(&q->mutex);
}

bool
queue_is_stopped(struct queue *q)
{
	bool stopped;

	(void)pthread_mutex_lock(&q->mutex);
	stopped = q->stopped;
	(void)pthread_mutex_unlock(&q->mutex);
	return stopped;
}

uint64_t
queue_count(struct queue *q, uint64_t *bytes)
{
	uint64_t count;

	(void)pthread_mutex_lock(&q->mutex);
	count = q->count;
	if (bytes != NULL)
		*bytes = q->bytes;
	(void)pthread_mutex_unlock(&q->mutex);
	return count;
}

bool
queue_is_full(struct queue *q)
{
	uint64_t bytes, count = queue_count(q, &bytes);

	return count >= STORE_QUEUE_MAX || bytes >= STORE_QUEUE_BYTES_MAX;
}

int
queue_thread(pthread_t *out, void *(*main)(void *), void *arg, struct err *e)
{
	sigset_t all, old;
	int rc;

	/* Signals are the loop's business. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(out, NULL, main, arg);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc != 0)
		return err_set(e, ERR_SYS, "start a thread: %s", strerror(rc));
	return 0;
}

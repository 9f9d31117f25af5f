/*
 * threads.c - what would keep the loop too long, done by threads of their own
 *
 *	lines	 jobs that wait; those that did a slice come back here
 *	  |
 *	done	 for the loop, which is woken by an eventfd
 *	  |
 *	deliver	 what the loop hands out in this turn
 *
 * Lines and done are shared, under the mutex.  A job is touched by the thread
 * that took it, and by the loop otherwise.
 */
#include "supervisor/core/threads.h"

#include <sys/eventfd.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/clock.h"
#include "common/xmalloc.h"

#define DELIVER_MAX_US 2000 /* in a turn; then others have theirs */

TAILQ_HEAD(job_queue, thread_job);

struct threads {
	struct event *ev;
	int fd;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	struct job_queue lines[THREAD_LINES]; /* these under the mutex */
	unsigned int next;                    /* line to look at first */
	struct job_queue done;
	bool stopping;
	pthread_t ids[THREADS_MAX];
	unsigned int nids;
	struct job_queue deliver;
	bool delivering; /* threads_cb is on the stack, */
	bool closed;     /* and threads_free was called in it */
};

/* ---- the threads */

static void
wake_loop(const struct threads *t)
{
	const uint64_t one = 1;

	(void)!write(t->fd, &one, sizeof(one));
}

void
threads_skip(struct threads *t, struct thread_job *job)
{
	bool first;

	(void)pthread_mutex_lock(&t->mutex);
	first = TAILQ_EMPTY(&t->done);
	TAILQ_INSERT_TAIL(&t->done, job, link);
	(void)pthread_mutex_unlock(&t->mutex);
	if (first)
		wake_loop(t);
}

void
threads_add(struct threads *t, enum thread_line line, struct thread_job *job)
{
	(void)pthread_mutex_lock(&t->mutex);
	TAILQ_INSERT_TAIL(&t->lines[line], job, link);
	(void)pthread_mutex_unlock(&t->mutex);
	(void)pthread_cond_signal(&t->cond);
}

/* From the lines in turns, under the mutex; NULL: all are empty. */
static struct thread_job *
next_job(struct threads *t, enum thread_line *line)
{
	for (unsigned int i = 0; i < THREAD_LINES; i++) {
		unsigned int at = (t->next + i) % THREAD_LINES;
		struct thread_job *job = TAILQ_FIRST(&t->lines[at]);

		if (job == NULL)
			continue;
		TAILQ_REMOVE(&t->lines[at], job, link);
		t->next = at + 1;
		*line = (enum thread_line)at;
		return job;
	}
	return NULL;
}

/* NULL: the end. */
static struct thread_job *
take_job(struct threads *t, enum thread_line *line)
{
	struct thread_job *job = NULL;

	(void)pthread_mutex_lock(&t->mutex);
	while (!t->stopping && (job = next_job(t, line)) == NULL)
		(void)pthread_cond_wait(&t->cond, &t->mutex);
	(void)pthread_mutex_unlock(&t->mutex);
	return job;
}

static void *
thread_main(void *arg)
{
	AUTO(auto_free) uint8_t *room = xmalloc(THREADS_ROOM_BYTES);
	enum thread_line line = THREAD_LINE_LOGS;
	struct threads *t = arg;
	struct thread_job *job;

	while ((job = take_job(t, &line)) != NULL)
		if (job->work(job, room) == THREAD_AGAIN)
			threads_add(t, line, job);
		else
			threads_skip(t, job);
	return NULL;
}

/* ---- back on the loop */

/* Nobody has it any more: what was added by the last done is its maker's. */
static void
destroy(struct threads *t)
{
	(void)pthread_cond_destroy(&t->cond);
	(void)pthread_mutex_destroy(&t->mutex);
	(void)close(t->fd);
	free(t);
}

/* Before those that are done by now. */
static void
deliver_later(struct threads *t)
{
	(void)pthread_mutex_lock(&t->mutex);
	TAILQ_CONCAT(&t->deliver, &t->done, link);
	TAILQ_CONCAT(&t->done, &t->deliver, link);
	(void)pthread_mutex_unlock(&t->mutex);
	wake_loop(t);
}

static void
threads_cb(evutil_socket_t fd, short what, void *arg)
{
	const uint64_t until = clock_mono_us() + DELIVER_MAX_US;
	struct threads *t = arg;
	struct thread_job *job;
	uint64_t n;

	(void)what;
	/* First the counter, then the list: a push between the two wakes us
	 * for nothing, the other way round it would be forgotten. */
	(void)!read(fd, &n, sizeof(n));
	(void)pthread_mutex_lock(&t->mutex);
	TAILQ_CONCAT(&t->deliver, &t->done, link);
	(void)pthread_mutex_unlock(&t->mutex);
	t->delivering = true;
	while ((job = TAILQ_FIRST(&t->deliver)) != NULL &&
	    clock_mono_us() < until) {
		TAILQ_REMOVE(&t->deliver, job, link);
		job->done(job);
	}
	t->delivering = false;
	if (t->closed)
		destroy(t);
	else if (job != NULL)
		deliver_later(t);
}

/* ---- life */

static void
stop_threads(struct threads *t)
{
	(void)pthread_mutex_lock(&t->mutex);
	t->stopping = true;
	(void)pthread_mutex_unlock(&t->mutex);
	(void)pthread_cond_broadcast(&t->cond);
	for (unsigned int i = 0; i < t->nids; i++)
		(void)pthread_join(t->ids[i], NULL);
	t->nids = 0;
}

static int
start_threads(struct threads *t, unsigned int threads, struct err *e)
{
	sigset_t all, old;
	int rc = 0;

	/* Signals are the loop's business. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	while (t->nids < threads && rc == 0) {
		rc = pthread_create(&t->ids[t->nids], NULL, thread_main, t);
		if (rc == 0)
			t->nids++;
	}
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc != 0)
		return err_set(e, ERR_SYS, "start a thread: %s", strerror(rc));
	return 0;
}

int
threads_new(struct event_base *base, unsigned int threads, struct threads **out,
    struct err *e)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct threads *t;

	if (fd == -1)
		return err_set(e, ERR_SYS, "eventfd: %s", strerror(errno));
	t = xcalloc(1, sizeof(*t));
	t->fd = fd;
	for (unsigned int i = 0; i < THREAD_LINES; i++)
		TAILQ_INIT(&t->lines[i]);
	TAILQ_INIT(&t->done);
	TAILQ_INIT(&t->deliver);
	(void)pthread_mutex_init(&t->mutex, NULL);
	(void)pthread_cond_init(&t->cond, NULL);
	t->ev = event_new(base, fd, EV_READ | EV_PERSIST, threads_cb, t);
	if (t->ev == NULL || event_add(t->ev, NULL) != 0) {
		threads_free(t);
		return err_set(e, ERR_SYS, "no event for the threads");
	}
	if (threads > THREADS_MAX)
		threads = THREADS_MAX;
	if (start_threads(t, threads, e) != 0) {
		threads_free(t);
		return ERR_SYS;
	}
	*out = t;
	return 0;
}

static void
drop_all(struct job_queue *q)
{
	struct thread_job *job;

	while ((job = TAILQ_FIRST(q)) != NULL) {
		TAILQ_REMOVE(q, job, link);
		if (job->drop != NULL)
			job->drop(job);
	}
}

void
threads_free(struct threads *t)
{
	if (t == NULL)
		return;
	stop_threads(t);
	if (t->ev != NULL)
		event_free(t->ev);
	for (unsigned int i = 0; i < THREAD_LINES; i++)
		drop_all(&t->lines[i]);
	drop_all(&t->done);
	drop_all(&t->deliver);
	t->closed = true;
	if (!t->delivering)
		destroy(t);
}

/*
 * logs_ground.h - reading off the loop, with what is read counted and stopped
 *
 * fd_pread_all is wrapped (link with -Wl,--wrap=fd_pread_all): every byte that
 * a reading thread gets is counted, and a closed gate holds the threads inside
 * their next read, so that "while it is being read" is a state and not a
 * matter of luck.
 */
#ifndef UNIT_CORE_LOGS_GROUND_H
#define UNIT_CORE_LOGS_GROUND_H

#include <pthread.h>

#include <event2/event.h>

#include "supervisor/core/logs.h"
#include "tests/unit/core/log_fixture.h"
#include "tests/unit/test.h"

#define MIB (1u << 20)

static const struct log_caps caps = {{MIB, MIB}, LOG_TAIL_BYTES, 0, 0};

/* ---- the wrapped read */

static pthread_mutex_t gate_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_cond = PTHREAD_COND_INITIALIZER;
static bool gate_closed;
static unsigned int gate_waiting;
static uint64_t nread;

ssize_t __real_fd_pread_all(
    int fd, void *p, size_t n, uint64_t off, struct err *e);
ssize_t __wrap_fd_pread_all(
    int fd, void *p, size_t n, uint64_t off, struct err *e);

ssize_t
__wrap_fd_pread_all(int fd, void *p, size_t n, uint64_t off, struct err *e)
{
	ssize_t got;

	(void)pthread_mutex_lock(&gate_mutex);
	gate_waiting++;
	(void)pthread_cond_broadcast(&gate_cond);
	while (gate_closed)
		(void)pthread_cond_wait(&gate_cond, &gate_mutex);
	gate_waiting--;
	(void)pthread_mutex_unlock(&gate_mutex);
	got = __real_fd_pread_all(fd, p, n, off, e);
	(void)pthread_mutex_lock(&gate_mutex);
	nread += got > 0 ? (uint64_t)got : 0;
	(void)pthread_mutex_unlock(&gate_mutex);
	return got;
}

static inline void
gate_set(bool closed)
{
	(void)pthread_mutex_lock(&gate_mutex);
	gate_closed = closed;
	(void)pthread_cond_broadcast(&gate_cond);
	(void)pthread_mutex_unlock(&gate_mutex);
}

/* A thread stands in a read, at the closed gate. */
static inline void
gate_await(void)
{
	(void)pthread_mutex_lock(&gate_mutex);
	while (gate_waiting == 0)
		(void)pthread_cond_wait(&gate_cond, &gate_mutex);
	(void)pthread_mutex_unlock(&gate_mutex);
}

static inline uint64_t
take_nread(void)
{
	uint64_t n;

	(void)pthread_mutex_lock(&gate_mutex);
	n = nread;
	nread = 0;
	(void)pthread_mutex_unlock(&gate_mutex);
	return n;
}

/* ---- the ground: a base, logs with some threads, a log of a run */

static struct {
	struct event_base *base;
	struct logs *logs;
	struct made_log log;
} g;

/* Views that are open go with it. */
static inline void
ground_close(void)
{
	logs_free(g.logs);
	g.logs = NULL;
	if (g.base != NULL)
		event_base_free(g.base);
	g.base = NULL;
}

static inline void
ground_open(unsigned int threads)
{
	struct err e;

	ground_close();
	gate_set(false);
	g.base = event_base_new();
	assert_non_null(g.base);
	assert_int_equal(logs_new(g.base, threads, &g.logs, &e), 0);
	(void)take_nread();
}

static inline int
ground_set_up(void **state)
{
	(void)state;
	ground_open(1);
	return 0;
}

static inline int
ground_tear_down(void **state)
{
	(void)state;
	ground_close();
	buf_clear(&g.log.b);
	return 0;
}

/* Of the ground's log, as it is now. */
static inline struct log_view *
open_view(void)
{
	return log_view_open(g.logs, file_of_log(&g.log), 1, &caps);
}

struct answer {
	unsigned int calls;
	unsigned int number; /* the how many-th of all answers */
	int rc;
	uint64_t scanned, bytes, next;
	struct buf head, tail, records;
	char *why;
};
static unsigned int answers;

static inline void
answer_clear(struct answer *a)
{
	buf_clear(&a->head);
	buf_clear(&a->tail);
	buf_clear(&a->records);
	free(a->why);
	memset(a, 0, sizeof(*a));
}

static inline void
copy_buf(struct buf *to, const struct buf *from)
{
	buf_clear(to);
	assert_int_equal(buf_append(to, buf_data(from), buf_len(from)), 0);
}

static inline void
note(struct answer *a, int rc, const struct err *why)
{
	a->calls++;
	a->number = ++answers;
	a->rc = rc;
	assert_true((rc == 0) == (why == NULL));
	if (why != NULL)
		a->why = xstrdup(why->msg);
}

static inline void
digest_cb(int rc, const struct log_digest *d, const struct err *why, void *arg)
{
	struct answer *a = arg;

	note(a, rc, why);
	if (rc != 0) {
		assert_null(d);
		return;
	}
	a->scanned = d->scanned;
	a->bytes = d->commands[0].out[0].bytes;
	copy_buf(&a->head, &d->commands[0].out[0].head);
	copy_buf(&a->tail, &d->commands[0].out[0].tail);
}

static inline void
read_cb(int rc, const struct log_records *got, const struct err *why, void *arg)
{
	struct answer *a = arg;

	note(a, rc, why);
	if (rc != 0) {
		assert_null(got);
		return;
	}
	a->next = got->next;
	buf_clear(&a->records);
	assert_int_equal(buf_append(&a->records, got->p, got->n), 0);
}

static inline void
await(const struct answer *a)
{
	while (a->calls == 0)
		assert_int_equal(event_base_loop(g.base, EVLOOP_ONCE), 0);
	assert_int_equal(a->calls, 1);
}

static inline struct answer
digest_now(struct log_view *v, uint64_t upto)
{
	struct answer a = {0};

	log_view_digest(v, upto, digest_cb, &a, NULL);
	assert_int_equal(a.calls, 0); /* never inside the call */
	await(&a);
	return a;
}

static inline struct answer
read_now(struct log_view *v, uint64_t from, uint64_t upto, size_t max)
{
	struct answer a = {0};

	log_view_read(
	    v, &(struct log_at){from, 0}, upto, max, read_cb, &a, NULL);
	assert_int_equal(a.calls, 0);
	await(&a);
	return a;
}

/* A command that prints mib MiB in records of that many bytes. */
static inline void
make_log(size_t mib, size_t record)
{
	begin_log(&g.log);
	put_started(&g.log, 0);
	while (g.log.bytes[0] < mib * MIB)
		put_output(&g.log, RUNLOG_STDOUT, record);
}

static inline void
check_digest(const struct answer *a)
{
	uint64_t n = g.log.bytes[0];

	assert_int_equal(a->rc, 0);
	assert_int_equal(a->scanned, buf_len(&g.log.b));
	assert_int_equal(a->bytes, n);
	assert_pattern(&a->head, 0, MIB, RUNLOG_STDOUT);
	assert_pattern(
	    &a->tail, n - LOG_TAIL_BYTES, LOG_TAIL_BYTES, RUNLOG_STDOUT);
}

static inline void
expect_digest(struct log_view *v, uint64_t upto)
{
	struct answer a = digest_now(v, upto);

	check_digest(&a);
	answer_clear(&a);
}

#endif

#include <pthread.h>
#include <stdatomic.h>

#include <event2/event.h>

#include "supervisor/core/threads.h"
#include "tests/unit/test.h"

/* A thread stands in a gated job until the gate opens. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

struct task {
	struct thread_job job; /* first */
	struct event_base *base;
	struct threads *threads; /* to be freed in done; NULL: not */
	bool is_gated;
	int slices;
	pthread_t worker;
	unsigned int works, number, drops;
};
static atomic_uint began;
static unsigned int ndone;

static enum thread_verdict
task_work(struct thread_job *job, void *room)
{
	struct task *t = (struct task *)job;

	memset(room, 1, THREADS_ROOM_BYTES);
	t->works++;
	t->worker = pthread_self();
	(void)atomic_fetch_add(&began, 1);
	if (t->is_gated) {
		(void)pthread_mutex_lock(&gate);
		(void)pthread_mutex_unlock(&gate);
	}
	return --t->slices > 0 ? THREAD_AGAIN : THREAD_DONE;
}

static void
task_done(struct thread_job *job)
{
	struct task *t = (struct task *)job;

	t->number = ++ndone;
	threads_free(t->threads);
}

static void
task_drop(struct thread_job *job)
{
	struct task *t = (struct task *)job;

	t->drops++;
}

static void
task_init(struct task *t)
{
	*t = (struct task){
	    .job = {.work = task_work, .done = task_done, .drop = task_drop},
	    .slices = 1};
}

struct place {
	struct event_base *base;
	struct threads *threads;
};

static void
place_open(struct place *p, unsigned int threads)
{
	struct err e;

	atomic_store(&began, 0);
	ndone = 0;
	p->base = event_base_new();
	assert_non_null(p->base);
	assert_int_equal(threads_new(p->base, threads, &p->threads, &e), 0);
}

static void
place_close(struct place *p)
{
	threads_free(p->threads);
	event_base_free(p->base);
}

static void
await_done(const struct place *p, unsigned int n)
{
	while (ndone < n)
		assert_int_equal(event_base_loop(p->base, EVLOOP_ONCE), 0);
}

static void
await_began(unsigned int n)
{
	while (atomic_load(&began) < n)
		(void)sched_yield();
}

TEST(work_is_off_the_loop_and_done_is_on_it)
{
	struct place p;
	struct task t;

	place_open(&p, 2);
	task_init(&t);
	threads_add(p.threads, THREAD_LINE_REQUESTS, &t.job);
	assert_int_equal(ndone, 0);
	await_done(&p, 1);
	assert_int_equal(t.works, 1);
	assert_false(pthread_equal(t.worker, pthread_self()));
	place_close(&p);
	assert_int_equal(t.drops, 0);
}

TEST(a_job_of_slices_is_done_after_the_last)
{
	struct place p;
	struct task t;

	place_open(&p, 2);
	task_init(&t);
	t.slices = 5;
	threads_add(p.threads, THREAD_LINE_LOGS, &t.job);
	await_done(&p, 1);
	assert_int_equal(t.works, 5);
	place_close(&p);
}

TEST(what_is_skipped_is_done_in_order)
{
	struct place p;
	struct task t[3];

	place_open(&p, 1);
	for (unsigned int i = 0; i < 3; i++) {
		task_init(&t[i]);
		threads_skip(p.threads, &t[i].job);
	}
	assert_int_equal(ndone, 0);
	await_done(&p, 3);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(t[i].number, i + 1);
		assert_int_equal(t[i].works, 0);
	}
	place_close(&p);
}

TEST(a_request_does_not_wait_for_all_logs)
{
	struct task logs[8], request;
	struct place p;

	place_open(&p, 1);
	(void)pthread_mutex_lock(&gate);
	for (unsigned int i = 0; i < 8; i++) {
		task_init(&logs[i]);
		logs[i].is_gated = i == 0;
		logs[i].slices = 3;
		threads_add(p.threads, THREAD_LINE_LOGS, &logs[i].job);
	}
	await_began(1);
	task_init(&request);
	threads_add(p.threads, THREAD_LINE_REQUESTS, &request.job);
	(void)pthread_mutex_unlock(&gate);
	await_done(&p, 9);
	assert_int_equal(request.number, 1);
	for (unsigned int i = 0; i < 8; i++)
		assert_int_equal(logs[i].works, 3);
	place_close(&p);
}

TEST(what_waits_is_dropped_at_the_end)
{
	struct task t[3];
	struct place p;

	place_open(&p, 0);
	for (unsigned int i = 0; i < 3; i++)
		task_init(&t[i]);
	t[2].job.drop = NULL;
	threads_add(p.threads, THREAD_LINE_LOGS, &t[0].job);
	threads_skip(p.threads, &t[1].job);
	threads_add(p.threads, THREAD_LINE_REQUESTS, &t[2].job);
	place_close(&p);
	assert_int_equal(ndone, 0);
	assert_int_equal(t[0].drops, 1);
	assert_int_equal(t[1].drops, 1);
	assert_int_equal(t[2].drops, 0);
}

TEST(all_may_be_freed_when_a_job_is_done)
{
	struct task t[3];
	struct place p;

	place_open(&p, 1);
	for (unsigned int i = 0; i < 3; i++) {
		task_init(&t[i]);
		threads_skip(p.threads, &t[i].job);
	}
	t[0].threads = p.threads;
	await_done(&p, 1);
	p.threads = NULL;
	assert_int_equal(t[1].drops, 1);
	assert_int_equal(t[2].drops, 1);
	place_close(&p);
	threads_free(NULL);
}

TEST_MAIN(NULL, NULL)

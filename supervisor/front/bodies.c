#include "supervisor/front/bodies.h"

#include <stdatomic.h>
#include <sys/queue.h>

#include <event2/buffer.h>

#include "common/xmalloc.h"
#include "supervisor/core/threads.h"

#ifndef JANSSON_THREAD_SAFE_REFCOUNT
#error "a call has the arguments of a message that a thread frees"
#endif

struct body_reading {
	struct thread_job job; /* first */
	TAILQ_ENTRY(body_reading) link;
	struct bodies *all; /* NULL: gone */
	struct evbuffer *body;
	size_t bytes;
	struct mcp_message *message; /* the thread's answer */
	bodies_cb cb;
	void *arg;
	bool waits;
	atomic_bool canceled;
};
TAILQ_HEAD(reading_list, body_reading);

struct bodies {
	struct threads *threads;
	struct reading_list waiting;
	struct reading_list given; /* to the threads */
	unsigned int ngiven;
	size_t bytes; /* of both */
};

/* ---- on a thread */

static enum thread_verdict
reading_work(struct thread_job *job, void *room)
{
	struct body_reading *r = (struct body_reading *)job;

	(void)room;
	if (!atomic_load(&r->canceled))
		r->message =
		    mcp_message_read(evbuffer_pullup(r->body, -1), r->bytes);
	evbuffer_free(r->body);
	r->body = NULL;
	return THREAD_DONE;
}

static enum thread_verdict
freeing_work(struct thread_job *job, void *room)
{
	struct body_reading *r = (struct body_reading *)job;

	(void)room;
	mcp_message_free(r->message);
	r->message = NULL;
	return THREAD_DONE;
}

/* ---- on the loop */

static void
reading_free(struct body_reading *r)
{
	if (r->body != NULL)
		evbuffer_free(r->body);
	mcp_message_free(r->message);
	free(r);
}

static void
reading_drop(struct thread_job *job)
{
	reading_free((struct body_reading *)job);
}

static void
give_next(struct bodies *b)
{
	struct body_reading *r;

	while (b->ngiven < BODIES_AT_ONCE &&
	    (r = TAILQ_FIRST(&b->waiting)) != NULL) {
		TAILQ_REMOVE(&b->waiting, r, link);
		TAILQ_INSERT_TAIL(&b->given, r, link);
		b->ngiven++;
		r->waits = false;
		threads_add(b->threads, THREAD_LINE_REQUESTS, &r->job);
	}
}

static void
leave(struct body_reading *r)
{
	struct bodies *b = r->all;

	if (b == NULL)
		return;
	TAILQ_REMOVE(&b->given, r, link);
	b->ngiven--;
	give_next(b);
}

static void
freeing_done(struct thread_job *job)
{
	struct body_reading *r = (struct body_reading *)job;

	leave(r);
	reading_free(r);
}

static void
reading_done(struct thread_job *job)
{
	struct body_reading *r = (struct body_reading *)job;

	if (r->all != NULL)
		r->all->bytes -= r->bytes;
	if (!atomic_load(&r->canceled))
		r->cb(r->message, r->bytes, r->arg);
	if (r->all == NULL || r->message == NULL) {
		freeing_done(job);
		return;
	}
	r->job.work = freeing_work;
	r->job.done = freeing_done;
	threads_add(r->all->threads, THREAD_LINE_REQUESTS, &r->job);
}

bool
bodies_have_room(const struct bodies *b, size_t bytes)
{
	return b->bytes == 0 || b->bytes + bytes <= BODIES_TOTAL_MAX;
}

struct body_reading *
bodies_read(struct bodies *b, struct evbuffer *body, bodies_cb cb, void *arg)
{
	struct body_reading *r = xcalloc(1, sizeof(*r));

	r->job.work = reading_work;
	r->job.done = reading_done;
	r->job.drop = reading_drop;
	r->all = b;
	r->body = body;
	r->bytes = evbuffer_get_length(body);
	r->cb = cb;
	r->arg = arg;
	r->waits = true;
	atomic_init(&r->canceled, false);
	TAILQ_INSERT_TAIL(&b->waiting, r, link);
	b->bytes += r->bytes;
	give_next(b);
	return r;
}

void
body_reading_cancel(struct body_reading *r)
{
	struct bodies *b = r->all;

	atomic_store(&r->canceled, true);
	if (!r->waits)
		return; /* freed when the thread is done with it */
	TAILQ_REMOVE(&b->waiting, r, link);
	b->bytes -= r->bytes;
	reading_free(r);
}

/* ---- life */

struct bodies *
bodies_new(struct threads *threads)
{
	struct bodies *b = xcalloc(1, sizeof(*b));

	b->threads = threads;
	TAILQ_INIT(&b->waiting);
	TAILQ_INIT(&b->given);
	return b;
}

void
bodies_free(struct bodies *b)
{
	struct body_reading *r;

	if (b == NULL)
		return;
	TAILQ_FOREACH (r, &b->given, link)
		r->all = NULL;
	free(b);
}

#include "supervisor/front/bodies.h"

#include <stdatomic.h>
#include <sys/queue.h>

#include <event2/buffer.h>

#include "common/xmalloc.h"
#include "supervisor/core/threads.h"

#ifndef JANSSON_THREAD_SAFE_REFCOUNT
#error "a call has the arguments of a message that a thread frees"
#endif

struct body_share;

struct body_reading {
	struct thread_job job; /* first */
	TAILQ_ENTRY(body_reading) link;
	struct bodies *all; /* NULL: gone */
	struct body_share *share;
	struct evbuffer *body;
	size_t bytes;
	struct mcp_message *message; /* the thread's answer */
	bodies_cb cb;
	void *arg;
	bool waits;
	atomic_bool canceled;
};
TAILQ_HEAD(reading_list, body_reading);

/* What is there of one tenant; gone with the last of it. */
struct body_share {
	TAILQ_ENTRY(body_share) link;
	struct tenant_id tenant;
	struct reading_list waiting;
	unsigned int count; /* of readings, also of those given */
	size_t bytes;
};
TAILQ_HEAD(share_list, body_share);

struct bodies {
	struct threads *threads;
	struct share_list shares;  /* the next one's turn first */
	struct reading_list given; /* to the threads */
	unsigned int ngiven;
	size_t bytes; /* of all */
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

static struct body_share *
share_find(const struct bodies *b, struct tenant_id tenant)
{
	struct body_share *s;

	TAILQ_FOREACH (s, &b->shares, link)
		if (tenant_id_is_equal(s->tenant, tenant))
			return s;
	return NULL;
}

static struct body_share *
share_of(struct bodies *b, struct tenant_id tenant)
{
	struct body_share *s = share_find(b, tenant);

	if (s != NULL)
		return s;
	s = xcalloc(1, sizeof(*s));
	s->tenant = tenant;
	TAILQ_INIT(&s->waiting);
	TAILQ_INSERT_TAIL(&b->shares, s, link);
	return s;
}

static void
share_leave(struct body_reading *r)
{
	struct body_share *s = r->share;

	if (--s->count > 0)
		return;
	TAILQ_REMOVE(&r->all->shares, s, link);
	free(s);
}

static void
bytes_leave(struct body_reading *r)
{
	r->all->bytes -= r->bytes;
	r->share->bytes -= r->bytes;
}

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

/* The one whose tenant's turn it is; the tenant goes behind the others. */
static struct body_reading *
take_next(struct bodies *b)
{
	struct body_reading *r;
	struct body_share *s;

	TAILQ_FOREACH (s, &b->shares, link)
		if (!TAILQ_EMPTY(&s->waiting))
			break;
	if (s == NULL)
		return NULL;
	TAILQ_REMOVE(&b->shares, s, link);
	TAILQ_INSERT_TAIL(&b->shares, s, link);
	r = TAILQ_FIRST(&s->waiting);
	TAILQ_REMOVE(&s->waiting, r, link);
	return r;
}

static void
give_next(struct bodies *b)
{
	struct body_reading *r;

	while (b->ngiven < BODIES_AT_ONCE && (r = take_next(b)) != NULL) {
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
	share_leave(r);
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
		bytes_leave(r);
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

enum bodies_room
bodies_have_room(const struct bodies *b, struct tenant_id tenant, size_t bytes)
{
	const struct body_share *s = share_find(b, tenant);

	if (s == NULL || s->bytes == 0)
		return b->bytes + bytes <= BODIES_FIRSTS_MAX ? BODIES_ROOM :
							       BODIES_FULL;
	if (s->bytes + bytes > BODIES_TENANT_MAX)
		return BODIES_TENANT_FULL;
	return b->bytes + bytes <= BODIES_TOTAL_MAX ? BODIES_ROOM : BODIES_FULL;
}

struct body_reading *
bodies_read(struct bodies *b, struct tenant_id tenant, struct evbuffer *body,
    bodies_cb cb, void *arg)
{
	struct body_reading *r = xcalloc(1, sizeof(*r));

	r->job.work = reading_work;
	r->job.done = reading_done;
	r->job.drop = reading_drop;
	r->all = b;
	r->share = share_of(b, tenant);
	r->body = body;
	r->bytes = evbuffer_get_length(body);
	r->cb = cb;
	r->arg = arg;
	r->waits = true;
	atomic_init(&r->canceled, false);
	TAILQ_INSERT_TAIL(&r->share->waiting, r, link);
	r->share->count++;
	r->share->bytes += r->bytes;
	b->bytes += r->bytes;
	give_next(b);
	return r;
}

void
body_reading_cancel(struct body_reading *r)
{
	atomic_store(&r->canceled, true);
	if (!r->waits)
		return; /* freed when the thread is done with it */
	TAILQ_REMOVE(&r->share->waiting, r, link);
	bytes_leave(r);
	share_leave(r);
	reading_free(r);
}

/* ---- life */

struct bodies *
bodies_new(struct threads *threads)
{
	struct bodies *b = xcalloc(1, sizeof(*b));

	b->threads = threads;
	TAILQ_INIT(&b->shares);
	TAILQ_INIT(&b->given);
	return b;
}

void
bodies_free(struct bodies *b)
{
	struct body_reading *r;
	struct body_share *s;

	if (b == NULL)
		return;
	TAILQ_FOREACH (r, &b->given, link)
		r->all = NULL;
	while ((s = TAILQ_FIRST(&b->shares)) != NULL) {
		TAILQ_REMOVE(&b->shares, s, link);
		free(s);
	}
	free(b);
}

#include "supervisor/front/sse.h"

#include <event2/buffer.h>

#include "common/clock.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "supervisor/core/quota_use.h"

#define BEATS_IN_A_TURN 64

struct sse_streams {
	const struct front *front;
	TAILQ_HEAD(, sse) list; /* the next to beat first */
	struct timer *beat;     /* one for all of them */
	size_t count;
};

/* ---- writing */

void
sse_add(struct evbuffer *out, const char *id, const char *event)
{
	if (id != NULL)
		(void)evbuffer_add_printf(out, "id: %s\n", id);
	(void)evbuffer_add_printf(out, "event: %s\ndata: ", event);
}

void
sse_write(struct sse *s, struct evbuffer *out)
{
	if (evbuffer_get_length(out) > 0)
		http_stream_write(s->x, out);
	evbuffer_free(out);
}

static void
write_text(struct sse *s, const char *text)
{
	struct evbuffer *out = http_buffer_new();

	(void)evbuffer_add(out, text, strlen(text));
	sse_write(s, out);
}

void
sse_pump(struct sse *s)
{
	size_t appetite = s->is_asked ? 0 : http_stream_appetite(s->x);

	if (appetite == 0)
		return;
	s->is_asked = true;
	s->ops->next(s, appetite);
}

void
sse_answer(struct sse *s, struct evbuffer *out)
{
	s->is_asked = false;
	sse_write(s, out);
	sse_pump(s);
}

/* ---- beats */

static void
beat_next(struct sse_streams *all)
{
	const struct sse *s = TAILQ_FIRST(&all->list);
	uint64_t now = clock_mono_ms();

	if (s != NULL && !timer_is_set(all->beat))
		timer_set_ms(
		    all->beat, s->beat_ms > now ? s->beat_ms - now : 0);
}

static void
beat_later(struct sse *s)
{
	s->beat_ms = clock_mono_ms() + s->all->front->heartbeat_ms;
	TAILQ_INSERT_TAIL(&s->all->list, s, link);
}

static void
beat_cb(void *arg)
{
	struct sse_streams *all = arg;
	uint64_t now = clock_mono_ms();

	for (size_t i = 0; i < BEATS_IN_A_TURN; i++) {
		struct sse *s = TAILQ_FIRST(&all->list);

		if (s == NULL || s->beat_ms > now)
			break;
		TAILQ_REMOVE(&all->list, s, link);
		beat_later(s);
		/* Bytes that wait prove as much, and beats must not pile up. */
		if (http_stream_pending(s->x) == 0 &&
		    (s->ops->beat == NULL || !s->ops->beat(s)))
			write_text(s, ": \n\n");
	}
	beat_next(all);
}

/* ---- life of a stream */

struct http_exchange *
sse_leave(struct sse *s)
{
	struct http_exchange *x = s->x;

	if (s->is_started)
		TAILQ_REMOVE(&s->all->list, s, link);
	s->all->count--;
	if (s->use != NULL)
		quota_use_drop_stream(s->use);
	s->ops->free(s);
	return x;
}

static void
gone_cb(void *arg)
{
	http_drop(sse_leave(arg));
}

void
sse_end(struct sse *s)
{
	http_stream_end(sse_leave(s));
}

static void
writable_cb(void *arg)
{
	sse_pump(arg);
}

void
sse_open(struct sse_streams *all, struct sse *s, struct http_exchange *x,
    const struct sse_ops *ops, struct quota_use *use)
{
	*s = (struct sse){.all = all, .x = x, .ops = ops, .use = use};
	all->count++;
	http_hold(x, gone_cb, s);
}

void
sse_start(struct sse *s, const char *text)
{
	s->is_started = true;
	http_stream_start(s->x, writable_cb);
	write_text(s, text);
	beat_later(s);
	beat_next(s->all);
}

/* ---- life of all */

struct sse_streams *
sse_streams_new(const struct front *f)
{
	struct sse_streams *all = xcalloc(1, sizeof(*all));

	all->front = f;
	TAILQ_INIT(&all->list);
	all->beat = timer_new(f->base, beat_cb, all);
	return all;
}

void
sse_streams_free(struct sse_streams *all)
{
	if (all == NULL)
		return;
	timer_free(all->beat);
	free(all);
}

void
sse_streams_drain(struct sse_streams *all)
{
	struct sse *s;

	while ((s = TAILQ_FIRST(&all->list)) != NULL)
		sse_end(s);
}

size_t
sse_streams_count(const struct sse_streams *all)
{
	return all->count;
}

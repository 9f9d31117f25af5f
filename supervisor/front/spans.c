/*
 * A request that is under way, or waits to be sent again, is a text of its own
 * (batch); the queue behind it grows meanwhile.  The timer is either for more
 * to come together, or for a collector that did not take the batch.
 */
#include "supervisor/front/spans.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/queue.h>

#include "common/buf.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/metric.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "supervisor/core/bus.h"
#include "supervisor/core/run.h"
#include "supervisor/core/tenants.h"
#include "supervisor/front/postbox.h"
#include "supervisor/front/span_text.h"

#define GATHER_MS 1000
#define BATCH_MAX 60000 /* bytes of a request; POST_SPANS has some more */
#define AGAIN_FIRST_MS UINT64_C(1000)
#define AGAIN_MAX_MS 60000
#define DOUBLINGS_MAX 6
#define COMPLAIN_MS 60000
#define TOO_MANY_STATUS 429

struct span_item {
	TAILQ_ENTRY(span_item) link;
	size_t n;
	char text[];
};
TAILQ_HEAD(span_items, span_item);

struct spans {
	struct spans_parts parts;
	struct bus_member member;
	struct timer *timer;
	struct span_items queue;
	size_t count, bytes; /* of the queue */
	char *head;
	struct buf batch;
	size_t batch_count; /* spans in it; 0: there is none */
	uint64_t letter;    /* 0: it is not under way */
	uint32_t attempts;
	bool rests; /* until the timer */
	uint64_t dropped, complained_ms;
};

/* ---- what is not taken */

/* The first at once, then what came together each minute. */
static void
complain(struct spans *s, const char *why)
{
	uint64_t now = clock_mono_ms();

	if (s->complained_ms != 0 && now - s->complained_ms < COMPLAIN_MS)
		return;
	s->complained_ms = now;
	if (s->dropped > 0)
		log_warn("%" PRIu64 " spans of runs are dropped: %s",
		    s->dropped, why);
	else
		log_warn("spans of runs are sent again: %s", why);
	s->dropped = 0;
}

static void
drop(struct spans *s, size_t n, const char *why)
{
	s->dropped += n;
	metric_add(METRIC_SPANS_TOTAL + 1, n);
	complain(s, why);
}

/* ---- the queue */

static void
take_cb(const char *text, void *arg)
{
	struct spans *s = arg;
	size_t n = strlen(text);
	struct span_item *item;

	if (s->count >= SPANS_QUEUE_MAX || n > SPAN_TEXT_MAX ||
	    s->bytes + n > SPANS_BYTES_MAX) {
		drop(s, 1,
		    "OTLP_ENDPOINT does not take them as fast as "
		    "runs end");
		return;
	}
	item = xmalloc(sizeof(*item) + n + 1);
	item->n = n;
	memcpy(item->text, text, n + 1);
	TAILQ_INSERT_TAIL(&s->queue, item, link);
	s->count++;
	s->bytes += n;
}

static void
send_or_gather(struct spans *s)
{
	if (s->bytes >= BATCH_MAX)
		spans_pump(s);
	else if (s->count > 0 && !timer_is_set(s->timer))
		timer_set_ms(s->timer, GATHER_MS);
}

static void
on_bus(const struct bus_event *ev, void *arg)
{
	struct spans *s = arg;
	const struct tenant *n;

	if (ev->kind != BUS_RUN_ENDED)
		return;
	n = tenants_find(s->parts.tenants, run_tenant(ev->run));
	span_text_each(&ev->run->row, n == NULL ? "" : n->row.name, take_cb, s);
	send_or_gather(s);
}

/* ---- a request */

static void
put_text(struct spans *s, const char *text, size_t n)
{
	(void)!buf_append(&s->batch, text, n);
}

static void
make_batch(struct spans *s)
{
	struct span_item *item;

	put_text(s, s->head, strlen(s->head));
	while ((item = TAILQ_FIRST(&s->queue)) != NULL &&
	    buf_len(&s->batch) + item->n + sizeof(",]}]}]}") <= BATCH_MAX) {
		if (s->batch_count > 0)
			put_text(s, ",", 1);
		put_text(s, item->text, item->n);
		TAILQ_REMOVE(&s->queue, item, link);
		s->batch_count++;
		s->count--;
		s->bytes -= item->n;
		free(item);
	}
	put_text(s, span_text_tail, strlen(span_text_tail));
	s->attempts = 0;
}

static void
end_batch(struct spans *s)
{
	buf_clear(&s->batch);
	s->batch_count = 0;
	send_or_gather(s);
}

/* As OTLP over HTTP has it: what may be sent again. */
static bool
is_passing(uint32_t status)
{
	return status == 0 || status == TOO_MANY_STATUS || status == 502 ||
	    status == 503 || status == 504;
}

static void
try_again(struct spans *s, uint32_t after_s, const char *why)
{
	uint64_t ms = AGAIN_FIRST_MS
	    << (s->attempts < DOUBLINGS_MAX ? s->attempts : DOUBLINGS_MAX);

	if (ms < after_s * UINT64_C(1000))
		ms = after_s * UINT64_C(1000);
	if (ms > AGAIN_MAX_MS)
		ms = AGAIN_MAX_MS;
	s->attempts++;
	s->rests = true;
	timer_set_ms(s->timer, ms);
	complain(s, why);
}

static void
posted_cb(const struct postbox_answer *a, void *arg)
{
	struct spans *s = arg;
	char why[128];

	s->letter = 0;
	if (a->status >= 200 && a->status < 300) {
		metric_add(METRIC_SPANS_TOTAL, s->batch_count);
		end_batch(s);
		return;
	}
	if (a->status != 0)
		(void)snprintf(why, sizeof(why),
		    "OTLP_ENDPOINT answered with status %u", a->status);
	else
		(void)snprintf(
		    why, sizeof(why), "OTLP_ENDPOINT: %.100s", a->why);
	if (is_passing(a->status)) {
		try_again(s, a->retry_after_s, why);
		return;
	}
	drop(s, s->batch_count, why);
	end_batch(s);
}

void
spans_pump(struct spans *s)
{
	if (s->letter != 0 || s->rests || postbox_room(s->parts.postbox) == 0)
		return;
	if (s->batch_count == 0) {
		/* Some more may come together. */
		if (s->count == 0 ||
		    (s->bytes < BATCH_MAX && timer_is_set(s->timer)))
			return;
		make_batch(s);
	}
	s->letter = postbox_put_spans(s->parts.postbox,
	    &(struct span){buf_data(&s->batch), buf_len(&s->batch)}, posted_cb,
	    s);
}

static void
timer_cb(void *arg)
{
	struct spans *s = arg;

	s->rests = false;
	spans_pump(s);
}

/* ---- life */

struct spans *
spans_new(const struct spans_parts *parts)
{
	struct spans *s = xcalloc(1, sizeof(*s));

	s->parts = *parts;
	s->head = span_text_head(parts->version, parts->instance);
	s->timer = timer_new(parts->base, timer_cb, s);
	TAILQ_INIT(&s->queue);
	buf_init(&s->batch, 0);
	bus_join(parts->bus, &s->member, on_bus, s);
	return s;
}

void
spans_free(struct spans *s)
{
	struct span_item *item;

	if (s == NULL)
		return;
	bus_leave(s->parts.bus, &s->member);
	postbox_forget(s->parts.postbox, s->letter);
	timer_free(s->timer);
	while ((item = TAILQ_FIRST(&s->queue)) != NULL) {
		TAILQ_REMOVE(&s->queue, item, link);
		free(item);
	}
	buf_clear(&s->batch);
	free(s->head);
	free(s);
}

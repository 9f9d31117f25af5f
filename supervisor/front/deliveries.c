/*
 * A delivery is a webhook that is enabled, with its reader of events:
 *
 *	ASKED	the reader will tell the next event (on_page)
 *	READY	in the list of those that may be sent
 *	SENT	in the postbox (posted_cb)
 *	RESTS	until its timer: the event was not taken
 *
 * Of an event there is the text of its body in memory while it is READY, SENT
 * or RESTS, so that it is the same each time.
 */
#include "supervisor/front/deliveries.h"

#include <inttypes.h>
#include <stdio.h>

#include <event2/buffer.h>
#include <jansson.h>

#include "common/clock.h"
#include "common/conf.h"
#include "common/js.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/weburl.h"
#include "common/xmalloc.h"
#include "supervisor/core/event_feed.h"
#include "supervisor/core/tenants.h"
#include "supervisor/core/webhooks.h"
#include "supervisor/front/event_view.h"

#define ID_MAX 64
#define AGAIN_MS 1000 /* after the database could not be read */
#define GONE_STATUS 410

enum delivery_state {
	DELIVERY_ASKED,
	DELIVERY_READY,
	DELIVERY_SENT,
	DELIVERY_RESTS
};

struct delivery {
	struct deliveries *all;
	struct webhook *w;
	struct event_reader *reader;
	struct timer *timer;
	enum delivery_state state;
	uint64_t letter;
	uint64_t seq; /* of the event */
	enum event_kind kind;
	int64_t at_ms;
	char id[ID_MAX];
	char *body; /* NULL: none yet */
	char host[WEBURL_HOST_MAX + 1];
	TAILQ_ENTRY(delivery) link;  /* of all */
	TAILQ_ENTRY(delivery) ready; /* of those that are READY */
};
TAILQ_HEAD(delivery_list, delivery);

struct deliveries {
	struct deliveries_parts parts;
	struct delivery_list list;
	struct delivery_list ready;
	struct deliveries_counts counts;
};

/* ---- an event's text */

static char *
make_body(const char *kind, int64_t at_ms, struct evbuffer *data)
{
	char time[CLOCK_TEXT_MAX];
	size_t n = evbuffer_get_length(data);
	const unsigned char *text = evbuffer_pullup(data, -1);

	clock_format(at_ms, time);
	return xasprintf("{\"type\":\"%s\",\"timestamp\":\"%s\",\"data\":%.*s}",
	    kind, time, (int)n, n == 0 ? "" : (const char *)text);
}

static void
take_event(struct delivery *d, const struct store_event *row)
{
	struct evbuffer *data = evbuffer_new();

	event_view_json(data, row);
	free(d->body);
	d->body = make_body(event_kind_word(row->kind), row->at_ms, data);
	evbuffer_free(data);
	d->seq = row->seq;
	d->kind = row->kind;
	d->at_ms = row->at_ms;
	(void)snprintf(d->id, sizeof(d->id),
	    "evt_%" PRIu64 "_%" PRIu64 "_%" PRId64, row->tenant, row->seq,
	    row->at_ms);
}

/* ---- sending */

static uint64_t
keep_ms(const struct deliveries *all)
{
	return (uint64_t)conf_int(all->parts.conf, CONF_WEBHOOK_KEEP_SECONDS) *
	    1000;
}

static void
ask_next(struct delivery *d)
{
	free(d->body);
	d->body = NULL;
	d->state = DELIVERY_ASKED;
	event_reader_next(d->reader);
}

static void
be_ready(struct delivery *d)
{
	d->state = DELIVERY_READY;
	TAILQ_INSERT_TAIL(&d->all->ready, d, ready);
	deliveries_pump(d->all);
}

static void
rest(struct delivery *d, uint64_t ms)
{
	d->state = DELIVERY_RESTS;
	timer_set_ms(d->timer, ms);
}

/* That an event which says so is lost as well is not told: it would be for
 * ever. */
static void
tell_lost(const struct delivery *d)
{
	if (d->kind != EVENT_WEBHOOK_LOST)
		webhook_tell_lost(d->w);
}

static void
fail(struct delivery *d, uint32_t after_s, const char *why)
{
	uint64_t delay_ms;

	d->all->counts.failed++;
	if (webhook_failed(d->w,
		&(struct webhook_failure){d->seq, d->at_ms, after_s, why},
		keep_ms(d->all), &delay_ms) == WEBHOOK_LOST) {
		d->all->counts.lost++;
		log_warn("an event is lost to a webhook of tenant %" PRIu64
			 ": %s",
		    d->w->row.tenant, why);
		tell_lost(d);
		free(d->body);
		d->body = NULL;
	}
	rest(d, delay_ms);
}

static void
posted_cb(const struct postbox_answer *a, void *arg)
{
	struct delivery *d = arg;
	char why[WEBHOOK_WHY_MAX + 1];

	d->letter = 0;
	if (a->is_cut) {
		be_ready(d);
		return;
	}
	if (a->status >= 200 && a->status < 300) {
		d->all->counts.taken++;
		webhook_taken(d->w, d->seq, d->at_ms);
		ask_next(d);
		return;
	}
	(void)snprintf(why, sizeof(why), "%s", a->why);
	if (a->status != 0)
		(void)snprintf(
		    why, sizeof(why), "it answered with status %u", a->status);
	if (a->status == GONE_STATUS) {
		d->all->counts.failed++;
		webhook_disable(d->w, why); /* d is gone */
		return;
	}
	fail(d, a->retry_after_s, why);
}

struct mail {
	const char *id;
	const char *body;
	postbox_cb done;
	void *arg;
};

static int
put(struct deliveries *all, const struct webhook *w, const struct mail *m,
    uint64_t *letter, struct err *e)
{
	const struct span text = {(const uint8_t *)m->body, strlen(m->body)};
	int64_t now_s = clock_wall_ms() / 1000;
	char signature[WEBHOOK_SIGNATURE_MAX];

	if (webhook_sign(w, m->id, now_s, &text, signature, e) != 0)
		return e->code;
	*letter = postbox_put_hook(all->parts.postbox,
	    &(struct postbox_hook){.url = w->row.url,
		.id = m->id,
		.timestamp_s = now_s,
		.signature = signature,
		.body = text},
	    m->done, m->arg);
	return 0;
}

static void
send_now(struct delivery *d)
{
	const struct mail m = {d->id, d->body, posted_cb, d};
	struct err e;

	TAILQ_REMOVE(&d->all->ready, d, ready);
	d->state = DELIVERY_SENT;
	if (put(d->all, d->w, &m, &d->letter, &e) != 0)
		fail(d, 0, e.msg);
}

/* How many of those that are sent are to that host, or of that tenant. */
static bool
is_crowded(const struct delivery *d)
{
	unsigned int host = 0, tenant = 0;
	const struct delivery *other;

	TAILQ_FOREACH (other, &d->all->list, link) {
		if (other->state != DELIVERY_SENT)
			continue;
		host += strcmp(other->host, d->host) == 0;
		tenant += other->w->row.tenant == d->w->row.tenant;
	}
	return host >= DELIVERIES_PER_HOST || tenant >= DELIVERIES_PER_TENANT;
}

void
deliveries_pump(struct deliveries *all)
{
	struct delivery *d, *next;

	for (d = TAILQ_FIRST(&all->ready);
	     d != NULL && postbox_has_room(all->parts.postbox); d = next) {
		next = TAILQ_NEXT(d, ready);
		if (!is_crowded(d))
			send_now(d);
	}
}

static void
timer_cb(void *arg)
{
	struct delivery *d = arg;

	if (d->body == NULL)
		ask_next(d);
	else
		be_ready(d);
}

/* ---- events */

static size_t
on_page(struct event_reader *r, const struct event_page *page, void *arg)
{
	struct delivery *d = arg;
	uint64_t rest_ms, first;

	(void)r;
	if (page->gap.from != 0) {
		first = page->gap.to + 1;
		webhook_skip(d->w, page->gap.is_restored ? 0 : first - 1,
		    page->gap.is_restored ? 0 : first - page->gap.from);
		if (!page->gap.is_restored)
			webhook_tell_lost(d->w);
	}
	if (page->n == 0) {
		rest(d, 0); /* asks again: not inside this */
		return 0;
	}
	take_event(d, page->rows[0]);
	if (webhook_is_past(d->w, d->at_ms, keep_ms(d->all), clock_wall_ms())) {
		d->all->counts.lost++;
		webhook_skip(d->w, d->seq, 1);
		tell_lost(d);
		free(d->body);
		d->body = NULL;
		rest(d, 0);
		return 1;
	}
	rest_ms = webhook_rest_ms(&d->w->row, clock_wall_ms());
	if (rest_ms > 0)
		rest(d, rest_ms);
	else
		be_ready(d);
	return 1;
}

static void
on_failed(struct event_reader *r, const struct err *why, void *arg)
{
	static struct log_limit limit;

	(void)r;
	log_warn_limited(&limit, "events for webhooks: %s", why->msg);
	rest(arg, AGAIN_MS);
}

static const struct event_reader_ops reader_ops = {
    .on_page = on_page, .on_failed = on_failed};

/* ---- webhooks */

static struct delivery *
find(const struct deliveries *all, const struct webhook *w)
{
	struct delivery *d;

	TAILQ_FOREACH (d, &all->list, link)
		if (d->w == w)
			return d;
	return NULL;
}

static void
delivery_end(struct delivery *d)
{
	if (d->state == DELIVERY_READY)
		TAILQ_REMOVE(&d->all->ready, d, ready);
	TAILQ_REMOVE(&d->all->list, d, link);
	postbox_forget(d->all->parts.postbox, d->letter);
	event_reader_close(d->reader);
	timer_free(d->timer);
	free(d->body);
	free(d);
}

static void
delivery_begin(struct deliveries *all, struct webhook *w)
{
	const struct event_place place = {w->row.seq, w->row.seq_ms};
	struct store_events_filter filter = {0};
	struct delivery *d = xcalloc(1, sizeof(*d));
	struct weburl url;
	struct err e;

	d->all = all;
	d->w = w;
	d->timer = timer_new(all->parts.base, timer_cb, d);
	TAILQ_INSERT_TAIL(&all->list, d, link);
	if (weburl_parse(w->row.url, &url, &e) == 0)
		memcpy(d->host, url.host, sizeof(d->host));
	if (webhook_parse_kinds(w->row.kinds, &filter.kinds, &e) != 0)
		log_warn("a webhook of tenant %" PRIu64 " is told of all: %s",
		    w->row.tenant, e.msg);
	d->reader = event_reader_open(
	    all->parts.feeds, w->row.tenant, &place, &filter, &reader_ops, d);
	ask_next(d);
}

static void
on_changed(struct webhook *w, void *arg)
{
	struct deliveries *all = arg;
	struct delivery *d = find(all, w);

	if (d != NULL)
		delivery_end(d);
	if (w->row.enabled)
		delivery_begin(all, w);
}

static void
on_gone(struct webhook *w, void *arg)
{
	struct delivery *d = find(arg, w);

	if (d != NULL)
		delivery_end(d);
}

static const struct webhooks_ops hooks_ops = {on_changed, on_gone};

/* ---- a test */

int
deliveries_test(struct deliveries *all, const struct webhook *w,
    postbox_cb done, void *arg, struct err *e)
{
	int64_t now_ms = clock_wall_ms();
	char id[ID_MAX], time[CLOCK_TEXT_MAX], of[UUID_TEXT_LEN + 1];
	AUTO(auto_free) char *body = NULL;
	struct uuid uuid;
	uint64_t letter;

	if (!postbox_has_room(all->parts.postbox))
		return err_set(e, ERR_LIMIT,
		    "too many webhooks are being sent, or what sends them is "
		    "just started again: try again in a second");
	uuid_timed(&uuid);
	uuid_format(&uuid, of);
	(void)snprintf(id, sizeof(id), "test_%s", of);
	uuid_format(&w->row.uuid, of);
	clock_format(now_ms, time);
	body = xasprintf("{\"type\":\"webhook.test\",\"timestamp\":\"%s\","
			 "\"data\":{\"webhook_id\":\"%s\"}}",
	    time, of);
	return put(all, w, &(struct mail){id, body, done, arg}, &letter, e);
}

/* ---- life */

struct deliveries_counts
deliveries_counts(const struct deliveries *all)
{
	struct deliveries_counts counts = all->counts;
	const struct delivery *d;

	TAILQ_FOREACH (d, &all->list, link)
		counts.waiting += d->body != NULL;
	return counts;
}

struct deliveries *
deliveries_new(const struct deliveries_parts *parts)
{
	struct deliveries *all = xcalloc(1, sizeof(*all));

	all->parts = *parts;
	TAILQ_INIT(&all->list);
	TAILQ_INIT(&all->ready);
	webhooks_on_change(parts->webhooks, &hooks_ops, all);
	return all;
}

void
deliveries_free(struct deliveries *all)
{
	struct delivery *d;

	if (all == NULL)
		return;
	webhooks_on_change(all->parts.webhooks, NULL, NULL);
	while ((d = TAILQ_FIRST(&all->list)) != NULL)
		delivery_end(d);
	free(all);
}

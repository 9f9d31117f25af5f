/*
 * A delivery is a webhook that is enabled, with its reader of events:
 *
 *	ASKED	the reader will tell the next event (on_page)
 *	READY	its mailing waits for its turn (hook_turns.h)
 *	SENT	its mailing is in the postbox (mailed_cb)
 *	RESTS	until its timer: the event was not taken
 *
 * Of an event there is the text of its body in memory while it is READY, SENT
 * or RESTS, so that it is the same each time.
 *
 * A mailing is one request: it has a place among those of its tenant and host
 * until it is answered, whatever becomes of its webhook meanwhile.  Else who
 * changes or deletes a webhook would have one more place each time.
 */
#include "supervisor/front/deliveries.h"

#include <inttypes.h>
#include <stdio.h>

#include <event2/buffer.h>

#include "common/clock.h"
#include "common/conf.h"
#include "common/hashmap.h"
#include "common/log.h"
#include "common/msg/msg_gen.h"
#include "common/timer.h"
#include "common/weburl.h"
#include "common/xmalloc.h"
#include "supervisor/core/event_feed.h"
#include "supervisor/core/webhooks.h"
#include "supervisor/front/event_streams.h"
#include "supervisor/front/hook_turns.h"
#include "supervisor/http/http.h"

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
	struct hash_entry by_webhook;
	struct event_reader *reader;
	struct timer *timer;
	enum delivery_state state;
	struct mailing *mailing; /* while READY or SENT */
	uint64_t seq;            /* of the event */
	enum event_kind kind;
	int64_t at_ms;
	char id[ID_MAX];
	char *body; /* NULL: none yet */
	char host[WEBURL_HOST_MAX + 1];
	TAILQ_ENTRY(delivery) link; /* of all */
};
TAILQ_HEAD(delivery_list, delivery);

struct mailing {
	struct deliveries *all;
	struct hook_turn turn;
	uint64_t letter;    /* 0: not in the postbox */
	struct delivery *d; /* NULL: it is gone, or this is a test */
	postbox_cb done;    /* of a test */
	void *arg;
	TAILQ_ENTRY(mailing) link; /* of all */
};
TAILQ_HEAD(mailing_list, mailing);

struct deliveries {
	struct deliveries_parts parts;
	struct delivery_list list;
	struct hashmap by_webhook;
	struct mailing_list mailings;
	struct hook_turns *turns;
	struct timer *pump;
	struct deliveries_counts counts;
};

/* ---- an event's text */

static void
forget_body(struct delivery *d)
{
	free(d->body);
	d->body = NULL;
}

static void
take_event(struct delivery *d, const struct store_event *row)
{
	struct evbuffer *data = http_buffer_new();
	char time[CLOCK_TEXT_MAX];

	event_view_json(data, row);
	clock_format(row->at_ms, time);
	free(d->body);
	d->body = xasprintf(
	    "{\"type\":\"%s\",\"timestamp\":\"%s\",\"data\":%.*s}",
	    event_kind_word(row->kind), time, (int)evbuffer_get_length(data),
	    (const char *)evbuffer_pullup(data, -1));
	evbuffer_free(data);
	d->seq = row->seq;
	d->kind = row->kind;
	d->at_ms = row->at_ms;
	(void)snprintf(d->id, sizeof(d->id),
	    "evt_%" PRIu64 "_%" PRIu64 "_%" PRId64, row->tenant, row->seq,
	    row->at_ms);
}

/* ---- mailings */

static void
pump_later(struct deliveries *all)
{
	if (!timer_is_set(all->pump))
		timer_set_ms(all->pump, 0);
}

static struct mailing *
mailing_new(struct deliveries *all, struct delivery *d)
{
	struct mailing *m = xcalloc(1, sizeof(*m));

	m->all = all;
	m->d = d;
	TAILQ_INSERT_TAIL(&all->mailings, m, link);
	return m;
}

static void
mailing_free(struct mailing *m)
{
	struct deliveries *all = m->all;

	hook_turns_leave(all->turns, &m->turn);
	postbox_forget(all->parts.postbox, m->letter);
	TAILQ_REMOVE(&all->mailings, m, link);
	free(m);
	pump_later(all);
}

/* Its delivery goes on without it, or ends; what is sent is still answered. */
static void
mailing_release(struct mailing *m)
{
	if (m == NULL)
		return;
	if (m->d != NULL)
		m->d->mailing = NULL;
	m->d = NULL;
	if (m->letter == 0)
		mailing_free(m);
}

static void posted(struct delivery *d, const struct postbox_answer *a);

static void
mailed_cb(const struct postbox_answer *a, void *arg)
{
	struct mailing *m = arg;
	struct delivery *d = m->d;
	postbox_cb done = m->done;
	void *done_arg = m->arg;

	m->letter = 0;
	if (d != NULL)
		d->mailing = NULL;
	mailing_free(m);
	if (d != NULL)
		posted(d, a);
	if (done != NULL)
		done(a, done_arg);
}

static int
put(struct mailing *m, const struct webhook *w, const char *id,
    const char *body, struct err *e)
{
	const struct span text = {(const uint8_t *)body, strlen(body)};
	int64_t now_s = clock_wall_ms() / 1000;
	char signature[WEBHOOK_SIGNATURE_MAX];

	if (webhook_sign(w, id, now_s, &text, signature, e) != 0)
		return e->code;
	m->letter = postbox_put_hook(m->all->parts.postbox,
	    &(struct msg_post_hook){.tenant = w->row.tenant,
		.url = w->row.url,
		.hook_id = id,
		.timestamp_s = now_s,
		.signature = signature,
		.body = text},
	    mailed_cb, m);
	return 0;
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
	forget_body(d);
	d->state = DELIVERY_ASKED;
	event_reader_next(d->reader);
}

/* Many may be so in a turn: the next turn sends. */
static void
be_ready(struct delivery *d)
{
	struct deliveries *all = d->all;

	d->state = DELIVERY_READY;
	d->mailing = mailing_new(all, d);
	hook_turns_wait(
	    all->turns, &d->mailing->turn, d->w->row.tenant, d->host);
	pump_later(all);
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
		forget_body(d);
	}
	rest(d, delay_ms);
}

/* One that was cut counts, too: what ends the courier each time must not be
 * sent again at once, and for ever. */
static void
posted(struct delivery *d, const struct postbox_answer *a)
{
	char why[WEBHOOK_WHY_MAX + 1];

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

static void
send_now(struct delivery *d)
{
	struct err e;

	d->state = DELIVERY_SENT;
	if (put(d->mailing, d->w, d->id, d->body, &e) == 0)
		return;
	mailing_release(d->mailing);
	fail(d, 0, e.msg);
}

/* What cannot be signed takes no place, so the turn has a bound of its own. */
void
deliveries_pump(struct deliveries *all)
{
	struct hook_turn *t;

	for (unsigned int i = 0; i < POSTBOX_MAX; i++) {
		t = hook_turns_next(
		    all->turns, postbox_room(all->parts.postbox));
		if (t == NULL)
			return;
		send_now(CONTAINER_OF(t, struct mailing, turn)->d);
	}
	pump_later(all);
}

static void
pump_cb(void *arg)
{
	deliveries_pump(arg);
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
		forget_body(d);
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

static uint64_t
key_of(const struct webhook *w)
{
	return (uint64_t)(uintptr_t)w;
}

static struct delivery *
find(const struct deliveries *all, const struct webhook *w)
{
	return HASH_OBJECT(hashmap_get_u64(&all->by_webhook, key_of(w)),
	    struct delivery, by_webhook);
}

static void
delivery_end(struct delivery *d)
{
	mailing_release(d->mailing);
	TAILQ_REMOVE(&d->all->list, d, link);
	hashmap_del(&d->all->by_webhook, &d->by_webhook);
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
	hashmap_put(
	    &all->by_webhook, &d->by_webhook, hashmap_key_u64(key_of(w)));
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

/* It has a place as any other, or none: NULL. */
static struct mailing *
begin_test(struct deliveries *all, const struct webhook *w, struct err *e)
{
	struct mailing *m = mailing_new(all, NULL);
	struct weburl url = {.host = ""};
	struct err own;

	(void)!weburl_parse(w->row.url, &url, &own);
	if (hook_turns_take(all->turns, &m->turn, w->row.tenant, url.host,
		postbox_room(all->parts.postbox)))
		return m;
	mailing_free(m);
	(void)err_set(e, ERR_LIMIT,
	    "as many requests as may be are under way to this host (%d) or for "
	    "this tenant (%d), or what sends them is just started again: try "
	    "again in some seconds",
	    HOOK_TURNS_PER_HOST, HOOK_TURNS_PER_TENANT);
	return NULL;
}

int
deliveries_test(struct deliveries *all, const struct webhook *w,
    postbox_cb done, void *arg, struct err *e)
{
	struct mailing *m = begin_test(all, w, e);
	int64_t now_ms = clock_wall_ms();
	char id[ID_MAX], time[CLOCK_TEXT_MAX], of[UUID_TEXT_LEN + 1];
	AUTO(auto_free) char *body = NULL;
	struct uuid uuid;

	if (m == NULL)
		return e->code;
	uuid_timed(&uuid);
	uuid_format(&uuid, of);
	(void)snprintf(id, sizeof(id), "test_%s", of);
	uuid_format(&w->row.uuid, of);
	clock_format(now_ms, time);
	body = xasprintf("{\"type\":\"webhook.test\",\"timestamp\":\"%s\","
			 "\"data\":{\"webhook_id\":\"%s\"}}",
	    time, of);
	if (put(m, w, id, body, e) != 0) {
		mailing_release(m);
		return e->code;
	}
	m->done = done;
	m->arg = arg;
	return 0;
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
	TAILQ_INIT(&all->mailings);
	all->turns = hook_turns_new();
	all->pump = timer_new(parts->base, pump_cb, all);
	webhooks_on_change(parts->webhooks, &hooks_ops, all);
	return all;
}

void
deliveries_free(struct deliveries *all)
{
	struct delivery *d;
	struct mailing *m;

	if (all == NULL)
		return;
	webhooks_on_change(all->parts.webhooks, NULL, NULL);
	while ((d = TAILQ_FIRST(&all->list)) != NULL)
		delivery_end(d);
	while ((m = TAILQ_FIRST(&all->mailings)) != NULL)
		mailing_free(m);
	hashmap_clear(&all->by_webhook);
	hook_turns_free(all->turns);
	timer_free(all->pump);
	free(all);
}

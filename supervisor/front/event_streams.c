/*
 * event_streams.c - GET /api/v1/events
 *
 * A stream reads at the pace of its client: the next page is asked for only
 * when fewer than HTTP_STREAM_HIGH bytes wait for it, and of a page as much is
 * taken as makes up the difference.  What waits for a client is bounded however
 * much happens; its place in the database is all that is kept for it.
 *
 * One timer beats for all streams, a few at a time.  A beat says how far the
 * stream is, too, when events that the client did not ask for were passed over.
 *
 * With follow=false it is one page, as JSON.
 */
#include "supervisor/front/event_streams.h"

#include <event2/buffer.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "supervisor/core/event_feed.h"
#include "supervisor/core/quota_use.h"
#include "supervisor/core/tenants.h"
#include "supervisor/front/event_view.h"
#include "supervisor/front/query.h"
#include "supervisor/front/refusal.h"

#define BEATS_IN_A_TURN 64
#define RETRY_LINE "retry: 1000\n\n" /* ms, before a client comes again */
#define KINDS_MAX 1024               /* bytes */
#define LIMIT_DEFAULT 100
#define LIMIT_MAX STORE_EVENTS_PAGE

struct event_stream {
	struct event_streams *all;
	struct http_exchange *x;
	struct event_reader *reader;
	struct quota_use *use; /* NULL: not counted */
	struct event_place told;
	uint64_t beat_ms;
	bool is_asked; /* a page is on its way */
	TAILQ_ENTRY(event_stream) link;
};
TAILQ_HEAD(event_stream_list, event_stream);

struct event_streams {
	struct front *front;
	struct event_stream_list list; /* the next to beat first */
	struct timer *beat;
};

/* ---- writing */

static void
send_buffer(struct event_stream *s, struct evbuffer *out)
{
	if (evbuffer_get_length(out) > 0)
		http_stream_write(s->x, out);
	evbuffer_free(out);
}

static void
write_text(struct event_stream *s, const char *text)
{
	struct evbuffer *out = http_buffer_new();

	(void)evbuffer_add(out, text, strlen(text));
	send_buffer(s, out);
}

static void
write_place(struct event_stream *s)
{
	struct evbuffer *out = http_buffer_new();

	s->told = event_reader_at(s->reader);
	event_view_sse_place(out, &s->told);
	send_buffer(s, out);
}

/* ---- life of a stream */

static void
stream_free(struct event_stream *s)
{
	event_reader_close(s->reader);
	TAILQ_REMOVE(&s->all->list, s, link);
	if (s->use != NULL)
		quota_use_drop_stream(s->use);
	free(s);
}

static void
stream_end(struct event_stream *s)
{
	struct http_exchange *x = s->x;

	stream_free(s);
	http_stream_end(x);
}

static void
stream_on_gone(void *arg)
{
	struct event_stream *s = arg;
	struct http_exchange *x = s->x;

	stream_free(s);
	http_drop(x);
}

static void
stream_pump(struct event_stream *s)
{
	if (s->is_asked || http_stream_appetite(s->x) == 0)
		return;
	s->is_asked = true;
	event_reader_next(s->reader);
}

static void
stream_on_writable(void *arg)
{
	stream_pump(arg);
}

/* ---- events */

static size_t
stream_on_page(struct event_reader *r, const struct event_page *page, void *arg)
{
	struct evbuffer *out = http_buffer_new();
	struct event_stream *s = arg;
	size_t room = http_stream_appetite(s->x), n = 0;

	(void)r;
	s->is_asked = false;
	if (page->gap.from != 0)
		event_view_sse_gap(out, &page->gap);
	while (n < page->n && (n == 0 || evbuffer_get_length(out) < room))
		event_view_sse(out, page->rows[n++]);
	if (n > 0)
		s->told = (struct event_place){
		    page->rows[n - 1]->seq, page->rows[n - 1]->at_ms};
	send_buffer(s, out);
	stream_pump(s);
	return n;
}

/* It began behind the newest there was: a client that loses the connection
 * before anything happens goes on from there. */
static void
stream_on_place(struct event_reader *r, void *arg)
{
	(void)r;
	write_place(arg);
}

/* It comes again, and goes on where it was. */
static void
stream_on_failed(struct event_reader *r, const struct err *why, void *arg)
{
	static struct log_limit limit;

	(void)r;
	log_warn_limited(&limit, "an event stream ends: %s", why->msg);
	stream_end(arg);
}

static const struct event_reader_ops stream_ops = {
    stream_on_page, stream_on_place, stream_on_failed};

/* ---- beats */

static void
beat_next(struct event_streams *all)
{
	const struct event_stream *s = TAILQ_FIRST(&all->list);
	uint64_t now = clock_mono_ms();

	if (s != NULL && !timer_is_set(all->beat))
		timer_set_ms(
		    all->beat, s->beat_ms > now ? s->beat_ms - now : 0);
}

static void
beat_later(struct event_stream *s)
{
	s->beat_ms = clock_mono_ms() + s->all->front->heartbeat_ms;
	TAILQ_REMOVE(&s->all->list, s, link);
	TAILQ_INSERT_TAIL(&s->all->list, s, link);
}

/* Bytes that wait prove as much, and a beat must not pile up. */
static void
beat(struct event_stream *s)
{
	const struct event_place at = event_reader_at(s->reader);

	beat_later(s);
	if (http_stream_pending(s->x) > 0)
		return;
	if (at.seq != EVENT_PLACE_NOW && at.seq > s->told.seq && !s->is_asked)
		write_place(s);
	else
		write_text(s, ": \n\n");
}

static void
beat_cb(void *arg)
{
	struct event_streams *all = arg;
	uint64_t now = clock_mono_ms();

	for (size_t i = 0; i < BEATS_IN_A_TURN; i++) {
		struct event_stream *s = TAILQ_FIRST(&all->list);

		if (s == NULL || s->beat_ms > now)
			break;
		beat(s);
	}
	beat_next(all);
}

/* ---- what is asked for */

enum event_param {
	PARAM_AFTER,
	PARAM_FOLLOW,
	PARAM_IDENTIFIER,
	PARAM_KIND,
	PARAM_LIMIT,
	PARAM_RUN,
	PARAM_TENANT,
	PARAM_COUNT
};

/* One kind, or all that begin with a word: "run" is "run.created", ... */
static uint64_t
kinds_of(const char *word, size_t n)
{
	uint64_t kinds = 0;

	for (unsigned int i = 0; i < EVENT_KIND_COUNT; i++) {
		const char *name = event_kind_word(i);

		if (strncmp(name, word, n) == 0 &&
		    (name[n] == '\0' || name[n] == '.'))
			kinds |= UINT64_C(1) << i;
	}
	return kinds;
}

/* 0: one of them is no kind. */
static uint64_t
parse_kinds(const char *text)
{
	uint64_t kinds = 0, more;

	for (;;) {
		size_t n = strcspn(text, ",");

		more = n == 0 ? 0 : kinds_of(text, n);
		if (more == 0)
			return 0;
		kinds |= more;
		if (text[n] == '\0')
			return kinds;
		text += n + 1;
	}
}

static bool
is_kinds(const char *text)
{
	return parse_kinds(text) != 0;
}

static bool
is_place(const char *text)
{
	struct event_place at;

	return event_id_parse(text, &at) == 0;
}

static bool
is_name(const char *text)
{
	return strspn(text,
		   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		   "0123456789._-") == strlen(text);
}

static const struct query_param params[PARAM_COUNT] = {
    [PARAM_AFTER] = {"after", QUERY_TEXT, .max = EVENT_ID_TEXT_MAX,
	.fits = is_place, .want = "the id of an event, or 0"},
    [PARAM_FOLLOW] = {.name = "follow", .kind = QUERY_BOOL},
    [PARAM_IDENTIFIER] = {"identifier", QUERY_TEXT, .max = 36, .fits = is_name,
	.want = "the identifier of a sandbox"},
    [PARAM_KIND] = {"kind", QUERY_TEXT, .max = KINDS_MAX, .fits = is_kinds,
	.want = "kinds of events, such as run.ended,sandbox.lost, or their "
		"first words"},
    [PARAM_LIMIT] = {"limit", QUERY_NUMBER, .min = 1, .max = LIMIT_MAX},
    [PARAM_RUN] = {.name = "run", .kind = QUERY_UUID},
    [PARAM_TENANT] = {"tenant", QUERY_TEXT, .max = PRINCIPAL_TENANT_MAX,
	.fits = is_name, .want = "the name of a tenant"},
};
const struct query_table event_streams_query = {params, PARAM_COUNT};

struct event_wish {
	uint64_t tenant;
	struct event_place after;
	struct store_events_filter filter; /* points into the query */
	bool has_after, is_page;
	size_t limit;
};

/* Where to go on: the header wins, as a client that comes again by itself says
 * the query of its first time, too. */
static int
read_place(struct http_exchange *x, const struct query *q, struct event_wish *w,
    struct err *e)
{
	const char *text = http_header(x, HTTP_H_LAST_EVENT_ID);
	const char *after = q->values[PARAM_AFTER].text;

	w->after = (struct event_place){.seq = EVENT_PLACE_NOW};
	if (text == NULL || text[0] == '\0')
		text = after;
	w->has_after = text != NULL;
	if (text != NULL && event_id_parse(text, &w->after) != 0)
		return err_set(e, ERR_INVAL,
		    "Last-Event-ID is no id of an event: send the one that "
		    "came last, or none");
	return 0;
}

/* Whose: an administrator sees the server's, or those of a tenant by name. */
static int
read_tenant(const struct front *f, struct http_exchange *x,
    const struct query *q, struct event_wish *w, struct err *e)
{
	const struct principal *who = http_principal(x);
	const char *name = q->values[PARAM_TENANT].text;
	const struct tenant *n;

	if (who->role != PRINCIPAL_ADMIN) {
		w->tenant = who->tenant.n;
		return name == NULL ? 0 :
				      err_set(e, ERR_POLICY,
					  "tenant: only an administrator may "
					  "name one: leave it out");
	}
	w->tenant = STORE_EVENTS_OF_SERVER;
	if (name == NULL)
		return 0;
	n = tenants_find_name(core_tenants(f->core), name);
	if (n == NULL)
		return err_set(e, ERR_NOTFOUND, "no such tenant");
	w->tenant = n->row.id;
	return 0;
}

static int
read_wish(const struct front *f, struct http_exchange *x, const struct query *q,
    struct event_wish *w, struct err *e)
{
	const struct query_value *v = q->values;

	w->filter = (struct store_events_filter){
	    .kinds =
		v[PARAM_KIND].is_given ? parse_kinds(v[PARAM_KIND].text) : 0,
	    .identifier = v[PARAM_IDENTIFIER].text,
	    .run = v[PARAM_RUN].is_given ? &v[PARAM_RUN].uuid : NULL};
	w->is_page = v[PARAM_FOLLOW].is_given && !v[PARAM_FOLLOW].is_true;
	w->limit = v[PARAM_LIMIT].is_given ? (size_t)v[PARAM_LIMIT].number :
					     LIMIT_DEFAULT;
	if (v[PARAM_LIMIT].is_given && !w->is_page)
		return err_set(e, ERR_INVAL,
		    "limit: a stream has none; say follow=false for a page");
	if (read_place(x, q, w, e) != 0)
		return e->code;
	return read_tenant(f, x, q, w, e);
}

/* ---- a page */

static void
page_cb(int rc, const struct store_events_page *page, const struct err *why,
    void *arg)
{
	struct http_exchange *x = arg;
	char next[EVENT_ID_TEXT_MAX];
	struct event_place at;
	struct evbuffer *out;

	if (rc != 0) {
		http_error_from(x, rc, why);
		return;
	}
	at = (struct event_place){page->scanned, page->scanned_ms};
	out = http_buffer_new();
	(void)evbuffer_add_printf(out, "{\"events\":[");
	for (size_t i = 0; i < page->n; i++) {
		if (i > 0)
			(void)evbuffer_add(out, ",", 1);
		event_view_json(out, &page->rows[i]);
	}
	event_id_format(&at, next);
	(void)evbuffer_add_printf(out,
	    "],\"next\":\"%s\",\"has_more\":%s,\"oldest\":%llu,"
	    "\"newest\":%llu}",
	    next, page->has_more ? "true" : "false",
	    (unsigned long long)page->oldest, (unsigned long long)page->newest);
	http_add_header(x, "Cache-Control", "no-store");
	http_reply(x, 200, "application/json", evbuffer_pullup(out, -1),
	    evbuffer_get_length(out));
	evbuffer_free(out);
}

static void
answer_page(
    struct front *f, struct http_exchange *x, const struct event_wish *w)
{
	http_hold(x, NULL, NULL);
	(void)store_events_read(core_store(f->core), w->tenant,
	    w->has_after ? w->after.seq : 0, &w->filter, w->limit, page_cb, x);
}

/* ---- a stream */

static void
answer_stream(
    struct front *f, struct http_exchange *x, const struct event_wish *w)
{
	struct event_streams *all = f->event_streams;
	const struct principal *who = http_principal(x);
	struct quota_use *use = who->role == PRINCIPAL_ADMIN ?
	    NULL :
	    quota_use_of(core_quota_uses(f->core), who->tenant);
	struct event_stream *s;
	struct err why;

	if (http_method(x) == HTTP_METHOD_HEAD) {
		http_reply(x, 200, "text/event-stream", "", 0);
		return;
	}
	if (use != NULL && quota_use_add_stream(use, &why) != 0) {
		refusal_send(x, ROUTE_TOP, &why);
		return;
	}
	s = xcalloc(1, sizeof(*s));
	s->all = all;
	s->x = x;
	s->use = use;
	s->told = w->after;
	TAILQ_INSERT_TAIL(&all->list, s, link);
	http_hold(x, stream_on_gone, s);
	http_stream_start(x, stream_on_writable);
	write_text(s, RETRY_LINE);
	beat_later(s);
	beat_next(all);
	s->reader = event_reader_open(core_event_feeds(f->core), w->tenant,
	    &w->after, &w->filter, &stream_ops, s);
	stream_pump(s);
}

void
event_streams_on_request(struct front *f, struct http_exchange *x)
{
	struct event_wish w;
	struct query q;
	struct err e;

	if (!query_read(x, params, PARAM_COUNT, &q))
		return;
	if (read_wish(f, x, &q, &w, &e) != 0)
		http_error_from(x, e.code, &e);
	else if (w.is_page)
		answer_page(f, x, &w);
	else
		answer_stream(f, x, &w);
	query_clear(&q);
}

/* ---- life of all */

struct event_streams *
event_streams_new(struct front *f)
{
	struct event_streams *all = xcalloc(1, sizeof(*all));

	all->front = f;
	TAILQ_INIT(&all->list);
	all->beat = timer_new(f->base, beat_cb, all);
	return all;
}

void
event_streams_free(struct event_streams *all)
{
	if (all == NULL)
		return;
	timer_free(all->beat);
	free(all);
}

void
event_streams_drain(struct event_streams *all)
{
	struct event_stream *s;

	while ((s = TAILQ_FIRST(&all->list)) != NULL)
		stream_end(s);
}

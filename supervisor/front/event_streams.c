/*
 * event_streams.c - GET /api/v1/events
 *
 * The place of a stream in the database is all that is kept for it.  A beat
 * says how far the stream is, too, when events that the client did not ask for
 * were passed over.
 *
 * With follow=false it is one page, as JSON.
 */
#include "supervisor/front/event_streams.h"

#include <inttypes.h>
#include <stdio.h>

#include <event2/buffer.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/core/event_feed.h"
#include "supervisor/core/quota_use.h"
#include "supervisor/core/tenants.h"
#include "supervisor/front/handlers.h"
#include "supervisor/front/sse.h"

#define RETRY_LINE "retry: 1000\n\n" /* ms, before a client comes again */
#define KINDS_MAX 1024               /* bytes */
#define LIMIT_DEFAULT 100
#define DIGITS_MAX 18
#define ID_TEXT_MAX 48
#define LIMIT_MAX STORE_EVENTS_PAGE

/* ---- ids */

/* NUMBER.MILLISECONDS: the number tells it from others of the tenant, the time,
 * whether the database is still the same.  NUMBER alone where the time is not
 * known. */
static void
format_id(const struct event_place *at, char out[ID_TEXT_MAX])
{
	if (at->at_ms > 0)
		(void)snprintf(out, ID_TEXT_MAX, "%" PRIu64 ".%" PRId64,
		    at->seq, at->at_ms);
	else
		(void)snprintf(out, ID_TEXT_MAX, "%" PRIu64, at->seq);
}

static bool
parse_digits(const char *text, size_t n, uint64_t *out)
{
	if (n == 0 || n > DIGITS_MAX || strspn(text, "0123456789") < n)
		return false;
	*out = strtoull(text, NULL, 10);
	return true;
}

/* ERR_INVAL: it cannot be one. */
static int
parse_id(const char *text, struct event_place *at)
{
	size_t n = strspn(text, "0123456789");
	uint64_t seq, at_ms = 0;

	if (!parse_digits(text, n, &seq))
		return ERR_INVAL;
	if (text[n] != '\0' &&
	    (text[n] != '.' ||
		!parse_digits(text + n + 1, strlen(text + n + 1), &at_ms)))
		return ERR_INVAL;
	*at = (struct event_place){seq, (int64_t)at_ms};
	return 0;
}

/* ---- what clients see */

void
event_view_json(struct evbuffer *out, const struct store_event *row)
{
	const struct event_place at = {row->seq, row->at_ms};
	char id[ID_TEXT_MAX], time[CLOCK_TEXT_MAX];
	char run[UUID_TEXT_LEN + 1];

	format_id(&at, id);
	clock_format(row->at_ms, time);
	(void)evbuffer_add_printf(out,
	    "{\"id\":\"%s\",\"seq\":%" PRIu64 ",\"at\":\"%s\",\"kind\":\"%s\"",
	    id, row->seq, time, event_kind_word(row->kind));
	/* Letters, digits, "_" and "-". */
	if (row->identifier[0] != '\0')
		(void)evbuffer_add_printf(
		    out, ",\"identifier\":\"%s\"", row->identifier);
	if (!uuid_is_zero(&row->run)) {
		uuid_format(&row->run, run);
		(void)evbuffer_add_printf(out, ",\"run_id\":\"%s\"", run);
	}
	(void)evbuffer_add_printf(
	    out, ",\"data\":%s}", row->data[0] == '\0' ? "{}" : row->data);
}

static void
add_event(struct evbuffer *out, const struct store_event *row)
{
	const struct event_place at = {row->seq, row->at_ms};
	char id[ID_TEXT_MAX];

	format_id(&at, id);
	sse_add(out, id, event_kind_word(row->kind));
	event_view_json(out, row);
	(void)evbuffer_add_printf(out, SSE_END);
}

/* With the id of the place behind it: who goes on there is not told again. */
static void
add_gap(struct evbuffer *out, const struct event_gap *gap)
{
	uint64_t id = gap->is_restored ? gap->from - 1 : gap->to;

	(void)evbuffer_add_printf(out,
	    "id: %" PRIu64 "\nevent: gap\ndata: {\"from\":%" PRIu64
	    ",\"to\":%" PRIu64 ",\"reason\":\"%s\"}\n\n",
	    id, gap->from, gap->to, gap->is_restored ? "restored" : "trimmed");
}

/* ---- a stream */

struct event_stream {
	struct sse sse;
	struct event_reader *reader;
	struct event_place told;
};

static void
stream_free(struct sse *sse)
{
	struct event_stream *s = CONTAINER_OF(sse, struct event_stream, sse);

	event_reader_close(s->reader);
	free(s);
}

static void
stream_next(struct sse *sse, size_t appetite)
{
	struct event_stream *s = CONTAINER_OF(sse, struct event_stream, sse);

	(void)appetite;
	event_reader_next(s->reader);
}

/* An id alone: the client remembers it and tells nobody. */
static void
write_place(struct event_stream *s)
{
	struct evbuffer *out = http_buffer_new();
	char id[ID_TEXT_MAX];

	s->told = event_reader_at(s->reader);
	format_id(&s->told, id);
	(void)evbuffer_add_printf(out, "id: %s\n\n", id);
	sse_write(&s->sse, out);
}

static bool
stream_beat(struct sse *sse)
{
	struct event_stream *s = CONTAINER_OF(sse, struct event_stream, sse);
	const struct event_place at = event_reader_at(s->reader);

	if (at.seq == EVENT_PLACE_NOW || at.seq <= s->told.seq || sse->is_asked)
		return false;
	write_place(s);
	return true;
}

static const struct sse_ops stream_ops = {
    stream_next, stream_free, stream_beat};

/* ---- events */

/* Of a page as much is taken as the client is to be sent. */
static size_t
stream_on_page(struct event_reader *r, const struct event_page *page, void *arg)
{
	struct evbuffer *out = http_buffer_new();
	struct event_stream *s = arg;
	size_t room = http_stream_appetite(s->sse.x), n = 0;

	(void)r;
	if (page->gap.from != 0)
		add_gap(out, &page->gap);
	while (n < page->n && (n == 0 || evbuffer_get_length(out) < room))
		add_event(out, page->rows[n++]);
	if (n > 0)
		s->told = (struct event_place){
		    page->rows[n - 1]->seq, page->rows[n - 1]->at_ms};
	sse_answer(&s->sse, out);
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
	struct event_stream *s = arg;

	(void)r;
	log_warn_limited(&limit, "an event stream ends: %s", why->msg);
	sse_end(&s->sse);
}

static const struct event_reader_ops reader_ops = {
    stream_on_page, stream_on_place, stream_on_failed};

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

	return parse_id(text, &at) == 0;
}

static bool
is_name(const char *text)
{
	return strspn(text,
		   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		   "0123456789._-") == strlen(text);
}

static const struct query_param params[PARAM_COUNT] = {
    [PARAM_AFTER] = {"after", QUERY_TEXT, .max = ID_TEXT_MAX, .fits = is_place,
	.want = "the id of an event, or 0"},
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
read_place(const struct request *r, struct event_wish *w, struct err *e)
{
	const char *text = http_header(r->x, HTTP_H_LAST_EVENT_ID);

	w->after = (struct event_place){.seq = EVENT_PLACE_NOW};
	if (text == NULL || text[0] == '\0')
		text = r->query.values[PARAM_AFTER].text;
	w->has_after = text != NULL;
	if (text != NULL && parse_id(text, &w->after) != 0)
		return err_set(e, ERR_INVAL,
		    "Last-Event-ID is no id of an event: send the one that "
		    "came last, or none");
	return 0;
}

/* Whose: an administrator sees the server's, or those of a tenant by name. */
static int
read_tenant(const struct request *r, struct event_wish *w, struct err *e)
{
	const struct principal *who = r->who;
	const char *name = r->query.values[PARAM_TENANT].text;
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
	n = tenants_find_name(core_tenants(r->front->core), name);
	if (n == NULL)
		return err_set(e, ERR_NOTFOUND, "no such tenant");
	w->tenant = n->row.id;
	return 0;
}

static int
read_wish(const struct request *r, struct event_wish *w, struct err *e)
{
	const struct query_value *v = r->query.values;

	w->filter = (struct store_events_filter){
	    .kinds =
		v[PARAM_KIND].is_given ? parse_kinds(v[PARAM_KIND].text) : 0,
	    .identifier = v[PARAM_IDENTIFIER].text,
	    .run = v[PARAM_RUN].is_given ? &v[PARAM_RUN].uuid : NULL};
	w->is_page = v[PARAM_FOLLOW].is_given && !v[PARAM_FOLLOW].is_true;
	w->limit = (size_t)query_number(&v[PARAM_LIMIT], LIMIT_DEFAULT);
	if (v[PARAM_LIMIT].is_given && !w->is_page)
		return err_set(e, ERR_INVAL,
		    "limit: a stream has none; say follow=false for a page");
	return read_place(r, w, e) != 0 ? e->code : read_tenant(r, w, e);
}

/* ---- a page */

static void
page_cb(int rc, const struct store_events_page *page, const struct err *why,
    void *arg)
{
	struct http_exchange *x = arg;
	char next[ID_TEXT_MAX];
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
	format_id(&at, next);
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
answer_page(const struct request *r, const struct event_wish *w)
{
	http_hold(r->x, NULL, NULL);
	(void)store_events_read(core_store(r->front->core), w->tenant,
	    w->has_after ? w->after.seq : 0, &w->filter, w->limit, page_cb,
	    r->x);
}

/* ---- a stream */

static void
answer_stream(const struct request *r, const struct event_wish *w)
{
	const struct front *f = r->front;
	struct quota_use *use = r->who->role == PRINCIPAL_ADMIN ?
	    NULL :
	    quota_use_of(core_quota_uses(f->core), r->who->tenant);
	struct event_stream *s;
	struct err why;

	if (http_method(r->x) == HTTP_METHOD_HEAD) {
		http_reply(r->x, 200, "text/event-stream", "", 0);
		return;
	}
	if (use != NULL && quota_use_add_stream(use, &why) != 0) {
		http_error_from(r->x, why.code, &why);
		return;
	}
	s = xcalloc(1, sizeof(*s));
	s->told = w->after;
	sse_open(f->sse, &s->sse, r->x, &stream_ops, use);
	sse_start(&s->sse, RETRY_LINE);
	s->reader = event_reader_open(core_event_feeds(f->core), w->tenant,
	    &w->after, &w->filter, &reader_ops, s);
	sse_pump(&s->sse);
}

void
event_streams_on_request(struct request *r)
{
	struct event_wish w = {0};
	struct err e;

	if (read_wish(r, &w, &e) != 0)
		http_error_from(r->x, e.code, &e);
	else if (w.is_page)
		answer_page(r, &w);
	else
		answer_stream(r, &w);
}

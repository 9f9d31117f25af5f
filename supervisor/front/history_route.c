/*
 * history_route.c - the runs of a tenant in pages, what they come to, and all
 * of them in one answer
 *
 * Lists, statistics and exports have the same filters; each has its own
 * parameters behind them.
 *
 * An export has a page of runs in memory:
 *
 *	asked -> a page -> its text -> sent as its client reads -> asked ...
 *
 * The next page is asked for when the text of the one before has been taken,
 * so a client that does not read costs that text and no more.  The answer
 * begins with the first page: what is wrong with the question is an error, and
 * what goes wrong later breaks the stream, so that no half is taken for whole.
 *
 * CSV is RFC 4180's: CRLF, quotes where they are wanted.  A text that a
 * spreadsheet would take for a formula has a "'" before it there (OWASP, CSV
 * injection); JSON lines have all texts as they are.
 */
#include "supervisor/front/handlers.h"

#include <event2/buffer.h>

#include "common/clock.h"
#include "common/hex.h"
#include "common/js.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/words_gen.h"
#include "common/xmalloc.h"
#include "supervisor/front/scope.h"
#include "supervisor/store/history.h"
#include "supervisor/tools/record.h"
#include "supervisor/tools/view.h"

#define LIMIT_DEFAULT 50
#define EXPORTS_TENANT_MAX 2 /* at a time */
#define EXPORTS_MAX 16       /* of all tenants */
#define PAGE_RUNS 250
#define AGAIN_MS 1000 /* when the history is not available just now */
#define TRIES_MAX 30

/* ---- filters */

enum run_query_param {
	RUN_QUERY_TENANT,
	RUN_QUERY_IDENTIFIER,
	RUN_QUERY_SANDBOX,
	RUN_QUERY_PRINCIPAL,
	RUN_QUERY_TOOL,
	RUN_QUERY_STATE,
	RUN_QUERY_END_REASON,
	RUN_QUERY_EXIT_CODE,
	RUN_QUERY_LANGUAGE,
	RUN_QUERY_SINCE,
	RUN_QUERY_UNTIL,
	RUN_QUERY_MIN_DURATION,
	RUN_QUERY_MAX_DURATION,
	RUN_QUERY_Q,
	RUN_QUERY_ARTIFACT,
	RUN_QUERY_FILTERS /* so many; a route's own come here */
};

/* By enum run_state. */
static const char *const run_query_states[] = {RUN_STATE_QUEUED_WORD,
    RUN_STATE_RUNNING_WORD, RUN_STATE_COMPLETED_WORD, RUN_STATE_FAILED_WORD,
    RUN_STATE_CANCELED_WORD, NULL};
/* By enum runlog_reason - 1. */
static const char *const run_query_reasons[] = {RUNLOG_EXIT_WORD,
    RUNLOG_SIGNAL_WORD, RUNLOG_TIMEOUT_WORD, RUNLOG_MEMORY_WORD,
    RUNLOG_OUTPUT_LIMIT_WORD, RUNLOG_CANCELED_WORD, RUNLOG_START_FAILED_WORD,
    RUNLOG_DENIED_WORD, RUNLOG_LOST_WORD, RUNLOG_INTERNAL_WORD,
    RUNLOG_DISK_FULL_WORD, NULL};

/* The rows of a table; a macro, so that each table is one constant. */
#define RUN_QUERY_PARAMS                                                       \
	[RUN_QUERY_TENANT] = SCOPE_PARAM,                                      \
	[RUN_QUERY_IDENTIFIER] = {"identifier", QUERY_TEXT, .max = 36},        \
	[RUN_QUERY_SANDBOX] = {"sandbox", QUERY_TEXT, .max = 128},             \
	[RUN_QUERY_PRINCIPAL] = {"principal", QUERY_TEXT, .max = 128},         \
	[RUN_QUERY_TOOL] = {"tool", QUERY_TEXT, .max = 64},                    \
	[RUN_QUERY_STATE] = {"state", QUERY_WORD, .words = run_query_states},  \
	[RUN_QUERY_END_REASON] = {"end_reason", QUERY_WORD,                    \
	    .words = run_query_reasons},                                       \
	[RUN_QUERY_EXIT_CODE] = {"exit_code", QUERY_NUMBER, .max = INT32_MAX}, \
	[RUN_QUERY_LANGUAGE] = {"language", QUERY_TEXT, .max = 64},            \
	[RUN_QUERY_SINCE] = {.name = "since", .kind = QUERY_TIME},             \
	[RUN_QUERY_UNTIL] = {.name = "until", .kind = QUERY_TIME},             \
	[RUN_QUERY_MIN_DURATION] = {"min_duration_ms", QUERY_NUMBER,           \
	    .max = INT32_MAX},                                                 \
	[RUN_QUERY_MAX_DURATION] = {"max_duration_ms", QUERY_NUMBER, .min = 1, \
	    .max = INT32_MAX},                                                 \
	[RUN_QUERY_Q] = {"q", QUERY_TEXT, .max = HISTORY_Q_MAX},               \
	[RUN_QUERY_ARTIFACT] = {"artifact", QUERY_TEXT, .max = 1024}

/* 64 digits are no name that somebody gives a file by hand. */
static void
set_artifact(
    const struct query_value *v, uint8_t digest[32], struct history_filter *f)
{
	if (!v->is_given)
		return;
	if (hex_decode(v->text, digest, 32) == 0)
		f->digest = digest;
	else
		f->artifact = v->text;
}

/* *out points into q and digest (32 bytes, which a digest in place of a file's
 * name becomes).  states is as asked for: see record_states_on_disk. */
static void
run_query_filter(
    const struct query *q, uint8_t digest[32], struct history_filter *out)
{
	const struct query_value *v = q->values;

	*out = (struct history_filter){
	    .identifier = v[RUN_QUERY_IDENTIFIER].text,
	    .sandbox = v[RUN_QUERY_SANDBOX].text,
	    .principal = v[RUN_QUERY_PRINCIPAL].text,
	    .tool = v[RUN_QUERY_TOOL].text,
	    .language = v[RUN_QUERY_LANGUAGE].text,
	    .has_exit_code = v[RUN_QUERY_EXIT_CODE].is_given,
	    .exit_code = (int32_t)v[RUN_QUERY_EXIT_CODE].number,
	    .since_ms = v[RUN_QUERY_SINCE].time_ms,
	    .until_ms = query_until(&v[RUN_QUERY_UNTIL]),
	    .min_duration_ms = (int64_t)v[RUN_QUERY_MIN_DURATION].number,
	    .max_duration_ms = (int64_t)v[RUN_QUERY_MAX_DURATION].number,
	    .q = v[RUN_QUERY_Q].text,
	};
	if (v[RUN_QUERY_STATE].is_given)
		out->states = 1u << v[RUN_QUERY_STATE].word;
	if (v[RUN_QUERY_END_REASON].is_given)
		out->end_reason = (enum runlog_reason)(
		    v[RUN_QUERY_END_REASON].word + RUNLOG_EXIT);
	set_artifact(&v[RUN_QUERY_ARTIFACT], digest, out);
}

/* states 0: all. */
static bool
is_wanted(const struct core *core, struct tenant_id tenant, uint32_t states,
    const struct history_line *l)
{
	return states == 0 ||
	    (states & (1u << record_state(core, tenant, l))) != 0;
}

/* ---- a call */

struct history_call {
	struct http_exchange *x;
	struct front *front;
	struct tenant_id tenant;
	struct history_asking *asking;
	uint32_t states;   /* that are wanted; 0: all */
	uint64_t waiting;  /* runs of these, of those that have not ended */
	const char *group; /* static text */
};

static void
gone_cb(void *arg)
{
	struct history_call *c = arg;

	history_cancel(c->asking);
	http_drop(c->x);
	free(c);
}

static struct history_call *
call_new(const struct request *r)
{
	struct history_call *c = xcalloc(1, sizeof(*c));

	c->x = r->x;
	c->front = r->front;
	c->tenant = r->who->tenant;
	http_hold(c->x, gone_cb, c);
	return c;
}

/* ---- a list */

static json_t *
view_lines(const struct history_call *c, const struct history_page *page)
{
	const struct core *core = c->front->core;
	json_t *list = json_array();

	for (size_t i = 0; i < page->n; i++)
		if (is_wanted(core, c->tenant, c->states, &page->lines[i]))
			json_array_append_new(list,
			    record_line(core, c->tenant, &page->lines[i]));
	return list;
}

/* The database cannot count those that wait apart from those that run. */
static bool
is_on_disk(const struct history_call *c)
{
	return c->states == 0 || record_states_on_disk(c->states) == c->states;
}

static json_t *
view_total(const struct history_call *c, const struct history_page *page)
{
	if (!page->has_total)
		return json_null();
	return json_integer(
	    (json_int_t)(is_on_disk(c) ? page->total : c->waiting));
}

static void
page_cb(
    int rc, const struct history_page *page, const struct err *why, void *arg)
{
	struct history_call *c = arg;

	if (rc != 0)
		http_error_from(c->x, rc, why);
	else
		http_reply_json(c->x, 200,
		    json_pack("{s:o, s:s?, s:o, s:b, s:o}", "runs",
			view_lines(c, page), "next_cursor",
			page->next[0] == '\0' ? NULL : page->next, "total",
			view_total(c, page), "total_is_at_least",
			page->is_at_least && is_on_disk(c), "text_since",
			view_time(page->text_since_ms)));
	free(c);
}

enum {
	RUNS_SORT = RUN_QUERY_FILTERS,
	RUNS_LIMIT,
	RUNS_CURSOR,
	RUNS_COUNT
};
static const char *const sorts[] = {"created", "duration", "bytes", NULL};
static const struct query_param runs_params[] = {
    RUN_QUERY_PARAMS,
    [RUNS_SORT] = {"sort", QUERY_SORT, .words = sorts},
    [RUNS_LIMIT] = {"limit", QUERY_NUMBER, .min = 1, .max = HISTORY_LIMIT_MAX},
    [RUNS_CURSOR] = {"cursor", QUERY_TEXT, .max = HISTORY_CURSOR_MAX},
    [RUNS_COUNT] = {.name = "count", .kind = QUERY_BOOL},
};
const struct query_table history_runs_query = {
    runs_params, ARRAY_LEN(runs_params)};

void
history_on_runs(struct request *r)
{
	static const enum history_sort sort_of[] = {
	    HISTORY_CREATED, HISTORY_DURATION, HISTORY_BYTES};
	const struct query_value *v = r->query.values;
	struct history_call *c = call_new(r);
	uint8_t digest[32];
	struct history_query ask = {.sort = sort_of[v[RUNS_SORT].word],
	    .order = v[RUNS_SORT].is_given && !v[RUNS_SORT].is_descending ?
		HISTORY_ASCENDING :
		HISTORY_DESCENDING,
	    .total = v[RUNS_COUNT].is_true ? HISTORY_TOTAL : HISTORY_NO_TOTAL,
	    .limit = (size_t)query_number(&v[RUNS_LIMIT], LIMIT_DEFAULT),
	    .cursor = v[RUNS_CURSOR].text};

	run_query_filter(&r->query, digest, &ask.filter);
	c->states = ask.filter.states;
	c->waiting = record_count(c->front->core, c->tenant, &ask, c->states);
	ask.filter.states = record_states_on_disk(c->states);
	c->asking = history_list(
	    core_store(c->front->core), c->tenant, &ask, page_cb, c);
}

/* ---- statistics */

static json_t *
view_sum(const struct history_sum *s)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:f, s:I, s:I}", "key",
	    s->key, "runs", (json_int_t)s->runs, "p50_ms",
	    (json_int_t)s->p50_ms, "p95_ms", (json_int_t)s->p95_ms, "p99_ms",
	    (json_int_t)s->p99_ms, "cpu_seconds", (double)s->cpu_us / 1e6,
	    "output_bytes", (json_int_t)s->output_bytes, "artifact_bytes",
	    (json_int_t)s->artifact_bytes);
}

static void
sums_cb(
    int rc, const struct history_sums *sums, const struct err *why, void *arg)
{
	struct history_call *c = arg;
	json_t *list;

	if (rc != 0) {
		http_error_from(c->x, rc, why);
		free(c);
		return;
	}
	list = json_array();
	for (size_t i = 0; i < sums->n; i++)
		json_array_append_new(list, view_sum(&sums->sums[i]));
	http_reply_json(c->x, 200,
	    json_pack("{s:s, s:o, s:I, s:I, s:o, s:o}", "group_by", c->group,
		"groups", list, "more_groups", (json_int_t)sums->more_groups,
		"more_runs", (json_int_t)sums->more_runs, "cut_at",
		view_time(sums->cut_ms), "text_since",
		view_time(sums->text_since_ms)));
	free(c);
}

enum {
	STATS_GROUP_BY = RUN_QUERY_FILTERS
};
static const char *const groups[] = {"day", "identifier", "end_reason", "tool",
    "principal", "state", NULL}; /* by enum history_group */
static const struct query_param stats_params[] = {
    RUN_QUERY_PARAMS,
    [STATS_GROUP_BY] = {"group_by", QUERY_WORD, .words = groups},
};
const struct query_table history_stats_query = {
    stats_params, ARRAY_LEN(stats_params)};

void
history_on_stats(struct request *r)
{
	size_t by = r->query.values[STATS_GROUP_BY].word;
	struct history_call *c = call_new(r);
	struct history_filter filter;
	uint8_t digest[32];

	run_query_filter(&r->query, digest, &filter);
	c->group = groups[by];
	c->asking = history_stats(core_store(c->front->core), c->tenant,
	    &filter, (enum history_group)by, sums_cb, c);
}

/* ---- an export */

enum export_format {
	EXPORT_JSONL,
	EXPORT_CSV
};

struct export
{
	struct http_exchange *x;
	struct front *front;
	struct tenant_id tenant;
	struct history_asking *asking; /* NULL: none */
	struct timer *again;
	struct query query; /* what the filter points into */
	uint8_t digest[32];
	struct history_query ask;
	uint32_t states; /* that are wanted; 0: all */
	enum export_format format;
	char cursor[HISTORY_CURSOR_MAX + 1];
	bool is_last;
	bool is_started;
	unsigned int tries;
	struct buf text; /* of the page, what was not sent */
	LIST_ENTRY(export) link;
};

static void
export_free(struct export *p)
{
	if (p->asking != NULL)
		history_cancel(p->asking);
	timer_free(p->again);
	LIST_REMOVE(p, link);
	query_clear(&p->query);
	buf_clear(&p->text);
	free(p);
}

static void
export_gone_cb(void *arg)
{
	struct export *p = arg;

	http_drop(p->x);
	export_free(p);
}

/* ---- the text of a page */

static void
put_bytes(struct buf *b, const char *text, size_t n)
{
	(void)!buf_append(b, text, n);
}

static bool
is_formula(const char *text)
{
	return text[0] != '\0' && strchr("=+-@\t\r", text[0]) != NULL;
}

static void
put_csv_text(struct buf *b, const char *text)
{
	const char *guard = is_formula(text) ? "'" : "";

	if (text[strcspn(text, ",\"\r\n")] == '\0') {
		(void)buf_printf(b, "%s%s", guard, text);
		return;
	}
	(void)buf_printf(b, "\"%s", guard);
	for (const char *p = text; *p != '\0'; p++) {
		if (*p == '"')
			put_bytes(b, "\"", 1);
		put_bytes(b, p, 1);
	}
	put_bytes(b, "\"", 1);
}

static void
put_csv_value(struct buf *b, const json_t *value)
{
	if (json_is_string(value))
		put_csv_text(b, json_string_value(value));
	else if (json_is_integer(value))
		(void)buf_printf(
		    b, "%lld", (long long)json_integer_value(value));
	else if (json_is_real(value))
		(void)buf_printf(b, "%.6f", json_real_value(value));
}

enum csv_row {
	CSV_NAMES,
	CSV_VALUES
};

static void
put_csv(struct buf *b, json_t *line, enum csv_row what)
{
	const char *name, *before = "";
	json_t *value;

	json_object_foreach (line, name, value) {
		put_bytes(b, before, strlen(before));
		before = ",";
		if (what == CSV_NAMES)
			put_bytes(b, name, strlen(name));
		else
			put_csv_value(b, value);
	}
	put_bytes(b, "\r\n", 2);
}

static void
put_line(struct export *p, const struct history_line *l)
{
	AUTO(auto_json)
	json_t *o = record_line(p->front->core, p->tenant, l);
	AUTO(auto_free) char *text = NULL;

	if (p->format == EXPORT_CSV) {
		put_csv(&p->text, o, CSV_VALUES);
		return;
	}
	text = js_dump(o);
	put_bytes(&p->text, text, strlen(text));
	put_bytes(&p->text, "\n", 1);
}

static void
put_names(struct export *p)
{
	const struct history_line none = {.exit_code = -1, .duration_ms = -1};
	AUTO(auto_json)
	json_t *o = record_line(p->front->core, p->tenant, &none);

	put_csv(&p->text, o, CSV_NAMES);
}

static void
put_page(struct export *p, const struct history_page *page)
{
	for (size_t i = 0; i < page->n; i++)
		if (is_wanted(
			p->front->core, p->tenant, p->states, &page->lines[i]))
			put_line(p, &page->lines[i]);
}

/* ---- the stream */

static void export_ask(struct export *p);

static void
send_some(struct export *p, size_t n)
{
	struct evbuffer *out = http_buffer_new();

	(void)evbuffer_add(out, buf_data(&p->text), n);
	buf_consume(&p->text, n);
	http_stream_write(p->x, out);
	evbuffer_free(out);
}

static void
export_pump(struct export *p)
{
	size_t n = buf_len(&p->text), appetite;
	struct http_exchange *x = p->x;

	if (n > 0) {
		appetite = http_stream_appetite(x);
		if (appetite > 0)
			send_some(p, n < appetite ? n : appetite);
	}
	if (buf_len(&p->text) > 0 || p->asking != NULL || p->tries > 0)
		return; /* on_writable, or the page, goes on */
	if (!p->is_last) {
		export_ask(p);
		return;
	}
	export_free(p);
	http_stream_end(x);
}

static void
writable_cb(void *arg)
{
	export_pump(arg);
}

static void
start_stream(struct export *p, int64_t text_since_ms)
{
	char since[CLOCK_TEXT_MAX];

	p->is_started = true;
	if (text_since_ms != 0) {
		clock_format(text_since_ms, since);
		http_add_header(p->x, "X-Text-Since", since);
	}
	if (p->format == EXPORT_CSV)
		http_stream_start_as(p->x,
		    "text/csv; charset=utf-8; header=present", "runs.csv",
		    writable_cb);
	else
		http_stream_start_as(
		    p->x, "application/jsonl", "runs.jsonl", writable_cb);
}

/* ---- pages */

static void
again_cb(void *arg)
{
	export_ask(arg);
}

/* Before the first page it is an answer, later a stream that breaks off; what
 * passes is waited for. */
static void
export_fail(struct export *p, int rc, const struct err *why)
{
	struct http_exchange *x = p->x;

	if (!p->is_started) {
		export_free(p);
		http_error_from(x, rc, why);
		return;
	}
	if (rc == ERR_BACKEND && ++p->tries <= TRIES_MAX) {
		timer_set_ms(p->again, AGAIN_MS);
		return;
	}
	p->tries = TRIES_MAX + 1; /* it asks for no more */
	log_warn("export %s breaks off: %s", http_id(x), why->msg);
	http_stream_break(x);
}

static void
export_page_cb(
    int rc, const struct history_page *page, const struct err *why, void *arg)
{
	struct export *p = arg;

	p->asking = NULL;
	if (rc != 0) {
		export_fail(p, rc, why);
		return;
	}
	p->tries = 0;
	if (!p->is_started) {
		start_stream(p, page->text_since_ms);
		if (p->format == EXPORT_CSV)
			put_names(p);
	}
	put_page(p, page);
	p->is_last = page->next[0] == '\0';
	memcpy(p->cursor, page->next, sizeof(p->cursor));
	p->ask.cursor = p->cursor;
	export_pump(p);
}

static void
export_ask(struct export *p)
{
	p->asking = history_export(
	    core_store(p->front->core), p->tenant, &p->ask, export_page_cb, p);
}

/* ---- the request */

enum {
	EXPORT_FORMAT = RUN_QUERY_FILTERS,
	EXPORT_SORT
};
static const char *const formats[] = {"jsonl", "csv", NULL};
static const char *const orders[] = {"created", NULL};
static const struct query_param export_params[] = {
    RUN_QUERY_PARAMS,
    [EXPORT_FORMAT] = {"format", QUERY_WORD, .words = formats},
    [EXPORT_SORT] = {"sort", QUERY_SORT, .words = orders},
};
const struct query_table export_query = {
    export_params, ARRAY_LEN(export_params)};

static bool
has_room(const struct front *f, struct tenant_id tenant, struct err *e)
{
	unsigned int all = 0, own = 0;
	const struct export *p;

	LIST_FOREACH (p, &f->exports, link) {
		all++;
		own += tenant_id_is_equal(p->tenant, tenant) ? 1 : 0;
	}
	if (all < EXPORTS_MAX && own < EXPORTS_TENANT_MAX)
		return true;
	(void)err_set(e, ERR_LIMIT,
	    "limit reached: %d exports of a tenant go on at a time, and %d of "
	    "all: wait until one has ended",
	    EXPORTS_TENANT_MAX, EXPORTS_MAX);
	return false;
}

void
history_on_export(struct request *r)
{
	const struct query_value *v = r->query.values;
	struct front *f = r->front;
	struct export *p;
	struct err e;

	if (!has_room(f, r->who->tenant, &e)) {
		http_error_from(r->x, e.code, &e);
		return;
	}
	p = xcalloc(1, sizeof(*p));
	p->x = r->x;
	p->front = f;
	p->tenant = r->who->tenant;
	p->again = timer_new(f->base, again_cb, p);
	p->format = v[EXPORT_FORMAT].word == 1 ? EXPORT_CSV : EXPORT_JSONL;
	p->ask = (struct history_query){.order = v[EXPORT_SORT].is_descending ?
		HISTORY_DESCENDING :
		HISTORY_ASCENDING,
	    .limit = PAGE_RUNS};
	p->query = r->query;
	r->query = (struct query){0};
	run_query_filter(&p->query, p->digest, &p->ask.filter);
	p->states = p->ask.filter.states;
	p->ask.filter.states = record_states_on_disk(p->states);
	LIST_INSERT_HEAD(&f->exports, p, link);
	http_hold(p->x, export_gone_cb, p);
	export_ask(p);
}

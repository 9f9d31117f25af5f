/*
 * export_route.c - as many runs as there are, a page of them in memory
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
#include "common/exit.h"
#include "common/js.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "supervisor/front/run_query.h"
#include "supervisor/tools/record.h"

#define EXPORTS_TENANT_MAX 2 /* at a time */
#define EXPORTS_MAX 16       /* of all tenants */
#define PAGE_RUNS 250
#define AGAIN_MS 1000 /* when the history is not available just now */
#define TRIES_MAX 30

enum export_format {
	EXPORT_JSONL,
	EXPORT_CSV
};

struct export
{
	struct http_exchange *x;
	struct front *front;
	struct principal *who;
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
	principal_unref(p->who);
	query_clear(&p->query);
	buf_clear(&p->text);
	free(p);
}

static void
gone_cb(void *arg)
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
	json_t *o = record_line(p->front->core, p->who->tenant, l);
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
	json_t *o = record_line(p->front->core, p->who->tenant, &none);

	put_csv(&p->text, o, CSV_NAMES);
}

static void
put_page(struct export *p, const struct history_page *page)
{
	for (size_t i = 0; i < page->n; i++) {
		const struct history_line *l = &page->lines[i];
		uint32_t state = 1u
		    << record_state(p->front->core, p->who->tenant, l);

		if (p->states == 0 || (p->states & state) != 0)
			put_line(p, l);
	}
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
page_cb(
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
	    core_store(p->front->core), p->who->tenant, &p->ask, page_cb, p);
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
		own += tenant_id_is_equal(p->who->tenant, tenant) ? 1 : 0;
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
export_on_get(struct request *r)
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
	p->who = principal_ref(r->who);
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
	http_hold(p->x, gone_cb, p);
	export_ask(p);
}

/*
 * history_route.c - the runs of a tenant in pages, and what they come to
 */
#include "supervisor/front/handlers.h"

#include "common/xmalloc.h"
#include "supervisor/front/run_query.h"
#include "supervisor/tools/record.h"
#include "supervisor/tools/view.h"

#define LIMIT_DEFAULT 50

struct history_call {
	struct http_exchange *x;
	struct front *front;
	struct principal *who;
	struct history_asking *asking;
	uint32_t states;   /* that are wanted; 0: all */
	uint64_t waiting;  /* runs of these, of those that have not ended */
	const char *group; /* static text */
};

static void
call_free(struct history_call *c)
{
	principal_unref(c->who);
	free(c);
}

static void
gone_cb(void *arg)
{
	struct history_call *c = arg;

	history_cancel(c->asking);
	http_drop(c->x);
	call_free(c);
}

static struct history_call *
call_new(const struct request *r)
{
	struct history_call *c = xcalloc(1, sizeof(*c));

	c->x = r->x;
	c->front = r->front;
	c->who = principal_ref(r->who);
	http_hold(c->x, gone_cb, c);
	return c;
}

/* ---- a list */

static json_t *
view_lines(const struct history_call *c, const struct history_page *page)
{
	const struct core *core = c->front->core;
	json_t *list = json_array();

	for (size_t i = 0; i < page->n; i++) {
		const struct history_line *l = &page->lines[i];

		if (c->states == 0 ||
		    (c->states &
			(1u << record_state(core, c->who->tenant, l))) != 0)
			json_array_append_new(
			    list, record_line(core, c->who->tenant, l));
	}
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
	call_free(c);
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
	c->waiting =
	    record_count(c->front->core, c->who->tenant, &ask, c->states);
	ask.filter.states = record_states_on_disk(c->states);
	c->asking = history_list(
	    core_store(c->front->core), c->who->tenant, &ask, page_cb, c);
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
		call_free(c);
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
	call_free(c);
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
	c->asking = history_stats(core_store(c->front->core), c->who->tenant,
	    &filter, (enum history_group)by, sums_cb, c);
}

/*
 * lists.c - the tools list_runs and list_sandboxes
 *
 * A cursor of runs is the history's; of sandboxes what they are ordered by:
 * when the last one was made, and its identifier. Neither says anything of
 * another tenant.
 */
#include "supervisor/tools/tool.h"

#include <ctype.h>
#include <errno.h>

#include "common/clock.h"
#include "common/hex.h"
#include "common/js.h"
#include "common/moment.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/core/run.h"
#include "supervisor/core/sandbox.h"
#include "supervisor/tools/record.h"
#include "supervisor/tools/view.h"

#define LIMIT_DEFAULT 20

static size_t
limit_of(const struct tool_call *t)
{
	const json_t *limit = json_object_get(t->arguments, "limit");

	return limit == NULL ? LIMIT_DEFAULT :
			       (size_t)json_integer_value(limit);
}

static void
add_next(const json_t *o, struct buf *b)
{
	const char *next = js_text(o, "next_cursor");

	if (next[0] != '\0')
		(void)buf_printf(b, "; more with cursor %s", next);
}

/* ---- list_runs */

struct runs_call {
	struct tool_call t;
	struct history_asking *asking; /* NULL: it is answered */
	uint32_t states;               /* that are wanted; 0: all */
	uint64_t waiting; /* runs of these, of those that have not ended */
};

/* As short as a model wants it: get_run has the rest. */
static json_t *
view_line(const struct runs_call *c, const struct history_line *l)
{
	static const char *const left_out[] = {"sandbox_name", "client",
	    "artifact_bytes", "cpu_seconds", "memory_peak_bytes"};
	json_t *o = record_line(c->t.core, c->t.call->who->tenant, l), *value;
	const char *name;
	void *next;

	for (size_t i = 0; i < ARRAY_LEN(left_out); i++)
		json_object_del(o, left_out[i]);
	json_object_foreach_safe (o, next, name, value)
		if (json_is_null(value) && strstr(name, "_at") == NULL)
			json_object_del(o, name);
	return o;
}

static void
listed_cb(
    int rc, const struct history_page *page, const struct err *why, void *arg)
{
	struct runs_call *c = arg;
	struct tool_call *t = &c->t;
	bool is_on_disk =
	    c->states == 0 || record_states_on_disk(c->states) == c->states;
	json_t *o, *runs;

	c->asking = NULL;
	if (rc != 0) {
		tool_fail(t, why);
		return;
	}
	runs = json_array();
	for (size_t i = 0; i < page->n; i++) {
		const struct history_line *l = &page->lines[i];
		uint32_t state = 1u
		    << record_state(t->core, t->call->who->tenant, l);

		if (c->states == 0 || (c->states & state) != 0)
			json_array_append_new(runs, view_line(c, l));
	}
	o = json_pack("{s:o}", "runs", runs);
	if (page->next[0] != '\0')
		json_object_set_new(o, "next_cursor", json_string(page->next));
	if (page->text_since_ms != 0)
		json_object_set_new(
		    o, "text_since", view_time(page->text_since_ms));
	if (page->has_total)
		json_object_set_new(o, "total",
		    json_integer(
			(json_int_t)(is_on_disk ? page->total : c->waiting)));
	tool_result(t, o);
}

static const char *
text_of(const json_t *arguments, const char *name)
{
	return json_string_value(json_object_get(arguments, name));
}

static int
time_of(const json_t *arguments, const char *name, int64_t *out, struct err *e)
{
	const char *text = text_of(arguments, name);

	if (text == NULL || moment_parse(text, clock_wall_ms(), out))
		return 0;
	return err_set(e, ERR_INVAL, "%s: want %s", name, MOMENT_WANT);
}

static void
set_words(const json_t *arguments, struct history_filter *f)
{
	const char *state = text_of(arguments, "state");
	const char *reason = text_of(arguments, "end_reason");
	enum runlog_reason why;
	enum run_state is;

	if (state != NULL && run_state_parse(state, &is) == 0)
		f->states = 1u << is;
	if (reason != NULL && runlog_reason_parse(reason, &why) == 0)
		f->end_reason = why;
}

static int
filter_of(const json_t *a, uint8_t digest[32], struct history_filter *f,
    struct err *e)
{
	const json_t *code = json_object_get(a, "exit_code");
	const char *artifact = text_of(a, "artifact");

	*f = (struct history_filter){.identifier = text_of(a, "identifier"),
	    .sandbox = text_of(a, "sandbox"),
	    .principal = text_of(a, "principal"),
	    .tool = text_of(a, "tool"),
	    .language = text_of(a, "language"),
	    .has_exit_code = code != NULL,
	    .exit_code = (int32_t)json_integer_value(code),
	    .min_duration_ms =
		json_integer_value(json_object_get(a, "min_duration_ms")),
	    .max_duration_ms =
		json_integer_value(json_object_get(a, "max_duration_ms")),
	    .q = text_of(a, "q")};
	set_words(a, f);
	if (artifact != NULL && hex_decode(artifact, digest, 32) == 0)
		f->digest = digest;
	else
		f->artifact = artifact;
	if (time_of(a, "since", &f->since_ms, e) != 0 ||
	    time_of(a, "until", &f->until_ms, e) != 0)
		return ERR_INVAL;
	/* Nothing was created before 1970, and 0 would be no filter. */
	if (text_of(a, "until") != NULL && f->until_ms <= 0)
		f->until_ms = 1;
	return 0;
}

/* The schema has let pass what these are. */
static void
set_order(const json_t *arguments, struct history_query *q)
{
	const char *sort = js_text(arguments, "sort");
	const char *by = sort[0] == '-' ? sort + 1 : sort;

	q->order = sort[0] == '\0' || sort[0] == '-' ? HISTORY_DESCENDING :
						       HISTORY_ASCENDING;
	q->sort = strcmp(by, "duration") == 0 ? HISTORY_DURATION :
	    strcmp(by, "bytes") == 0          ? HISTORY_BYTES :
						HISTORY_CREATED;
}

static void
runs_on_start(struct tool_call *t)
{
	const json_t *arguments = t->arguments;
	struct runs_call *c = (struct runs_call *)t;
	struct history_query q = {.limit = limit_of(t),
	    .cursor = text_of(arguments, "cursor"),
	    .total = json_is_true(json_object_get(arguments, "count")) ?
		HISTORY_TOTAL :
		HISTORY_NO_TOTAL};
	uint8_t digest[32];
	struct err e;

	if (filter_of(arguments, digest, &q.filter, &e) != 0) {
		tool_fail(t, &e);
		return;
	}
	if (q.cursor != NULL && q.cursor[0] == '\0')
		q.cursor = NULL;
	set_order(arguments, &q);
	c->states = q.filter.states;
	c->waiting = record_count(t->core, t->call->who->tenant, &q, c->states);
	q.filter.states = record_states_on_disk(c->states);
	c->asking = history_list(
	    core_store(t->core), t->call->who->tenant, &q, listed_cb, c);
}

static void
runs_on_clear(struct tool_call *t)
{
	const struct runs_call *c = (const struct runs_call *)t;

	if (c->asking != NULL)
		history_cancel(c->asking);
}

static void
runs_summary(const json_t *o, struct buf *line)
{
	size_t n = json_array_size(json_object_get(o, "runs"));
	const char *since = js_text(o, "text_since");

	(void)buf_printf(line, "%zu run%s", n, n == 1 ? "" : "s");
	if (since[0] != '\0')
		(void)buf_printf(
		    line, "; q finds none created before %s", since);
	add_next(o, line);
}

const struct tool tool_list_runs = {
    .name = "list_runs",
    .size = sizeof(struct runs_call),
    .start = runs_on_start,
    .clear = runs_on_clear,
    .summary = runs_summary,
};

/* ---- list_sandboxes */

struct list_place { /* where a list goes on: behind this one */
	long long created_ms;
	char identifier[SANDBOX_IDENTIFIER_MAX + 1];
};

struct selection {
	struct tenant_id tenant;
	const char *state;
	const char *identifier;
	const struct list_place *after; /* NULL: from the newest on */
	const struct sandbox **found;
	size_t n;
};

/* Newest first. */
static int
compare_place(long long am, const char *a, long long bm, const char *b)
{
	if (am != bm)
		return am > bm ? -1 : 1;
	return strcmp(b, a);
}

static int
compare(const void *a, const void *b)
{
	const struct store_sandbox *x =
	    &(*(const struct sandbox *const *)a)->row;
	const struct store_sandbox *y =
	    &(*(const struct sandbox *const *)b)->row;

	return compare_place(
	    x->created_ms, x->identifier, y->created_ms, y->identifier);
}

static void
select_sandbox(struct selection *s, const struct sandbox *sb)
{
	const struct list_place *p = s->after;

	if (sb->row.tenant != s->tenant.n || !sb->name.is_held)
		return; /* another's, or it gave its identifier up */
	if (s->identifier[0] != '\0' &&
	    strcmp(sb->row.identifier, s->identifier) != 0)
		return;
	if (s->state[0] != '\0' &&
	    strcmp(view_sandbox_state(sb), s->state) != 0)
		return;
	if (p != NULL &&
	    compare_place(p->created_ms, p->identifier, sb->row.created_ms,
		sb->row.identifier) >= 0)
		return;
	if ((s->n & (s->n - 1)) == 0)
		s->found = xreallocarray(
		    s->found, s->n == 0 ? 1 : 2 * s->n, sizeof(*s->found));
	s->found[s->n++] = sb;
}

#define IDENTIFIER_BYTES                                                       \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

static int
parse_place(const char *text, struct list_place *p)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return -1;
	errno = 0;
	p->created_ms = strtoll(text, &end, 10);
	if (errno != 0 || *end++ != '-' || *end == '\0' ||
	    strlen(end) > SANDBOX_IDENTIFIER_MAX ||
	    end[strspn(end, IDENTIFIER_BYTES)] != '\0')
		return -1;
	utf8_copy(p->identifier, sizeof(p->identifier), end);
	return 0;
}

static json_t *
view_selection(const struct selection *s, size_t limit)
{
	json_t *list = json_array();
	json_t *o = json_pack("{s:o}", "sandboxes", list);

	for (size_t i = 0; i < s->n && i < limit; i++)
		json_array_append_new(list, view_sandbox(s->found[i]));
	if (s->n > limit) {
		const struct store_sandbox *last = &s->found[limit - 1]->row;

		json_object_set_new(o, "next_cursor",
		    json_sprintf("%lld-%s", (long long)last->created_ms,
			last->identifier));
	}
	return o;
}

static void
sandboxes_on_start(struct tool_call *t)
{
	const char *cursor = js_text(t->arguments, "cursor");
	struct selection s = {.tenant = t->call->who->tenant,
	    .state = js_text(t->arguments, "state"),
	    .identifier = js_text(t->arguments, "identifier")};
	const struct sandbox *sb = NULL;
	struct list_place after;
	struct err e;
	json_t *o;

	if (cursor[0] != '\0' && parse_place(cursor, &after) != 0) {
		(void)err_set(&e, ERR_INVAL,
		    "cursor: want next_cursor of the page before");
		tool_fail(t, &e);
		return;
	}
	if (cursor[0] != '\0')
		s.after = &after;
	while ((sb = sandboxes_next(core_sandboxes(t->core), sb)) != NULL)
		select_sandbox(&s, sb);
	if (s.n > 0)
		qsort(s.found, s.n, sizeof(struct sandbox *), compare);
	o = view_selection(&s, limit_of(t));
	free(s.found);
	tool_result(t, o);
}

static void
sandboxes_summary(const json_t *o, struct buf *line)
{
	size_t n = json_array_size(json_object_get(o, "sandboxes"));

	(void)buf_printf(line, "%zu sandbox%s", n, n == 1 ? "" : "es");
	add_next(o, line);
}

const struct tool tool_list_sandboxes = {
    .name = "list_sandboxes",
    .size = sizeof(struct tool_call),
    .start = sandboxes_on_start,
    .summary = sandboxes_summary,
};

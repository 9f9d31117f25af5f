/*
 * lists.c - the tools list_runs and list_sandboxes
 *
 * A cursor of runs is the id of the last one that was looked at; of sandboxes
 * what they are ordered by: when the last one was made, and its identifier.
 * Neither says anything of another tenant.
 */
#include "supervisor/tools/tool.h"

#include <ctype.h>
#include <errno.h>

#include "common/js.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/core/run.h"
#include "supervisor/core/sandbox.h"
#include "supervisor/tools/args.h"
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
	struct store_listing *listing; /* NULL: it is answered */
	uint32_t states;               /* that are wanted, 1 << state */
};

/* The database does not hear that a run began. */
static void
bring_up_to_date(const struct tool_call *t, struct store_run_line *line)
{
	const struct run *run = line->state != RUN_STATE_QUEUED ?
	    NULL :
	    runs_find_uuid(
		core_runs(t->core), t->call->who->tenant, &line->uuid);

	if (run != NULL) {
		line->state = run->row.state;
		line->started_ms = run->row.started_ms;
	}
}

static json_t *
view_line(const struct store_run_line *line)
{
	char id[UUID_TEXT_LEN + 1];
	json_t *o;

	uuid_format(&line->uuid, id);
	o = json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "run_id", id,
	    "identifier", line->identifier, "tool", line->tool, "state",
	    run_state_word(line->state), "created_at",
	    view_time(line->created_ms), "started_at",
	    view_time(line->started_ms), "ended_at", view_time(line->ended_ms));
	if (line->end_reason != 0)
		json_object_set_new(o, "end_reason",
		    json_string(runlog_reason_word(line->end_reason)));
	if (line->error[0] != '\0')
		json_object_set_new(o, "error",
		    js_string_bytes(line->error, strlen(line->error), NULL));
	return o;
}

static void
listed_cb(
    int rc, const struct store_run_list *list, const struct err *why, void *arg)
{
	struct runs_call *c = arg;
	struct tool_call *t = &c->t;
	char next[UUID_TEXT_LEN + 1];
	json_t *o, *runs;

	c->listing = NULL;
	if (rc != 0) {
		tool_fail(t, why);
		return;
	}
	runs = json_array();
	for (size_t i = 0; i < list->n; i++) {
		struct store_run_line line = list->lines[i];

		bring_up_to_date(t, &line);
		if ((c->states & (1u << line.state)) != 0)
			json_array_append_new(runs, view_line(&line));
	}
	o = json_pack("{s:o}", "runs", runs);
	if (list->has_more) {
		uuid_format(&list->next, next);
		json_object_set_new(o, "next_cursor", json_string(next));
	}
	tool_result(t, o);
}

static uint32_t
states_of(const char *word)
{
	enum run_state state;

	return word[0] == '\0' || run_state_parse(word, &state) != 0 ?
	    UINT32_MAX :
	    1u << state;
}

/* What the database may call these. */
static uint32_t
states_on_disk(uint32_t states)
{
	const uint32_t unfinished =
	    1u << RUN_STATE_QUEUED | 1u << RUN_STATE_RUNNING;

	return (states & unfinished) != 0 ? states | unfinished : states;
}

static void
runs_on_start(struct tool_call *t, const json_t *arguments)
{
	struct runs_call *c = (struct runs_call *)t;
	const char *identifier = js_text(arguments, "identifier");
	const char *cursor = js_text(arguments, "cursor");
	struct uuid after;
	struct err e;

	if (cursor[0] != '\0' && uuid_parse(cursor, &after) != 0) {
		(void)err_set(&e, ERR_INVAL,
		    "cursor: want next_cursor of the page before");
		tool_fail(t, &e);
		return;
	}
	c->states = states_of(js_text(arguments, "state"));
	c->listing = store_run_list(core_store(t->core), t->call->who->tenant,
	    &(struct store_run_filter){
		.identifier = identifier[0] != '\0' ? identifier : NULL,
		.states = states_on_disk(c->states),
		.after = cursor[0] != '\0' ? &after : NULL,
		.limit = limit_of(t)},
	    listed_cb, c);
}

static void
runs_on_clear(struct tool_call *t)
{
	const struct runs_call *c = (const struct runs_call *)t;

	if (c->listing != NULL)
		store_listing_cancel(c->listing);
}

static void
runs_summary(const json_t *o, enum tool_text_form form, struct buf *line)
{
	size_t n = json_array_size(json_object_get(o, "runs"));

	(void)form;
	(void)buf_printf(line, "%zu run%s", n, n == 1 ? "" : "s");
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
select_cb(const struct sandbox *sb, void *arg)
{
	struct selection *s = arg;
	const struct list_place *p = s->after;

	if (sb->row.tenant != s->tenant.n || !sb->name.is_held)
		return; /* another's, or it gave its identifier up */
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
sandboxes_on_start(struct tool_call *t, const json_t *arguments)
{
	const char *cursor = js_text(arguments, "cursor");
	struct selection s = {.tenant = t->call->who->tenant,
	    .state = js_text(arguments, "state")};
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
	sandboxes_each(core_sandboxes(t->core), select_cb, &s);
	if (s.n > 0)
		qsort(s.found, s.n, sizeof(struct sandbox *), compare);
	o = view_selection(&s, limit_of(t));
	free(s.found);
	tool_result(t, o);
}

static void
sandboxes_summary(const json_t *o, enum tool_text_form form, struct buf *line)
{
	size_t n = json_array_size(json_object_get(o, "sandboxes"));

	(void)form;
	(void)buf_printf(line, "%zu sandbox%s", n, n == 1 ? "" : "es");
	add_next(o, line);
}

const struct tool tool_list_sandboxes = {
    .name = "list_sandboxes",
    .size = sizeof(struct tool_call),
    .start = sandboxes_on_start,
    .summary = sandboxes_summary,
};

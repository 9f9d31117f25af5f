#include "supervisor/tools/record.h"

#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/core/core.h"
#include "supervisor/core/run.h"
#include "supervisor/core/sandbox.h"
#include "supervisor/store/first_words.h"
#include "supervisor/tools/view.h"

#define US_PER_S 1e6

static json_t *
text_or_null(const char *text)
{
	return text == NULL || text[0] == '\0' ?
	    json_null() :
	    js_string_bytes(text, strlen(text), NULL);
}

static json_t *
uuid_or_null(const struct uuid *u)
{
	static const struct uuid none;
	char text[UUID_TEXT_LEN + 1];

	if (uuid_is_equal(u, &none))
		return json_null();
	uuid_format(u, text);
	return json_string(text);
}

/* From one moment to another; null before the second. */
static json_t *
span_ms(int64_t from_ms, int64_t to_ms)
{
	if (from_ms == 0 || to_ms == 0)
		return json_null();
	return json_integer(to_ms < from_ms ? 0 : to_ms - from_ms);
}

static json_t *
count_of(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static bool
has_ended(enum run_state state)
{
	return state != RUN_STATE_QUEUED && state != RUN_STATE_RUNNING;
}

/* ---- a run that has a row */

static json_t *
view_command(const struct store_command *c, size_t level)
{
	static const char *const wishes[] = {
	    "shell", "argv", "cwd", "env", "error", NULL};
	json_t *o = json_pack("{s:i}", "index", (int)c->index);

	view_asked(o, c, level);
	for (size_t i = 0; wishes[i] != NULL; i++)
		if (json_object_get(o, wishes[i]) == NULL)
			json_object_set_new(o, wishes[i], json_null());
	json_object_set_new(
	    o, "status", text_or_null(command_status_word(c->status)));
	json_object_set_new(
	    o, "end_reason", text_or_null(runlog_reason_word(c->end_reason)));
	json_object_set_new(o, "exit_code",
	    c->end_reason == 0 ? json_null() : json_integer(c->exit_code));
	json_object_set_new(o, "signal",
	    c->signal == 0 ? json_null() : json_integer(c->signal));
	json_object_set_new(o, "timeout_ms", json_integer(c->timeout_ms));
	json_object_set_new(o, "allow_failure", json_boolean(c->allow_failure));
	json_object_set_new(o, "started_at", view_time(c->started_ms));
	json_object_set_new(o, "ended_at", view_time(c->ended_ms));
	json_object_set_new(
	    o, "duration_ms", span_ms(c->started_ms, c->ended_ms));
	json_object_set_new(o, "stdout_bytes", count_of(c->stdout_bytes));
	json_object_set_new(o, "stderr_bytes", count_of(c->stderr_bytes));
	json_object_set_new(
	    o, "cpu_seconds", json_real((double)c->cpu_us / US_PER_S));
	json_object_set_new(
	    o, "memory_peak_bytes", count_of(c->memory_peak_bytes));
	json_object_set_new(o, "memory_kills", count_of(c->memory_kills));
	json_object_set_new(o, "left_running", count_of(c->left_running));
	return o;
}

static void
add_identity(json_t *o, const struct store_run *row)
{
	json_object_set_new(o, "run_id", uuid_or_null(&row->uuid));
	json_object_set_new(o, "identifier", text_or_null(row->identifier));
	json_object_set_new(o, "sandbox_name", text_or_null(row->sandbox_name));
	json_object_set_new(o, "container_id", text_or_null(row->container_id));
	json_object_set_new(o, "tool", text_or_null(row->tool));
	json_object_set_new(o, "language", text_or_null(row->language));
	json_object_set_new(
	    o, "state", text_or_null(run_state_word(row->state)));
	json_object_set_new(
	    o, "end_reason", text_or_null(runlog_reason_word(row->end_reason)));
	json_object_set_new(o, "exit_code",
	    row->exit_code < 0 ? json_null() : json_integer(row->exit_code));
	json_object_set_new(o, "error", text_or_null(row->error));
	json_object_set_new(
	    o, "artifacts_error", text_or_null(row->artifacts_error));
}

static json_t *
view_options(uint32_t options)
{
	if ((options & RUN_OPTIONS_ARE_KNOWN) == 0)
		return json_null();
	return json_pack("{s:s, s:b, s:b, s:b}", "as_user",
	    (options & RUN_IS_ROOT) != 0 ? "root" : "sandbox",
	    "continue_on_error", (options & RUN_GOES_ON_AFTER_ERROR) != 0,
	    "lock_sandbox", (options & RUN_HAS_LOCK) != 0, "kill_leftovers",
	    (options & RUN_KILLS_LEFTOVERS) != 0);
}

static void
add_asker(json_t *o, const struct store_run *row)
{
	json_object_set_new(o, "principal", text_or_null(row->principal));
	json_object_set_new(o, "client", text_or_null(row->client));
	json_object_set_new(o, "address", text_or_null(row->address));
	json_object_set_new(o, "session", text_or_null(row->session));
	json_object_set_new(o, "request_id", text_or_null(row->request_id));
	json_object_set_new(o, "trace_id", text_or_null(row->trace));
	json_object_set_new(o, "span_id", text_or_null(row->span));
	json_object_set_new(
	    o, "parent_span_id", text_or_null(row->parent_span));
	json_object_set_new(o, "rerun_of", uuid_or_null(&row->rerun_of));
}

static void
add_times(json_t *o, const struct store_run *row)
{
	json_object_set_new(o, "created_at", view_time(row->created_ms));
	json_object_set_new(o, "started_at", view_time(row->started_ms));
	json_object_set_new(o, "ended_at", view_time(row->ended_ms));
	json_object_set_new(
	    o, "queue_ms", span_ms(row->created_ms, row->sent_ms));
	json_object_set_new(
	    o, "duration_ms", span_ms(row->started_ms, row->ended_ms));
}

static void
add_sums(json_t *o, const struct store_run *row)
{
	json_object_set_new(o, "stdout_bytes", count_of(row->stdout_bytes));
	json_object_set_new(o, "stderr_bytes", count_of(row->stderr_bytes));
	json_object_set_new(
	    o, "artifact_count", count_of(row->artifacts_total));
	json_object_set_new(o, "artifact_bytes", count_of(row->artifact_bytes));
	json_object_set_new(
	    o, "cpu_seconds", json_real((double)row->cpu_us / US_PER_S));
	json_object_set_new(
	    o, "memory_peak_bytes", count_of(row->memory_peak_bytes));
}

/* As the index of runs has them. */
static json_t *
first_words(const struct store_run *row)
{
	AUTO(auto_free) char *text = NULL;

	if (row->ncommands == 0)
		return json_null();
	text =
	    first_words_of(row->commands[0].shell, row->commands[0].argv_json);
	return text_or_null(text);
}

json_t *
record_view(const struct store_run *row, enum sched_wait waits)
{
	size_t level = view_wishes_level(row, VIEW_FOR_TOOL);
	json_t *o = json_object(), *commands = json_array();

	add_identity(o, row);
	json_object_set_new(
	    o, "waits_for", text_or_null(view_wait_word(waits)));
	add_times(o, row);
	add_sums(o, row);
	add_asker(o, row);
	json_object_set_new(o, "output_evicted_at", view_time(row->evicted_ms));
	json_object_set_new(o, "output_lost_at", view_time(row->lost_ms));
	json_object_set_new(o, "options", view_options(row->options));
	for (uint32_t i = 0; i < row->ncommands; i++)
		json_array_append_new(
		    commands, view_command(&row->commands[i], level));
	json_object_set_new(o, "command", first_words(row));
	json_object_set_new(o, "commands", commands);
	return o;
}

void
record_add(json_t *o, const struct store_run *row)
{
	/* Of no use to a model. */
	static const char *const left_out[] = {
	    "address", "session", "request_id", "span_id", "parent_span_id"};
	AUTO(auto_json) json_t *more = json_object();
	const char *key;
	json_t *value;
	void *next;

	add_times(more, row);
	add_asker(more, row);
	for (size_t i = 0; i < ARRAY_LEN(left_out); i++)
		json_object_del(more, left_out[i]);
	json_object_set_new(more, "language", text_or_null(row->language));
	if (row->exit_code >= 0)
		json_object_set_new(
		    more, "exit_code", json_integer(row->exit_code));
	if (has_ended(row->state))
		add_sums(more, row);
	json_object_foreach_safe (more, next, key, value)
		if (!json_is_null(value))
			json_object_set(o, key, value);
}

/* ---- a line of the history */

static void
add_line_sums(json_t *o, const struct history_line *l)
{
	json_object_set_new(o, "stdout_bytes", count_of(l->stdout_bytes));
	json_object_set_new(o, "stderr_bytes", count_of(l->stderr_bytes));
	json_object_set_new(o, "artifact_count", count_of(l->artifacts));
	json_object_set_new(o, "artifact_bytes", count_of(l->artifact_bytes));
	json_object_set_new(
	    o, "cpu_seconds", json_real((double)l->cpu_us / US_PER_S));
	json_object_set_new(
	    o, "memory_peak_bytes", count_of(l->memory_peak_bytes));
}

static const struct run *
find_run(const struct core *core, struct tenant_id tenant,
    const struct history_line *l)
{
	return l->state != RUN_STATE_QUEUED ?
	    NULL :
	    runs_find_uuid(core_runs(core), tenant, &l->uuid);
}

enum run_state
record_state(const struct core *core, struct tenant_id tenant,
    const struct history_line *l)
{
	const struct run *run = find_run(core, tenant, l);

	return run == NULL ? l->state : run->row.state;
}

uint32_t
record_states_on_disk(uint32_t states)
{
	const uint32_t unfinished =
	    1u << RUN_STATE_QUEUED | 1u << RUN_STATE_RUNNING;

	return (states & unfinished) != 0 ? states | unfinished : states;
}

json_t *
record_line(const struct core *core, struct tenant_id tenant,
    const struct history_line *l)
{
	const struct run *run = find_run(core, tenant, l);
	json_t *o = json_object();

	json_object_set_new(o, "run_id", uuid_or_null(&l->uuid));
	json_object_set_new(o, "identifier", text_or_null(l->identifier));
	json_object_set_new(o, "sandbox_name", text_or_null(l->sandbox_name));
	json_object_set_new(o, "principal", text_or_null(l->principal));
	json_object_set_new(o, "client", text_or_null(l->client));
	json_object_set_new(o, "tool", text_or_null(l->tool));
	json_object_set_new(o, "language", text_or_null(l->language));
	json_object_set_new(o, "state",
	    text_or_null(
		run_state_word(run == NULL ? l->state : run->row.state)));
	json_object_set_new(
	    o, "end_reason", text_or_null(runlog_reason_word(l->end_reason)));
	json_object_set_new(o, "exit_code",
	    l->exit_code < 0 ? json_null() : json_integer(l->exit_code));
	json_object_set_new(o, "error", text_or_null(l->error));
	json_object_set_new(o, "created_at", view_time(l->created_ms));
	json_object_set_new(o, "started_at",
	    view_time(run == NULL ? l->started_ms : run->row.started_ms));
	json_object_set_new(o, "ended_at", view_time(l->ended_ms));
	json_object_set_new(o, "duration_ms",
	    l->duration_ms < 0 ? json_null() : json_integer(l->duration_ms));
	add_line_sums(o, l);
	json_object_set_new(o, "command", text_or_null(l->command));
	return o;
}

/* ---- counting those that the database cannot tell apart */

struct count {
	struct tenant_id tenant;
	const struct history_filter *filter;
	uint32_t states;
	uint64_t n;
};

static bool
is_text(const char *want, const char *text)
{
	return want == NULL || strcmp(want, text == NULL ? "" : text) == 0;
}

/* What only an end knows lets none of them pass. */
static bool
wants_ended(const struct history_filter *f)
{
	return f->end_reason != 0 || f->has_exit_code ||
	    f->min_duration_ms > 0 || f->max_duration_ms > 0 ||
	    f->artifact != NULL || f->digest != NULL || f->q != NULL;
}

static bool
is_counted(const struct count *c, const struct sandbox *sb, const struct run *r)
{
	const struct history_filter *f = c->filter;
	char id[UUID_TEXT_LEN + 1];

	uuid_format(&sb->row.uuid, id);
	return r->recorded == RUN_IS_RECORDED &&
	    (c->states & (1u << r->row.state)) != 0 &&
	    is_text(f->identifier, r->row.identifier) &&
	    (is_text(f->sandbox, r->row.sandbox_name) ||
		strcmp(f->sandbox, id) == 0) &&
	    is_text(f->principal, r->row.principal) &&
	    is_text(f->tool, r->row.tool) &&
	    is_text(f->language, r->row.language) &&
	    (f->since_ms == 0 || r->row.created_ms >= f->since_ms) &&
	    (f->until_ms == 0 || r->row.created_ms < f->until_ms);
}

static void
count_cb(const struct sandbox *sb, void *arg)
{
	struct count *c = arg;
	const struct sched_items *const lists[] = {
	    &sb->queue.waiting, &sb->queue.locked, &sb->queue.running};
	struct sched_item *item;

	if (sb->row.tenant != c->tenant.n)
		return;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		TAILQ_FOREACH (item, lists[i], link)
			if (is_counted(c, sb, HASH_OF(item, struct run, turn)))
				c->n++;
}

uint64_t
record_count(const struct core *core, struct tenant_id tenant,
    const struct history_query *q, uint32_t states)
{
	struct count c = {tenant, &q->filter, states, 0};

	if (q->sort == HISTORY_CREATED && !wants_ended(&q->filter))
		sandboxes_each(core_sandboxes(core), count_cb, &c);
	return c.n;
}

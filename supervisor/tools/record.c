#include "supervisor/tools/record.h"

#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/core/core.h"
#include "supervisor/core/run.h"
#include "supervisor/core/sandbox.h"
#include "supervisor/store/first_words.h"
#include "supervisor/tools/view.h"

#define US_PER_S 1e6

/* Members of a record, null where there is nothing to say. */

static void
set_text(json_t *o, const char *key, const char *text)
{
	json_object_set_new(o, key,
	    text == NULL || text[0] == '\0' ?
		json_null() :
		js_string_bytes(text, strlen(text), NULL));
}

static void
set_count(json_t *o, const char *key, uint64_t n)
{
	json_object_set_new(o, key, json_integer((json_int_t)n));
}

/* Negative: not known. */
static void
set_known(json_t *o, const char *key, int64_t n)
{
	json_object_set_new(o, key, n < 0 ? json_null() : json_integer(n));
}

static void
set_time(json_t *o, const char *key, int64_t wall_ms)
{
	json_object_set_new(o, key, view_time(wall_ms));
}

/* From one moment to another; null before the second. */
static void
set_span(json_t *o, const char *key, int64_t from_ms, int64_t to_ms)
{
	set_known(o, key,
	    from_ms == 0 || to_ms == 0 ? -1 :
		to_ms < from_ms        ? 0 :
					 to_ms - from_ms);
}

static void
set_seconds(json_t *o, const char *key, uint64_t us)
{
	json_object_set_new(o, key, json_real((double)us / US_PER_S));
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
	set_text(o, "status", command_status_word(c->status));
	set_text(o, "end_reason", runlog_reason_word(c->end_reason));
	json_object_set_new(o, "exit_code",
	    c->end_reason == 0 ? json_null() : json_integer(c->exit_code));
	json_object_set_new(o, "signal",
	    c->signal == 0 ? json_null() : json_integer(c->signal));
	json_object_set_new(o, "timeout_ms", json_integer(c->timeout_ms));
	json_object_set_new(o, "allow_failure", json_boolean(c->allow_failure));
	set_time(o, "started_at", c->started_ms);
	set_time(o, "ended_at", c->ended_ms);
	set_span(o, "duration_ms", c->started_ms, c->ended_ms);
	set_count(o, "stdout_bytes", c->stdout_bytes);
	set_count(o, "stderr_bytes", c->stderr_bytes);
	set_seconds(o, "cpu_seconds", c->cpu_us);
	set_count(o, "memory_peak_bytes", c->memory_peak_bytes);
	set_count(o, "memory_kills", c->memory_kills);
	set_count(o, "left_running", c->left_running);
	return o;
}

static void
add_identity(json_t *o, const struct store_run *row)
{
	json_object_set_new(o, "run_id", view_uuid(&row->uuid));
	set_text(o, "identifier", row->identifier);
	set_text(o, "sandbox_name", row->sandbox_name);
	set_text(o, "container_id", row->container_id);
	set_text(o, "tool", row->tool);
	set_text(o, "language", row->language);
	set_text(o, "state", run_state_word(row->state));
	set_text(o, "end_reason", runlog_reason_word(row->end_reason));
	set_known(o, "exit_code", row->exit_code);
	set_text(o, "error", row->error);
	set_text(o, "artifacts_error", row->artifacts_error);
}

json_t *
record_options(uint32_t options)
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
	set_text(o, "principal", row->principal);
	set_text(o, "client", row->client);
	set_text(o, "address", row->address);
	set_text(o, "session", row->session);
	set_text(o, "request_id", row->request_id);
	set_text(o, "trace_id", row->trace);
	set_text(o, "span_id", row->span);
	set_text(o, "parent_span_id", row->parent_span);
	json_object_set_new(o, "rerun_of", view_uuid(&row->rerun_of));
}

static void
add_times(json_t *o, const struct store_run *row)
{
	set_time(o, "created_at", row->created_ms);
	set_time(o, "started_at", row->started_ms);
	set_time(o, "ended_at", row->ended_ms);
	set_span(o, "queue_ms", row->created_ms, row->sent_ms);
	set_span(o, "duration_ms", row->started_ms, row->ended_ms);
}

static void
add_sums(json_t *o, const struct store_run *row)
{
	set_count(o, "stdout_bytes", row->stdout_bytes);
	set_count(o, "stderr_bytes", row->stderr_bytes);
	set_count(o, "artifact_count", row->artifacts_total);
	set_count(o, "artifact_bytes", row->artifact_bytes);
	set_seconds(o, "cpu_seconds", row->cpu_us);
	set_count(o, "memory_peak_bytes", row->memory_peak_bytes);
}

/* As the index of runs has them. */
static void
set_first_words(json_t *o, const struct store_run *row)
{
	AUTO(auto_free)
	char *text = row->ncommands == 0 ?
	    NULL :
	    first_words_of(row->commands[0].shell, row->commands[0].argv_json);

	set_text(o, "command", text);
}

json_t *
record_view(const struct store_run *row, enum sched_wait waits)
{
	size_t level = view_wishes_level(row, VIEW_FOR_TOOL);
	json_t *o = json_object(), *commands = json_array();

	add_identity(o, row);
	set_text(o, "waits_for", view_wait_word(waits));
	add_times(o, row);
	add_sums(o, row);
	add_asker(o, row);
	set_time(o, "output_evicted_at", row->evicted_ms);
	set_time(o, "output_lost_at", row->lost_ms);
	json_object_set_new(o, "options", record_options(row->options));
	for (uint32_t i = 0; i < row->ncommands; i++)
		json_array_append_new(
		    commands, view_command(&row->commands[i], level));
	set_first_words(o, row);
	json_object_set_new(o, "commands", commands);
	return o;
}

/* Of no use to a model, and what it reads may go anywhere. */
static void
drop_addresses(json_t *o)
{
	static const char *const left_out[] = {
	    "address", "session", "request_id", "span_id", "parent_span_id"};

	for (size_t i = 0; i < ARRAY_LEN(left_out); i++)
		json_object_del(o, left_out[i]);
}

json_t *
record_for_model(const struct store_run *row, enum sched_wait waits)
{
	json_t *o = record_view(row, waits);

	drop_addresses(o);
	return o;
}

void
record_add(json_t *o, const struct store_run *row)
{
	AUTO(auto_json) json_t *more = json_object();
	const char *key;
	json_t *value;
	void *next;

	add_times(more, row);
	add_asker(more, row);
	drop_addresses(more);
	set_text(more, "language", row->language);
	set_known(more, "exit_code", row->exit_code);
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
	set_count(o, "stdout_bytes", l->stdout_bytes);
	set_count(o, "stderr_bytes", l->stderr_bytes);
	set_count(o, "artifact_count", l->artifacts);
	set_count(o, "artifact_bytes", l->artifact_bytes);
	set_seconds(o, "cpu_seconds", l->cpu_us);
	set_count(o, "memory_peak_bytes", l->memory_peak_bytes);
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

	json_object_set_new(o, "run_id", view_uuid(&l->uuid));
	set_text(o, "identifier", l->identifier);
	set_text(o, "sandbox_name", l->sandbox_name);
	set_text(o, "principal", l->principal);
	set_text(o, "client", l->client);
	set_text(o, "tool", l->tool);
	set_text(o, "language", l->language);
	set_text(o, "state",
	    run_state_word(run == NULL ? l->state : run->row.state));
	set_text(o, "end_reason", runlog_reason_word(l->end_reason));
	set_known(o, "exit_code", l->exit_code);
	set_text(o, "error", l->error);
	set_time(o, "created_at", l->created_ms);
	set_time(
	    o, "started_at", run == NULL ? l->started_ms : run->row.started_ms);
	set_time(o, "ended_at", l->ended_ms);
	set_known(o, "duration_ms", l->duration_ms);
	add_line_sums(o, l);
	set_text(o, "command", l->command);
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
count_runs(struct count *c, const struct sandbox *sb)
{
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
	const struct sandbox *sb = NULL;

	if (q->sort != HISTORY_CREATED || wants_ended(&q->filter))
		return 0;
	while ((sb = sandboxes_next(core_sandboxes(core), sb)) != NULL)
		count_runs(&c, sb);
	return c.n;
}

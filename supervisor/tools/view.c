#include "supervisor/tools/view.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/hex.h"
#include "common/js.h"
#include "common/utf8.h"
#include "common/xmalloc.h"

json_t *
view_time(int64_t wall_ms)
{
	char text[CLOCK_TEXT_MAX];

	if (wall_ms == 0)
		return json_null();
	clock_format(wall_ms, text);
	return json_string(text);
}

/* A client's text is UTF-8 already; what we made of names is too. */
static void
set_text(json_t *o, const char *key, const char *text)
{
	if (text[0] != '\0')
		json_object_set_new(
		    o, key, js_string_bytes(text, strlen(text), NULL));
}

static void
set_parsed(json_t *o, const char *key, const char *json)
{
	if (json[0] != '\0')
		json_object_set_new(o, key, json_loads(json, 0, NULL));
}

/* Bytes as text and, where the text cannot say them, as they are. */
static void
set_bytes(json_t *o, const char *key, const uint8_t *p, size_t n)
{
	AUTO(auto_free) char *exact = NULL;
	bool lossy;

	json_object_set_new(o, key, js_string_bytes(p, n, &lossy));
	if (!lossy)
		return;
	exact = xasprintf("%s_base64", key);
	json_object_set_new(o, exact, js_base64(p, n));
}

/* ---- shares of a bound */

static size_t
sum_at_level(const size_t *wants, size_t n, size_t level)
{
	size_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += wants[i] < level ? wants[i] : level;
	return sum;
}

size_t
view_share(const size_t *wants, size_t n, size_t max)
{
	size_t low = 0, high = max;

	while (low < high) {
		size_t mid = low + (high - low) / 2 + 1;

		if (sum_at_level(wants, n, mid) <= max)
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}

/* ---- output */

/* Of all heads; what is a tail is always shown. */
static size_t
heads_level(const struct store_run *row, const struct log_digest *d)
{
	AUTO(auto_free)
	size_t *wants = xcalloc(2 * (size_t)row->ncommands, sizeof(*wants));
	size_t tails = 0;

	for (size_t i = 0; i < 2 * (size_t)row->ncommands; i++) {
		const struct log_stream *s = &d->commands[i / 2].out[i % 2];

		wants[i] = js_bytes_cost(buf_data(&s->head), buf_len(&s->head));
		tails += js_bytes_cost(buf_data(&s->tail), buf_len(&s->tail));
	}
	return view_share(wants, 2 * (size_t)row->ncommands,
	    tails < VIEW_OUTPUT_MAX ? VIEW_OUTPUT_MAX - tails : 0);
}

/* The first bytes, how many there are in all, and, if there are more, the last
 * ones and how many are in neither.  Both are cut to whole characters. */
static void
set_stream(json_t *o, const char *name, const struct log_stream *s,
    uint64_t total, size_t level)
{
	AUTO(auto_free) char *key = xasprintf("%s_bytes", name);
	AUTO(auto_free) char *cut = xasprintf("%s_truncated", name);
	AUTO(auto_free) char *tail = xasprintf("%s_tail", name);
	AUTO(auto_free) char *dropped = xasprintf("%s_dropped", name);
	const uint8_t *p = buf_data(&s->head), *q = buf_data(&s->tail);
	size_t n = js_bytes_fit(p, buf_len(&s->head), level);
	size_t m = buf_len(&s->tail), skip;

	if (total < s->bytes)
		total = s->bytes; /* it runs: its row does not know yet */
	json_object_set_new(o, key, json_integer((json_int_t)total));
	json_object_set_new(o, cut, json_boolean(total > n));
	if (total > n)
		n = utf8_complete_len(p, n);
	set_bytes(o, name, p, n);
	if (m == 0 && n == buf_len(&s->head))
		return;
	skip = s->bytes > n + m ? utf8_broken_start_len(q, m) : 0;
	if (m > 0)
		set_bytes(o, tail, q + skip, m - skip);
	json_object_set_new(
	    o, dropped, json_integer((json_int_t)(total - n - (m - skip))));
}

void
view_merged(json_t *o, const struct log_digest *d)
{
	const uint8_t *p = buf_data(&d->merged);
	size_t n = js_bytes_fit(p, buf_len(&d->merged), VIEW_OUTPUT_MAX);
	uint64_t total = 0;

	for (uint32_t i = 0; i < d->ncommands; i++)
		total +=
		    d->commands[i].out[0].bytes + d->commands[i].out[1].bytes;
	if (total > n)
		n = utf8_complete_len(p, n);
	json_object_set_new(o, "output", js_string_bytes(p, n, NULL));
	json_object_set_new(o, "output_truncated", json_boolean(total > n));
	if (total > n)
		json_object_set_new(
		    o, "output_dropped", json_integer((json_int_t)(total - n)));
}

/* ---- commands */

/* argv_json and env_json are JSON already. */
static size_t
wish_cost(const struct store_command *c)
{
	return js_bytes_cost(c->shell, strlen(c->shell)) +
	    strlen(c->argv_json) + strlen(c->env_json) +
	    js_bytes_cost(c->cwd, strlen(c->cwd)) +
	    js_bytes_cost(c->error, strlen(c->error));
}

static size_t
wishes_level(const struct store_run *row)
{
	AUTO(auto_free)
	size_t *wants = xcalloc(row->ncommands, sizeof(*wants));

	for (uint32_t i = 0; i < row->ncommands; i++)
		wants[i] = wish_cost(&row->commands[i]);
	return view_share(wants, row->ncommands, VIEW_WISHES_MAX);
}

/* What was asked for; of what is too long for its share, the beginning of the
 * shell's text alone. */
static void
set_wish(json_t *o, const struct store_command *c, size_t level)
{
	size_t n;

	if (wish_cost(c) <= level) {
		set_text(o, "shell", c->shell);
		set_parsed(o, "argv", c->argv_json);
		set_text(o, "cwd", c->cwd);
		set_parsed(o, "env", c->env_json);
		set_text(o, "error", c->error);
		return;
	}
	n = js_bytes_fit(c->shell, strlen(c->shell), level);
	n = utf8_complete_len(c->shell, n);
	if (n > 0)
		json_object_set_new(
		    o, "shell", js_string_bytes(c->shell, n, NULL));
	json_object_set_new(o, "request_truncated", json_true());
}

struct view_levels {
	size_t wishes;
	size_t heads;
};

static json_t *
view_command(const struct store_command *c, const struct log_command *log,
    const struct view_levels *at)
{
	json_t *o = json_object();

	json_object_set_new(o, "index", json_integer(c->index));
	set_wish(o, c, at->wishes);
	set_text(o, "status", command_status_word(c->status));
	set_text(o, "end_reason", runlog_reason_word(c->end_reason));
	json_object_set_new(o, "exit_code",
	    c->end_reason == 0 ? json_null() : json_integer(c->exit_code));
	if (c->signal != 0)
		json_object_set_new(o, "signal", json_integer(c->signal));
	json_object_set_new(o, "timeout_ms", json_integer(c->timeout_ms));
	json_object_set_new(o, "started_at", view_time(c->started_ms));
	json_object_set_new(o, "ended_at", view_time(c->ended_ms));
	set_stream(o, "stdout", &log->out[0], c->stdout_bytes, at->heads);
	set_stream(o, "stderr", &log->out[1], c->stderr_bytes, at->heads);
	return o;
}

/* ---- artifacts */

static json_t *
view_artifact(const struct store_artifact *a)
{
	json_t *o = json_object();
	char digest[HEX_BYTES(sizeof(a->sha256))];

	hex_encode(a->sha256, sizeof(a->sha256), digest);
	json_object_set_new(o, "path", json_string(a->path));
	json_object_set_new(o, "size", json_integer((json_int_t)a->size));
	json_object_set_new(o, "sha256", json_string(digest));
	return o;
}

#define ARTIFACT_WORDS 140 /* beside its path: keys, size, digest */

/* From wish on, as many as may be; where the next begin, if there are more. */
static void
set_artifacts(json_t *o, const struct store_run *row, uint32_t from)
{
	json_t *list = json_array();
	size_t sum = 0, cost;
	uint32_t i = from;

	for (; i < row->nartifacts; i++) {
		const struct store_artifact *a = &row->artifacts[i];

		cost = js_bytes_cost(a->path, strlen(a->path)) + ARTIFACT_WORDS;
		if (sum + cost > VIEW_ARTIFACTS_MAX)
			break;
		sum += cost;
		json_array_append_new(list, view_artifact(a));
	}
	json_object_set_new(o, "artifacts", list);
	if (i >= row->nartifacts)
		return;
	json_object_set_new(
	    o, "artifacts_dropped", json_integer(row->nartifacts - i));
	json_object_set_new(o, "artifacts_next", json_integer(i));
}

/* ---- the run */

static void
view_head(json_t *o, const struct store_run *row)
{
	char uuid[UUID_TEXT_LEN + 1];

	uuid_format(&row->uuid, uuid);
	json_object_set_new(o, "run_id", json_string(uuid));
	set_text(o, "tool", row->tool);
	set_text(o, "identifier", row->identifier);
	set_text(o, "state", run_state_word(row->state));
	set_text(o, "end_reason", runlog_reason_word(row->end_reason));
	json_object_set_new(o, "created_at", view_time(row->created_ms));
	json_object_set_new(o, "started_at", view_time(row->started_ms));
	json_object_set_new(o, "ended_at", view_time(row->ended_ms));
	json_object_set_new(
	    o, "sandbox_container_id", json_string(row->container_id));
	json_object_set_new(o, "sandbox_name", json_string(row->sandbox_name));
}

static const char *
wait_word(enum sched_wait waits)
{
	switch (waits) {
	case SCHED_WAITS_FOR_SANDBOX:
		return "sandbox";
	case SCHED_WAITS_FOR_RUNS:
		return "other_runs";
	case SCHED_WAITS_FOR_LOCK:
		return "lock";
	default:
		return "";
	}
}

json_t *
view_run(const struct store_run *row, const struct log_digest *d,
    const struct view_wish *wish)
{
	const struct view_levels at = {wishes_level(row), heads_level(row, d)};
	json_t *o = json_object(), *commands = json_array();

	view_head(o, row);
	set_text(o, "waits_for", wait_word(wish->waits));
	for (uint32_t i = 0; i < row->ncommands; i++)
		json_array_append_new(commands,
		    view_command(&row->commands[i], &d->commands[i], &at));
	json_object_set_new(o, "commands", commands);
	set_artifacts(o, row, wish->artifacts_from);
	set_text(o, "artifacts_error", row->artifacts_error);
	set_text(o, "error", row->error);
	return o;
}

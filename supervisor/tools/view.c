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

/* The first bytes, how many there are in all, and, if there are more, the last
 * ones and how many are in neither.  Both are cut to whole characters. */
static void
set_stream(
    json_t *o, const char *name, const struct log_stream *s, uint64_t total)
{
	AUTO(auto_free) char *key = xasprintf("%s_bytes", name);
	AUTO(auto_free) char *cut = xasprintf("%s_truncated", name);
	AUTO(auto_free) char *tail = xasprintf("%s_tail", name);
	AUTO(auto_free) char *dropped = xasprintf("%s_dropped", name);
	const uint8_t *p = buf_data(&s->head), *q = buf_data(&s->tail);
	size_t n = buf_len(&s->head), m = buf_len(&s->tail), skip;

	if (total < s->bytes)
		total = s->bytes; /* it runs: its row does not know yet */
	json_object_set_new(o, key, json_integer((json_int_t)total));
	json_object_set_new(o, cut, json_boolean(total > n));
	if (total > n)
		n = utf8_complete_len(p, n);
	set_bytes(o, name, p, n);
	if (m == 0)
		return;
	skip = log_stream_dropped(s) > 0 ? utf8_broken_start_len(q, m) : 0;
	set_bytes(o, tail, q + skip, m - skip);
	json_object_set_new(
	    o, dropped, json_integer((json_int_t)(total - n - (m - skip))));
}

static json_t *
view_command(const struct store_command *c, const struct log_command *log)
{
	json_t *o = json_object();

	json_object_set_new(o, "index", json_integer(c->index));
	set_text(o, "shell", c->shell);
	set_parsed(o, "argv", c->argv_json);
	set_text(o, "cwd", c->cwd);
	set_parsed(o, "env", c->env_json);
	set_text(o, "status", command_status_word(c->status));
	set_text(o, "end_reason", runlog_reason_word(c->end_reason));
	set_text(o, "error", c->error);
	json_object_set_new(o, "exit_code",
	    c->end_reason == 0 ? json_null() : json_integer(c->exit_code));
	if (c->signal != 0)
		json_object_set_new(o, "signal", json_integer(c->signal));
	json_object_set_new(o, "timeout_ms", json_integer(c->timeout_ms));
	json_object_set_new(o, "started_at", view_time(c->started_ms));
	json_object_set_new(o, "ended_at", view_time(c->ended_ms));
	set_stream(o, "stdout", &log->out[0], c->stdout_bytes);
	set_stream(o, "stderr", &log->out[1], c->stderr_bytes);
	return o;
}

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
    enum sched_wait waits)
{
	json_t *o = json_object(), *commands = json_array();
	json_t *artifacts = json_array();

	view_head(o, row);
	set_text(o, "waits_for", wait_word(waits));
	for (uint32_t i = 0; i < row->ncommands; i++)
		json_array_append_new(
		    commands, view_command(&row->commands[i], &d->commands[i]));
	for (uint32_t i = 0; i < row->nartifacts; i++)
		json_array_append_new(
		    artifacts, view_artifact(&row->artifacts[i]));
	json_object_set_new(o, "commands", commands);
	json_object_set_new(o, "artifacts", artifacts);
	set_text(o, "artifacts_error", row->artifacts_error);
	set_text(o, "error", row->error);
	return o;
}

json_t *
view_merged(const struct log_digest *d)
{
	return js_string_bytes(buf_data(&d->merged), buf_len(&d->merged), NULL);
}

#include "supervisor/service/internal.h"

#include "common/clock.h"
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

/* stdout, stdout_bytes, stdout_truncated, and the bytes where the text cannot
 * say them. */
static void
set_stream(json_t *o, const char *name, const struct buf *b, uint64_t total)
{
	char key[32];
	bool lossy;

	(void)snprintf(key, sizeof(key), "%s_bytes", name);
	json_object_set_new(o, key,
	    json_integer(
		(json_int_t)(total > buf_len(b) ? total : buf_len(b))));
	(void)snprintf(key, sizeof(key), "%s_truncated", name);
	json_object_set_new(o, key, json_boolean(total > buf_len(b)));
	json_object_set_new(
	    o, name, js_string_bytes(buf_data(b), buf_len(b), &lossy));
	if (!lossy)
		return;
	(void)snprintf(key, sizeof(key), "%s_base64", name);
	json_object_set_new(o, key, js_base64(buf_data(b), buf_len(b)));
}

static json_t *
view_command(const struct store_command *c, struct log_head *head)
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
	/* A cap may have cut a character: give back whole ones only. */
	set_stream(o, "stdout", &head->out[0], c->stdout_bytes);
	set_stream(o, "stderr", &head->out[1], c->stderr_bytes);
	return o;
}

static json_t *
view_artifact(const struct store_artifact *a)
{
	json_t *o = json_object();
	char digest[65];

	for (size_t i = 0; i < 32; i++)
		(void)snprintf(digest + 2 * i, 3, "%02x", a->sha256[i]);
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

/* Trim a head that was cut by its cap to whole characters. */
static void
trim_head(struct buf *b, uint64_t total)
{
	if (total > buf_len(b))
		b->end = b->start + utf8_complete_len(buf_data(b), buf_len(b));
}

json_t *
view_run(const struct store_run *row, const struct log_source *l)
{
	struct log_head *heads = xcalloc(row->ncommands, sizeof(*heads));
	json_t *o = json_object(), *commands = json_array();
	json_t *artifacts = json_array();

	logview_collect(
	    l, row->ncommands, row->stdout_max, row->stderr_max, heads, NULL);
	view_head(o, row);
	for (uint32_t i = 0; i < row->ncommands; i++) {
		trim_head(&heads[i].out[0], row->commands[i].stdout_bytes);
		trim_head(&heads[i].out[1], row->commands[i].stderr_bytes);
		json_array_append_new(
		    commands, view_command(&row->commands[i], &heads[i]));
		buf_clear(&heads[i].out[0]);
		buf_clear(&heads[i].out[1]);
	}
	free(heads);
	for (uint32_t i = 0; i < row->nartifacts; i++)
		json_array_append_new(
		    artifacts, view_artifact(&row->artifacts[i]));
	json_object_set_new(o, "commands", commands);
	json_object_set_new(o, "artifacts", artifacts);
	set_text(o, "artifacts_error", row->artifacts_error);
	set_text(o, "error", row->error);
	return o;
}

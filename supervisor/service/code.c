#include "supervisor/service/tools.h"

#include <stdio.h>
#include <strings.h>

#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/service/args.h"

/*
 * The interpreter's three tools.  What goes wrong is a result that says so
 * (status "error"), in the seed's words.
 */

#define CODE_MAX (1u << 20)

static void
code_error(struct tool_call *c, const char *type, const char *message)
{
	tool_call_result(c,
	    json_pack("{s:s, s:s, s:o}", "status", "error", "error_type", type,
		"message", js_string_bytes(message, strlen(message), NULL)));
}

static const char *
why_text(const struct err *why)
{
	return why == NULL ? "the server is shutting down" : why->msg;
}

/* ---- initialize_sandbox */

static void
initialized_cb(struct sandbox *sb, int rc, const struct err *why, void *arg)
{
	struct tool_call *c = arg;

	if (rc != 0) {
		code_error(c,
		    rc == ERR_BACKEND || rc == ERR_POLICY ? "DockerException" :
							    "UnexpectedError",
		    why_text(why));
		return;
	}
	tool_call_result(c,
	    json_pack("{s:s, s:s, s:s, s:s}", "status", "success",
		"container_id", sb->row.container_id, "identifier",
		sb->row.identifier, "image", sb->row.image));
}

void
service_initialize_sandbox(struct service *s, const struct principal *p,
    json_t *args, service_json_cb done, void *arg)
{
	struct tool_call *c = tool_call_new(s, p, args, done, arg);
	const char *image = json_string_value(json_object_get(args, "image"));
	char identifier[ARGS_IDENTIFIER_MAX + 1];
	struct sandbox *sb;
	struct err e;

	if (args_identifier(args, SERVICE_IDENTIFIER_DEFAULT, identifier, &e) !=
	    0) {
		tool_call_fail(c, &e);
		return;
	}
	if (image == NULL || image[0] == '\0')
		image = conf_str(s->conf, CONF_SANDBOX_IMAGE);
	sb = sandbox_by_identifier(s, p->tenant, identifier);
	if (sb == NULL)
		sb = tool_new_sandbox(s, p,
		    &(struct sandbox_request){.identifier = identifier,
			.image = image,
			.origin = "initialize",
			.generation = 1,
			.ttl_s = args_ttl(s->conf, NULL)},
		    &e);
	else
		sandbox_touch(sb, 0);
	if (sb == NULL)
		code_error(c, "DockerException", e.msg);
	else
		sandbox_wait_open(sb, initialized_cb, c);
}

/* ---- execute_code */

/* {file} and {dir} of a language's words. */
static char *
fill_word(const char *word, const char *dir, const char *file)
{
	if (strcmp(word, "{file}") == 0)
		return xasprintf("%s/%s", dir, file);
	if (strncmp(word, "{dir}", 5) == 0)
		return xasprintf("%s%s", dir, word + 5);
	return xstrdup(word);
}

static void
fill_command(struct run_request *q, char *const *words, const char *dir,
    const char *file, uint32_t timeout_ms)
{
	struct runspec_command *c = &q->spec.commands[q->spec.ncommands];
	uint32_t n = 0;

	while (words[n] != NULL)
		n++;
	c->argv = xcalloc(n + 1, sizeof(*c->argv));
	for (uint32_t i = 0; i < n; i++)
		c->argv[c->argc++] = fill_word(words[i], dir, file);
	c->cwd = xstrdup("/workspace");
	c->timeout_ms = timeout_ms;
	c->deny = xstrdup("");
	args_command_row(&q->commands[q->spec.ncommands], q->spec.ncommands, c);
	q->spec.ncommands++;
}

static void
code_request(struct service *s, const struct language *l, const char *code,
    size_t len, const char *identifier, struct run_request *q)
{
	uint32_t timeout_ms =
	    (uint32_t)conf_int(s->conf, CONF_DEFAULT_COMMAND_TIMEOUT_MS);
	AUTO(auto_free) char *dir = NULL;
	char id[UUID_TEXT_LEN + 1];

	*q = (struct run_request){.tool = "execute_code", .await = true};
	(void)snprintf(q->identifier, sizeof(q->identifier), "%s", identifier);
	uuid_random(&q->uuid);
	uuid_format(&q->uuid, id);
	dir = xasprintf("%s%s", RUNSPEC_DIR_PREFIX, id);
	q->spec.files = xcalloc(1, sizeof(*q->spec.files));
	q->spec.nfiles = 1;
	q->spec.files[0].name = xstrdup(l->file);
	q->spec.files[0].data = xmemdup(code, len);
	q->spec.files[0].len = len;
	q->spec.files[0].mode = 0600;
	q->spec.commands = xcalloc(2, sizeof(*q->spec.commands));
	q->commands = xcalloc(2, sizeof(*q->commands));
	if (l->compile != NULL)
		fill_command(q, l->compile, dir, l->file, timeout_ms);
	fill_command(q, l->run, dir, l->file, timeout_ms);
}

/* stdout and stderr as they came, up to the cap of stdout. */
static json_t *
merged_output(const struct run *r)
{
	const struct store_run *row = &r->row;
	struct log_head *heads = xcalloc(row->ncommands, sizeof(*heads));
	struct log_source l = run_log_source(r);
	struct buf merged;
	json_t *out;

	buf_init(&merged, (size_t)row->stdout_max + row->stderr_max + 1);
	logview_collect(&l, row->ncommands, row->stdout_max, row->stderr_max,
	    heads, &merged);
	for (uint32_t i = 0; i < row->ncommands; i++) {
		buf_clear(&heads[i].out[0]);
		buf_clear(&heads[i].out[1]);
	}
	out = js_string_bytes(buf_data(&merged), buf_len(&merged), NULL);
	buf_clear(&merged);
	free(heads);
	return out;
}

static const struct store_command *
last_command(const struct run *r)
{
	const struct store_command *last = &r->row.commands[0];

	for (uint32_t i = 0; i < r->row.ncommands; i++)
		if (r->row.commands[i].end_reason != 0)
			last = &r->row.commands[i];
	return last;
}

static void
code_set_failure(json_t *o, const struct run *r, const struct store_command *k)
{
	char text[300];

	if (k->end_reason == RUNLOG_EXIT || k->end_reason == RUNLOG_SIGNAL)
		(void)snprintf(text, sizeof(text),
		    "Execution failed with exit code %d", k->exit_code);
	else
		(void)snprintf(text, sizeof(text), "Execution failed: %.200s",
		    r->row.error);
	json_object_set_new(o, "status", json_string("error"));
	json_object_set_new(o, "error_type", json_string("ExecutionError"));
	json_object_set_new(
	    o, "message", js_string_bytes(text, strlen(text), NULL));
}

static void
code_ended_cb(struct run *r, int rc, const struct err *why, void *arg)
{
	struct tool_call *c = arg;
	const struct store_command *k = last_command(r);
	char id[UUID_TEXT_LEN + 1];
	json_t *o;

	if (rc != 0) {
		code_error(c, "ExecutionError", why_text(why));
		return;
	}
	if (r->fail_code == ERR_BACKEND || r->fail_code == ERR_POLICY) {
		code_error(c, "DockerException", r->row.error);
		return;
	}
	o = json_object();
	if (r->row.state == RUN_STATE_COMPLETED)
		json_object_set_new(o, "status", json_string("success"));
	else
		code_set_failure(o, r, k);
	json_object_set_new(o, "exit_code",
	    k->end_reason == 0 ? json_null() : json_integer(k->exit_code));
	json_object_set_new(o, "output", merged_output(r));
	json_object_set_new(o, "output_truncated",
	    json_boolean(k->stdout_bytes > r->row.stdout_max ||
		k->stderr_bytes > r->row.stderr_max));
	uuid_format(&r->row.uuid, id);
	json_object_set_new(o, "run_id", json_string(id));
	tool_call_result(c, o);
}

static void
code_inserted_cb(struct run *r, int rc, const struct err *why, void *arg)
{
	struct err e;

	if (rc != 0)
		code_error(arg, "ExecutionError", why_text(why));
	else if (run_await(r, 0, code_ended_cb, arg, &e) != 0)
		code_error(arg, "ExecutionError", e.msg);
}

static void
code_unsupported(struct tool_call *c, const char *language)
{
	char text[120];

	if (strcasecmp(language, "javascript") == 0 ||
	    strcasecmp(language, "js") == 0)
		(void)snprintf(text, sizeof(text),
		    "JavaScript execution not supported in minimal container");
	else
		(void)snprintf(text, sizeof(text),
		    "Unsupported language: %.60s", language);
	tool_call_result(c,
	    json_pack("{s:s, s:s, s:o, s:n, s:n}", "status", "error",
		"error_type", "ExecutionError", "message",
		js_string_bytes(text, strlen(text), NULL), "output",
		"exit_code"));
}

static void
code_start(struct tool_call *c, struct sandbox *sb, const struct language *l)
{
	const json_t *code = json_object_get(c->args, "code");
	struct run_request q;
	struct err e;

	code_request(c->service, l, json_string_value(code),
	    json_string_length(code), sb->row.identifier, &q);
	sandbox_touch(sb, 0);
	if (run_create(sb, &c->principal, &q, code_inserted_cb, c, &e) != 0)
		code_error(c, "ExecutionError", e.msg);
	run_request_clear(&q);
}

void
service_execute_code(struct service *s, const struct principal *p, json_t *args,
    service_json_cb done, void *arg)
{
	struct tool_call *c = tool_call_new(s, p, args, done, arg);
	const char *name = json_string_value(json_object_get(args, "language"));
	char identifier[ARGS_IDENTIFIER_MAX + 1];
	const struct language *l;
	struct sandbox *sb;
	struct err e;

	if (args_identifier(args, SERVICE_IDENTIFIER_DEFAULT, identifier, &e) !=
		0 ||
	    tool_check_admission(s, &e) != 0) {
		tool_call_fail(c, &e);
		return;
	}
	sb = sandbox_by_identifier(s, p->tenant, identifier);
	l = language_find(s, name == NULL ? "python" : name);
	if (json_string_length(json_object_get(args, "code")) > CODE_MAX) {
		(void)err_set(
		    &e, ERR_INVAL, "code: more than %u bytes", CODE_MAX);
		tool_call_fail(c, &e);
	} else if (sb == NULL) {
		code_error(c, "StateError",
		    "Sandbox not initialized. Call 'initialize_sandbox' "
		    "first.");
	} else if (l == NULL) {
		code_unsupported(c, name);
	} else {
		code_start(c, sb, l);
	}
}

/* ---- stop_sandbox */

static void
stopped_result(struct tool_call *c)
{
	tool_call_result(c,
	    json_pack("{s:s, s:s}", "status", "success", "message",
		"Sandbox stopped and removed."));
}

static void
stopped_cb(struct sandbox *sb, int rc, const struct err *why, void *arg)
{
	(void)sb;
	if (rc != 0)
		code_error(arg, "CleanupError", why_text(why));
	else
		stopped_result(arg);
}

void
service_stop_sandbox(struct service *s, const struct principal *p, json_t *args,
    service_json_cb done, void *arg)
{
	struct tool_call *c = tool_call_new(s, p, args, done, arg);
	char identifier[ARGS_IDENTIFIER_MAX + 1];
	struct sandbox *sb;
	struct err e;

	if (args_identifier(args, SERVICE_IDENTIFIER_DEFAULT, identifier, &e) !=
	    0) {
		tool_call_fail(c, &e);
		return;
	}
	sb = sandbox_by_identifier(s, p->tenant, identifier);
	if (sb == NULL) {
		stopped_result(c);
		return;
	}
	sandbox_wait_gone(sb, stopped_cb, c);
	sandbox_remove(sb);
}

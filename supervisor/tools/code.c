/*
 * code.c - the tools initialize_sandbox, execute_code and stop_sandbox
 *
 * The interpreter's three.  What goes wrong is a result that says so (status
 * "error"), in the compatible tools' words.
 */
#include "supervisor/tools/tool.h"

#include <stdio.h>
#include <strings.h>

#include "common/clock.h"
#include "common/js.h"
#include "supervisor/core/sandbox.h"
#include "supervisor/tools/again.h"
#include "supervisor/tools/args.h"
#include "supervisor/tools/home.h"
#include "supervisor/tools/languages.h"
#include "supervisor/tools/line_ends.h"
#include "supervisor/tools/tool_tasks.h"
#include "supervisor/tools/view.h"
#include "supervisor/tools/wait.h"

#define UNSUPPORTED_MAX 4096
#define IDENTIFIER_DEFAULT "default"

struct code_call {
	struct tool_call t;
	struct wait wait;        /* execute_code */
	struct again again;      /* likewise */
	struct gone gone;        /* stop_sandbox */
	struct sandbox *opening; /* initialize_sandbox */
	bool was_there;          /* it had been made before this call */
	bool took_crlf;          /* execute_code: as LF */
	struct bus_member member;
};

static void
code_error(struct code_call *c, const char *type, const char *message)
{
	tool_result(&c->t,
	    json_pack("{s:s, s:s, s:o}", "status", "error", "error_type", type,
		"message", js_string_bytes(message, strlen(message), NULL)));
}

static void
code_on_clear(struct tool_call *t)
{
	struct code_call *c = (struct code_call *)t;

	wait_clear(&c->wait);
	again_clear(&c->again);
	gone_clear(&c->gone);
	if (c->opening != NULL)
		bus_leave(&c->opening->bus, &c->member);
}

static void
code_summary(const json_t *o, struct buf *line)
{
	const char *message = js_text(o, "message");
	const json_t *code = json_object_get(o, "exit_code");

	if (json_is_object(json_object_get(o, "so_far")))
		(void)buf_printf(line,
		    "run %s has not ended yet; call get_run with this run_id "
		    "(and wait_ms up to 45000) for its end",
		    js_text(o, "run_id"));
	else if (message[0] != '\0')
		(void)buf_printf(
		    line, "%.20s: %.700s", js_text(o, "status"), message);
	else if (code != NULL)
		(void)buf_printf(line, "exit code %lld",
		    (long long)json_integer_value(code));
	else
		(void)buf_printf(line, "sandbox %.40s %s, image %.200s",
		    js_text(o, "identifier"),
		    json_is_true(json_object_get(o, "existing")) ?
			"was there already, with its files" :
			"is ready",
		    js_text(o, "image"));
}

/* ---- initialize_sandbox */

static void
initialize_done(struct code_call *c, const struct sandbox *sb)
{
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:b}", "status", "success",
	    "container_id", sb->row.container_id, "identifier",
	    sb->row.identifier, "image", sb->row.image, "existing",
	    c->was_there);

	if (!c->was_there && sb->has_old_files)
		view_note_old_files(o);
	tool_result(&c->t, o);
}

static void
opening_cb(const struct bus_event *ev, void *arg)
{
	struct code_call *c = arg;

	if (ev->kind == BUS_SANDBOX_READY)
		initialize_done(c, ev->sandbox);
	else if (ev->kind == BUS_SANDBOX_FAILED)
		code_error(c,
		    ev->why->code == ERR_BACKEND ||
			    ev->why->code == ERR_POLICY ?
			"DockerException" :
			"UnexpectedError",
		    ev->why->msg);
}

static int
initialize(struct code_call *c, struct err *e)
{
	const struct conf *conf = core_conf(c->t.core);
	const char *image = js_text(c->t.arguments, "image");
	char identifier[SANDBOX_IDENTIFIER_MAX + 1];
	struct sandbox *sb = home_find(&c->t, IDENTIFIER_DEFAULT, identifier);

	c->was_there = sb != NULL;
	if (sb != NULL) {
		sandbox_touch(sb, 0);
	} else if (core_admit_sandbox(c->t.core, c->t.call->who, NULL, e) !=
		0 ||
	    sandbox_open(core_sandboxes(c->t.core),
		&(struct sandbox_wish){.who = c->t.call->who,
		    .identifier = identifier,
		    .image = image[0] != '\0' ?
			image :
			conf_str(conf, CONF_SANDBOX_IMAGE),
		    .origin = "initialize",
		    .ttl_s = args_ttl(conf, NULL)},
		&sb, e) != 0) {
		return e->code;
	}
	if (!c->was_there)
		tool_tell_sandbox(&c->t, sb);
	c->opening = sb;
	bus_join(&sb->bus, &c->member, opening_cb, c);
	if (sb->state != SANDBOX_READY)
		tool_waits(&c->t);
	return 0;
}

static void
initialize_on_start(struct tool_call *t)
{
	struct code_call *c = (struct code_call *)t;
	struct err e;

	if (initialize(c, &e) != 0)
		code_error(c, "DockerException", e.msg);
	else if (c->opening->state == SANDBOX_READY)
		initialize_done(c, c->opening);
}

const struct tool tool_initialize_sandbox = {
    .name = "initialize_sandbox",
    .size = sizeof(struct code_call),
    .start = initialize_on_start,
    .clear = code_on_clear,
    .summary = code_summary,
};

/* ---- execute_code: what became of it */

static const struct store_command *
last_command(const struct store_run *row)
{
	const struct store_command *last = &row->commands[0];

	for (uint32_t i = 0; i < row->ncommands; i++)
		if (row->commands[i].end_reason != 0)
			last = &row->commands[i];
	return last;
}

static void
set_failure(
    json_t *o, const struct store_run *row, const struct store_command *k)
{
	char text[300];

	if (k->end_reason == RUNLOG_EXIT || k->end_reason == RUNLOG_SIGNAL)
		(void)snprintf(text, sizeof(text),
		    "Execution failed with exit code %d", k->exit_code);
	else
		(void)snprintf(
		    text, sizeof(text), "Execution failed: %.200s", row->error);
	json_object_set_new(o, "status", json_string("error"));
	json_object_set_new(o, "error_type", json_string("ExecutionError"));
	json_object_set_new(
	    o, "message", js_string_bytes(text, strlen(text), NULL));
}

static json_t *
executed(const struct code_call *c, const struct store_run *row,
    const struct log_digest *d)
{
	const struct store_command *k = last_command(row);
	json_t *o = json_object();

	if (row->state == RUN_STATE_COMPLETED)
		json_object_set_new(o, "status", json_string("success"));
	else
		set_failure(o, row, k);
	json_object_set_new(o, "exit_code",
	    k->end_reason == 0 ? json_null() : json_integer(k->exit_code));
	view_merged(o, d, tool_stream_max(&c->t));
	json_object_set_new(o, "run_id", view_uuid(&row->uuid));
	json_object_set_new(o, "identifier", json_string(row->identifier));
	if (row->artifacts_total > 0)
		view_artifacts(o, row);
	if (row->artifacts_error[0] != '\0')
		json_object_set_new(o, "artifacts_error",
		    js_string_bytes(row->artifacts_error,
			strlen(row->artifacts_error), NULL));
	view_memory_kills(o, k, &d->commands[k->index]);
	view_left(o, k, &d->commands[k->index]);
	if (c->took_crlf)
		view_note_line_ends(o);
	return o;
}

/* Where a task may, it takes the place of this, if there is room for one. */
static void
code_goes_on(
    struct code_call *c, const struct run *r, const struct log_digest *d)
{
	tool_result(&c->t,
	    json_pack("{s:s, s:s, s:s, s:o, s:o}", "status", "error",
		"error_type", "NotEnded", "message",
		"the run has not ended yet; call get_run with this run_id "
		"(and wait_ms up to 45000) for its end",
		"run_id", view_uuid(&r->row.uuid), "so_far",
		view_so_far(&r->row, d, run_waits_for(r), VIEW_LAST_PRINTED)));
}

static void
execute_done(
    struct code_call *c, const struct run *r, const struct log_digest *d)
{
	json_t *o = executed(c, &r->row, d);

	if (r->has_old_files)
		view_note_old_files(o);
	tool_result_of(&c->t, o, &r->row);
}

static void
execute_over_cb(struct wait *w, enum wait_outcome outcome,
    const struct log_digest *d, const struct err *why)
{
	struct code_call *c = w->arg;
	const struct run *r = w->run;

	if (outcome == WAIT_TIMED_OUT)
		code_goes_on(c, r, d);
	else if (outcome != WAIT_IS_OVER)
		code_error(c, "ExecutionError", why->msg);
	else if (run_never_began(r))
		code_error(c, "DockerException", r->row.error);
	else
		execute_done(c, r, d);
}

static void
execute_again_cb(struct again *a, enum wait_outcome outcome,
    const struct store_run *row, const struct log_digest *d,
    const struct err *why)
{
	struct code_call *c = (struct code_call *)a->t;

	if (outcome == WAIT_TIMED_OUT)
		code_goes_on(c, a->wait.run, d);
	else if (outcome != WAIT_IS_OVER)
		code_error(c, "ExecutionError", why->msg);
	else if (again_never_began(a, row) != 0)
		code_error(c, "DockerException", row->error);
	else
		tool_result_of(&c->t, executed(c, row, d), row);
}

static void
execute_on_resume(struct tool_call *t, const void *token, size_t n)
{
	struct code_call *c = (struct code_call *)t;
	struct again_token said;
	struct err e;

	if (again_read(t, token, n, &said, &e) != 0) {
		tool_fail(t, &e);
		return;
	}
	c->took_crlf = said.bits != 0;
	again_start(&c->again, t, &said, RUN_MERGED, execute_again_cb);
}

/* ---- execute_code: the call */

static void
unsupported(struct code_call *c, const char *language)
{
	struct buf text;

	buf_init(&text, UNSUPPORTED_MAX);
	if (strcasecmp(language, "javascript") == 0 ||
	    strcasecmp(language, "js") == 0)
		(void)buf_printf(&text,
		    "JavaScript execution not supported in minimal container");
	else
		(void)buf_printf(
		    &text, "Unsupported language: %.60s", language);
	(void)buf_printf(&text, "; this server runs: ");
	languages_names(tools_languages(c->t.tools), &text);
	tool_result(&c->t,
	    json_pack("{s:s, s:s, s:o, s:n, s:n}", "status", "error",
		"error_type", "ExecutionError", "message",
		js_string_bytes(buf_data(&text), buf_len(&text), NULL),
		"output", "exit_code"));
	buf_clear(&text);
}

/* Clients give up a call after a minute, and cancel it.  Whoever reads JSON
 * knows the compatible tool, which answers with the end alone. */
static bool
waits_to_end(const struct tool_call *t)
{
	return tool_tasks_asked(t) ||
	    (!tool_tasks_may(t) &&
		(tool_is_structured(t) || tool_form(t) == TOOL_TEXT_JSON));
}

static void
execute(struct code_call *c, struct sandbox *sb, const struct language *l)
{
	const json_t *text = json_object_get(c->t.arguments, "code");
	const struct span code = {
	    (const uint8_t *)json_string_value(text), json_string_length(text)};
	struct core *core = c->t.core;
	struct run_wish w;
	struct run *r;
	struct err e;
	int rc;

	args_code_wish(core_conf(core), l, &code, &w);
	c->took_crlf =
	    l->takes_crlf && line_ends_are_crlf((const char *)code.p, code.n);
	w.by = c->t.call;
	if (args_kills_leftovers(json_object_get(c->t.arguments, "options")))
		w.spec.flags |= RUNSPEC_KILL_LEFTOVERS;
	sandbox_touch(sb, 0);
	rc = run_create(core_runs(core), sb, &w, &r, &e);
	run_wish_clear(&w);
	if (rc != 0) {
		code_error(c, "ExecutionError", e.msg);
		return;
	}
	if (!waits_to_end(&c->t))
		c->t.call->deadline_ms = clock_mono_ms() +
		    (uint64_t)conf_int(
			core_conf(core), CONF_DEFAULT_AWAIT_TIMEOUT_MS);
	wait_start(&c->wait, core_base(core), r, c->t.call, WAIT_ENDED,
	    execute_over_cb, c);
	again_set(&c->t, &r->row.uuid, again_until(c->t.call->deadline_ms),
	    c->took_crlf ? 1 : 0, "");
	tool_tasks_run(&c->t, r, c->took_crlf ? 1 : 0);
	core_turn(core);
	/* Behind RUN_START: the worker does not wait for the digest. */
	tool_tell_run(&c->t, "run.start", r);
}

static void
execute_on_start(struct tool_call *t)
{
	struct code_call *c = (struct code_call *)t;
	const char *name = js_text(t->arguments, "language");
	char identifier[SANDBOX_IDENTIFIER_MAX + 1];
	struct sandbox *sb = home_find(&c->t, IDENTIFIER_DEFAULT, identifier);
	const struct language *l;
	struct err e;

	l = languages_find(
	    tools_languages(t->tools), name[0] == '\0' ? "python" : name);
	if (core_admit_run(t->core, t->call->who, sb, &e) != 0) {
		tool_fail(t, &e);
	} else if (json_string_length(json_object_get(t->arguments, "code")) >
	    CODE_MAX) {
		(void)err_set(
		    &e, ERR_INVAL, "code: more than %u bytes", CODE_MAX);
		tool_fail(t, &e);
	} else if (sb == NULL) {
		code_error(c, "StateError",
		    "Sandbox not initialized. Call 'initialize_sandbox' "
		    "first.");
	} else if (l == NULL) {
		unsupported(c, name);
	} else {
		execute(c, sb, l);
	}
}

const struct tool tool_execute_code = {
    .name = "execute_code",
    .size = sizeof(struct code_call),
    .start = execute_on_start,
    .resume = execute_on_resume,
    .clear = code_on_clear,
    .summary = code_summary,
};

/* ---- stop_sandbox */

static void
stopped_cb(struct gone *g, const struct err *why)
{
	struct code_call *c = g->arg;
	struct err e;

	if (why != NULL) {
		home_explain_gone(why, &e);
		code_error(c, "CleanupError", e.msg);
		return;
	}
	tool_result(&c->t,
	    json_pack("{s:s, s:s}", "status", "success", "message",
		"Sandbox stopped and removed."));
}

static void
stop_on_start(struct tool_call *t)
{
	struct code_call *c = (struct code_call *)t;
	char identifier[SANDBOX_IDENTIFIER_MAX + 1];
	struct sandbox *sb = home_find(&c->t, IDENTIFIER_DEFAULT, identifier);

	if (sb != NULL) {
		tool_tell(t, "sandbox.delete", sb->row.name, NULL);
		tool_waits(t);
		gone_start(&c->gone, sb, stopped_cb, c);
	} else if ((sb = sandbox_remainder(core_sandboxes(t->core),
			t->call->who, identifier)) != NULL) {
		tool_waits(t);
		gone_watch(&c->gone, sb, stopped_cb, c);
	} else {
		c->gone.arg = c;
		stopped_cb(&c->gone, NULL);
	}
}

const struct tool tool_stop_sandbox = {
    .name = "stop_sandbox",
    .size = sizeof(struct code_call),
    .start = stop_on_start,
    .clear = code_on_clear,
    .summary = code_summary,
};

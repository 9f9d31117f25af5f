/* run_sandbox.c - the tool run_sandbox: commands, one after another, in the
 * sandbox of an identifier, which is made on first use */
#include "supervisor/tools/tool.h"

#include "common/js.h"
#include "common/clock.h"
#include "supervisor/core/secrets.h"
#include "supervisor/tools/again.h"
#include "supervisor/tools/args.h"
#include "supervisor/tools/home.h"
#include "supervisor/tools/tool_tasks.h"
#include "supervisor/tools/view.h"
#include "supervisor/tools/wait.h"

struct run_call {
	struct tool_call t;
	struct wait wait;
	struct again again;
	bool await;
	uint64_t took_crlf; /* args.h */
};

static json_t *
run_head(const struct run_call *c, const struct store_run *row)
{
	const char *path = conf_str(core_conf(c->t.core), CONF_MCP_PATH);
	char id[UUID_TEXT_LEN + 1];

	uuid_format(&row->uuid, id);
	return json_pack("{s:s, s:s, s:o, s:o, s:s, s:s}", "tool",
	    "run_sandbox", "run_id", id, "events_url",
	    json_sprintf("%s/events?run_id=%s", path, id), "status_url",
	    json_sprintf("%s/runs/%s", path, id), "identifier", row->identifier,
	    "sandbox_name", row->sandbox_name);
}

/* Also of a text of which the row has only the beginning. */
static void
note_line_ends(const struct run_call *c, json_t *run)
{
	json_t *command;
	size_t i;

	json_array_foreach (json_object_get(run, "commands"), i, command)
		if ((c->took_crlf >> i & 1) != 0)
			view_note_line_ends(command);
}

static json_t *
run_final(const struct run_call *c, const struct store_run *row,
    const struct log_digest *d)
{
	json_t *o = view_run(row, d,
	    &(struct view_wish){.size = VIEW_FOR_TOOL,
		.waits = SCHED_NOTHING_WAITS,
		.stream_max = tool_stream_max(&c->t)});

	json_object_del(o, "tool"); /* stands beside it */
	note_line_ends(c, o);
	return o;
}

/* r NULL: it has ended; fail_code: what kept it from beginning, 0: nothing. */
static void
run_say(struct run_call *c, enum wait_outcome outcome, const struct run *r,
    const struct store_run *row, int fail_code, const struct log_digest *d)
{
	struct err e;
	json_t *o;

	if (outcome == WAIT_IS_OVER && fail_code != 0) {
		(void)err_set(&e, fail_code, "%s", row->error);
		tool_fail(&c->t, &e);
		return;
	}
	o = run_head(c, row);
	if (r != NULL && r->has_old_files)
		view_note_old_files(o);
	if (c->await)
		json_object_set_new(o, "final",
		    outcome == WAIT_IS_OVER ? run_final(c, row, d) :
					      json_null());
	if (outcome == WAIT_TIMED_OUT)
		json_object_set_new(o, "so_far",
		    view_so_far(row, d, run_waits_for(r), VIEW_LAST_PRINTED));
	if (outcome == WAIT_IS_OVER)
		tool_result_of(&c->t, o, row);
	else
		tool_result(&c->t, o);
}

static void
run_over_cb(struct wait *w, enum wait_outcome outcome,
    const struct log_digest *d, const struct err *why)
{
	struct run_call *c = w->arg;
	const struct run *r = w->run;

	if (outcome == WAIT_FAILED)
		tool_fail(&c->t, why);
	else
		run_say(c, outcome, r, &r->row,
		    run_never_began(r) ? r->fail_code : 0, d);
}

static int
run_begin(struct run_call *c, struct run_args *a, struct err *e)
{
	struct core *core = c->t.core;
	struct sandbox *sb;
	bool is_new;
	struct run *r;

	a->wish.by = c->t.call;
	if (secrets_check(
		core_secrets(core), c->t.call->who, &a->wish.spec, e) != 0 ||
	    home_find_or_open(core, c->t.call->who, a->identifier, a->ttl_s,
		&sb, &is_new, e) != 0)
		return e->code;
	if (is_new)
		tool_tell_sandbox(&c->t, sb);
	if (run_create(core_runs(core), sb, &a->wish, &r, e) != 0)
		return e->code;
	c->await = a->await || tool_tasks_asked(&c->t);
	c->took_crlf = a->took_crlf;
	if (c->await)
		c->t.call->deadline_ms = clock_mono_ms() + a->await_timeout_ms;
	wait_start(&c->wait, core_base(core), r, c->t.call,
	    c->await ? WAIT_ENDED : WAIT_RECORDED, run_over_cb, c);
	again_set(&c->t, &r->row.uuid,
	    c->await ? again_until(c->t.call->deadline_ms) : AGAIN_AT_ONCE,
	    c->took_crlf, "");
	if (c->await)
		tool_tasks_run(&c->t, r, c->took_crlf);
	core_turn(core);
	/* Behind RUN_START: the worker does not wait for the digest. */
	tool_tell_run(&c->t, "run.start", r);
	return 0;
}

static void
run_on_start(struct tool_call *t)
{
	struct run_call *c = (struct run_call *)t;
	struct run_args a;
	struct err e;
	int rc;

	if (args_run_from(core_conf(t->core), tools_denylist(t->tools),
		t->arguments, &a, &e) != 0) {
		tool_fail(t, &e);
		return;
	}
	rc = run_begin(c, &a, &e);
	run_wish_clear(&a.wish);
	if (rc != 0)
		tool_fail(t, &e);
}

/* ---- said again */

static void
run_again_cb(struct again *a, enum wait_outcome outcome,
    const struct store_run *row, const struct log_digest *d,
    const struct err *why)
{
	struct run_call *c = (struct run_call *)a->t;

	if (outcome == WAIT_FAILED)
		tool_fail(&c->t, why);
	else
		run_say(
		    c, outcome, a->wait.run, row, again_never_began(a, row), d);
}

static void
run_on_resume(struct tool_call *t, const void *token, size_t n)
{
	struct run_call *c = (struct run_call *)t;
	struct again_token said;
	struct err e;

	if (again_read(t, token, n, &said, &e) != 0) {
		tool_fail(t, &e);
		return;
	}
	c->await = said.until_ms != AGAIN_AT_ONCE;
	c->took_crlf = said.bits;
	again_start(&c->again, t, &said, RUN_APART, run_again_cb);
}

static void
run_on_clear(struct tool_call *t)
{
	struct run_call *c = (struct run_call *)t;

	wait_clear(&c->wait);
	again_clear(&c->again);
}

static bool
summary_of_end(const json_t *o, struct buf *line)
{
	const json_t *final = json_object_get(o, "final");
	const char *error = js_text(final, "error");

	if (!json_is_object(final))
		return false;
	(void)buf_printf(line, "run %s %s%s%.700s", js_text(o, "run_id"),
	    js_text(final, "state"), error[0] != '\0' ? ": " : "", error);
	return true;
}

/* What a model does next, in words it can act on. */
static void
run_summary(const json_t *o, struct buf *line)
{
	if (!summary_of_end(o, line))
		(void)buf_printf(line,
		    "run %s has not ended yet; call get_run with this run_id "
		    "(and wait_ms up to 45000) for its end",
		    js_text(o, "run_id"));
}

static void
run_summary_json(const json_t *o, struct buf *line)
{
	if (!summary_of_end(o, line))
		(void)buf_printf(line,
		    "started run %s; events_url=%s; status_url=%s",
		    js_text(o, "run_id"), js_text(o, "events_url"),
		    js_text(o, "status_url"));
}

const struct tool tool_run_sandbox = {
    .name = "run_sandbox",
    .failed = "run_failed",
    .size = sizeof(struct run_call),
    .start = run_on_start,
    .resume = run_on_resume,
    .clear = run_on_clear,
    .summary = run_summary,
    .summary_json = run_summary_json,
};

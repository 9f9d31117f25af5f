/*
 * control_run.c - the tool control_run: what is done to a run that goes on
 *
 * A cancel is answered when the run's end is on disk, or after a while with
 * the state that it has then.
 */
#include "supervisor/tools/tool.h"

#include "common/clock.h"
#include "common/js.h"
#include "supervisor/core/lookup.h"
#include "supervisor/core/run.h"
#include "supervisor/tools/wait.h"

#define CANCEL_WAIT_MS 5000

struct control_call {
	struct tool_call t;
	struct lookup *lookup;
	struct lookup_found found;
	struct wait wait;
};

static void
control_done(struct control_call *c)
{
	const struct store_run *row = c->found.row;
	char id[UUID_TEXT_LEN + 1];

	uuid_format(&row->uuid, id);
	tool_result(&c->t,
	    json_pack("{s:s, s:s, s:s}", "run_id", id, "identifier",
		row->identifier, "state", run_state_word(row->state)));
}

static void
over_cb(struct wait *w, enum wait_outcome outcome, const struct log_digest *d,
    const struct err *why)
{
	struct control_call *c = w->arg;

	(void)d;
	if (outcome == WAIT_FAILED)
		tool_fail(&c->t, why);
	else
		control_done(c);
}

static void
found_cb(
    int rc, const struct lookup_found *found, const struct err *why, void *arg)
{
	struct control_call *c = arg;
	struct tool_call *t = &c->t;

	if (rc != 0) {
		tool_fail(t, why);
		return;
	}
	c->found = *found;
	if (found->run == NULL || found->run->phase == RUN_OVER) {
		control_done(c);
		return;
	}
	t->call->deadline_ms = clock_mono_ms() + CANCEL_WAIT_MS;
	wait_start(&c->wait, core_base(t->core), found->run, t->call,
	    WAIT_ENDED, over_cb, c);
	run_cancel(found->run, RUNLOG_CANCELED);
}

static void
control_on_start(struct tool_call *t, const json_t *arguments)
{
	struct control_call *c = (struct control_call *)t;
	struct uuid run;
	struct err e;

	if (uuid_parse(js_text(arguments, "run_id"), &run) != 0) {
		(void)err_set(&e, ERR_INVAL, "run_id: want the id of a run");
		tool_fail(t, &e);
		return;
	}
	c->lookup = lookup_open(t->core, t->call->who, &run, found_cb, c);
}

static void
control_on_clear(struct tool_call *t)
{
	struct control_call *c = (struct control_call *)t;

	wait_clear(&c->wait);
	lookup_close(c->lookup);
}

static void
control_summary(const json_t *o, enum tool_text_form form, struct buf *line)
{
	(void)form;
	(void)buf_printf(
	    line, "run %s is %s", js_text(o, "run_id"), js_text(o, "state"));
}

const struct tool tool_control_run = {
    .name = "control_run",
    .size = sizeof(struct control_call),
    .start = control_on_start,
    .clear = control_on_clear,
    .summary = control_summary,
};

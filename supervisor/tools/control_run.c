/*
 * control_run.c - the tool control_run: what is done to a run
 *
 * A cancel is answered when the run's end is on disk, or after a while with
 * the state that it has then.  list and kill are about processes that its
 * commands left running, which outlive it: its sandbox is asked.
 */
#include "supervisor/tools/tool.h"

#include "common/clock.h"
#include "common/js.h"
#include "common/leftlist.h"
#include "common/log.h"
#include "common/utf8.h"
#include "supervisor/core/asks.h"
#include "supervisor/core/lookup.h"
#include "supervisor/core/run.h"
#include "supervisor/core/sandbox.h"
#include "supervisor/tools/again.h"
#include "supervisor/tools/args.h"
#include "supervisor/tools/view.h"
#include "supervisor/tools/wait.h"

#define CANCEL_WAIT_MS 5000

enum control_action {
	CONTROL_CANCEL,
	CONTROL_LIST,
	CONTROL_KILL
};

struct control_call {
	struct tool_call t;
	enum control_action action;
	struct lookup *lookup;
	struct lookup_found found;
	struct ask *ask;
	struct wait wait;
	struct again again;
};

static json_t *
control_head(const struct store_run *row)
{
	return json_pack("{s:o, s:s, s:s}", "run_id", view_uuid(&row->uuid),
	    "identifier", row->identifier, "state", run_state_word(row->state));
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
		tool_result(&c->t, control_head(c->found.row));
}

static void
control_cancel(struct control_call *c)
{
	struct tool_call *t = &c->t;
	struct run *r = c->found.run;

	if (r == NULL || r->phase == RUN_OVER) {
		tool_result(t, control_head(c->found.row));
		return;
	}
	t->call->deadline_ms = clock_mono_ms() + CANCEL_WAIT_MS;
	wait_start(
	    &c->wait, core_base(t->core), r, t->call, WAIT_ENDED, over_cb, c);
	again_set(t, &r->row.uuid, again_until(t->call->deadline_ms), 0, "");
	tool_tell_run(t, "run.cancel", r);
	run_cancel(r, RUNLOG_CANCELED);
}

static json_t *
view_process(const struct leftlist_process *p)
{
	char text[LEFTLIST_TEXT_MAX];

	memcpy(text, p->text, p->ntext);
	return json_pack("{s:o, s:I, s:I, s:o}", "process",
	    json_sprintf("p%lu", (unsigned long)p->id), "pid",
	    (json_int_t)p->pid, "command", (json_int_t)p->command,
	    "command_line",
	    js_string_bytes(text, utf8_mask_controls(text, p->ntext), NULL));
}

static json_t *
view_output(const struct leftlist_log *log)
{
	static const char *const states[] = {[LEFTLIST_RUNNING] = "running",
	    [LEFTLIST_ENDED] = "ended",
	    [LEFTLIST_KILLED] = "killed",
	    [LEFTLIST_DISK_FULL] = "killed, the sandbox's disk was full"};
	bool lossy;
	json_t *o = json_pack("{s:I, s:s, s:I, s:I, s:o}", "command",
	    (json_int_t)log->command, "state", states[log->state], "bytes",
	    (json_int_t)log->bytes, "dropped",
	    (json_int_t)(log->bytes - log->noutput), "text",
	    js_string_bytes(log->output, log->noutput, &lossy));
	if (lossy)
		json_object_set_new(
		    o, "text_base64", view_base64(log->output, log->noutput));
	return o;
}

static void
control_show_left(struct control_call *c, const struct leftlist *l)
{
	json_t *o = control_head(c->found.row);
	json_t *processes = json_array(), *output = json_array();

	for (uint32_t i = 0; i < l->nprocesses; i++)
		json_array_append_new(
		    processes, view_process(&l->processes[i]));
	for (uint32_t i = 0; i < l->nlogs; i++)
		json_array_append_new(output, view_output(&l->logs[i]));
	if (c->action == CONTROL_KILL)
		json_object_set_new(
		    o, "killed", json_integer((json_int_t)l->killed));
	json_object_set_new(
	    o, "left_running", json_integer((json_int_t)l->count));
	json_object_set_new(o, "processes", processes);
	json_object_set_new(o, "output", output);
	tool_result(&c->t, o);
}

static void
control_take_left(struct control_call *c, const struct span *answer)
{
	static struct leftlist l;
	struct sandbox *sb =
	    sandboxes_find(core_sandboxes(c->t.core), c->found.row->sandbox);
	struct err e;

	if (leftlist_decode(answer->p, answer->n, &l, &e) != 0) {
		log_warn("run %s: what it left behind: %s",
		    js_text(c->t.arguments, "run_id"), e.msg);
		(void)err_set(
		    &e, ERR_BACKEND, "the sandbox's answer makes no sense");
		tool_fail(&c->t, &e);
		return;
	}
	if (sb != NULL)
		sandbox_on_left(sb, l.total);
	control_show_left(c, &l);
}

static void
left_answer_cb(
    int rc, const struct span *answer, const struct err *why, void *arg)
{
	static const struct leftlist nothing;
	struct control_call *c = arg;
	const char *process = js_text(c->t.arguments, "process");
	struct err e;

	c->ask = NULL;
	if (rc == 0) {
		control_take_left(c, answer);
	} else if (rc == ERR_LOST && process[0] == '\0') {
		/* What the run left behind went with its sandbox. */
		control_show_left(c, &nothing);
	} else if (rc == ERR_LOST || rc == ERR_NOTFOUND) {
		(void)err_set(&e, ERR_NOTFOUND,
		    "process: this run has left no %s running; action list "
		    "shows what it has",
		    process);
		tool_fail(&c->t, &e);
	} else {
		tool_fail(&c->t, why);
	}
}

static void
control_left(struct control_call *c)
{
	const char *process = js_text(c->t.arguments, "process");
	struct leftlist_ask arguments = {.run = c->found.row->uuid};
	struct ask_wish wish = {.sandbox = c->found.row->sandbox,
	    .kind = c->action == CONTROL_KILL ? ASK_LEFT_KILL : ASK_LEFT_LIST,
	    .repeat = process[0] == '\0' ? ASK_AGAIN : ASK_ONCE};
	unsigned long number;
	struct buf b;
	struct err e;

	if (process[0] != '\0') {
		number = strtoul(process + 1, NULL, 10);
		/* One that can be no process's is none either. */
		arguments.process =
		    number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
	}
	buf_init(&b, MSG_ASK_ARGUMENTS_MAX);
	leftlist_encode_ask(&arguments, &b);
	wish.arguments = (struct span){buf_data(&b), buf_len(&b)};
	c->ask = ask_open(core_asks(c->t.core), &wish, left_answer_cb, c, &e);
	buf_clear(&b);
	if (c->ask == NULL)
		tool_fail(&c->t, &e);
}

static void
found_cb(
    int rc, const struct lookup_found *found, const struct err *why, void *arg)
{
	struct control_call *c = arg;

	if (rc != 0) {
		tool_fail(&c->t, why);
		return;
	}
	c->found = *found;
	if (c->action == CONTROL_CANCEL)
		control_cancel(c);
	else
		control_left(c);
}

static enum control_action
action_of(const json_t *arguments)
{
	const char *word = js_text(arguments, "action");

	if (strcmp(word, "list") == 0)
		return CONTROL_LIST;
	return strcmp(word, "kill") == 0 ? CONTROL_KILL : CONTROL_CANCEL;
}

static int
control_parse(struct control_call *c, struct uuid *run, struct err *e)
{
	const json_t *arguments = c->t.arguments;

	c->action = action_of(arguments);
	if (args_run_id(arguments, run, e) != 0)
		return e->code;
	if (js_text(arguments, "process")[0] != '\0' &&
	    c->action != CONTROL_KILL)
		return err_set(e, ERR_INVAL,
		    "process: only with action kill; cancel ends the whole "
		    "run, list shows all");
	return 0;
}

static void
control_on_start(struct tool_call *t)
{
	struct control_call *c = (struct control_call *)t;
	struct uuid run;
	struct err e;

	if (control_parse(c, &run, &e) != 0)
		tool_fail(t, &e);
	else
		c->lookup =
		    lookup_open(t->core, t->call->who, &run, 0, found_cb, c);
}

static void
control_again_cb(struct again *a, enum wait_outcome outcome,
    const struct store_run *row, const struct log_digest *d,
    const struct err *why)
{
	(void)d;
	if (outcome == WAIT_FAILED)
		tool_fail(a->t, why);
	else
		tool_result(a->t, control_head(row));
}

/* The cancel was done, as far as it could be. */
static void
control_on_resume(struct tool_call *t, const void *token, size_t n)
{
	struct control_call *c = (struct control_call *)t;
	struct again_token said;
	struct err e;

	if (again_read(t, token, n, &said, &e) != 0)
		tool_fail(t, &e);
	else
		again_start(&c->again, t, &said, RUN_APART, control_again_cb);
}

static void
control_on_clear(struct tool_call *t)
{
	struct control_call *c = (struct control_call *)t;

	ask_close(c->ask);
	wait_clear(&c->wait);
	again_clear(&c->again);
	lookup_close(c->lookup);
}

static void
control_summary(const json_t *o, struct buf *line)
{
	const json_t *killed = json_object_get(o, "killed");
	long long left = json_integer_value(json_object_get(o, "left_running"));

	(void)buf_printf(
	    line, "run %s is %s", js_text(o, "run_id"), js_text(o, "state"));
	if (strcmp(js_text(o, "state"), "queued") == 0 ||
	    strcmp(js_text(o, "state"), "running") == 0)
		(void)buf_printf(
		    line, "; get_run with wait_ms waits for its end");
	if (killed != NULL)
		(void)buf_printf(line, "; %lld killed",
		    (long long)json_integer_value(killed));
	if (json_is_array(json_object_get(o, "processes")))
		(void)buf_printf(line, "; %lld process%s left running", left,
		    left == 1 ? "" : "es");
}

const struct tool tool_control_run = {
    .name = "control_run",
    .size = sizeof(struct control_call),
    .start = control_on_start,
    .resume = control_on_resume,
    .clear = control_on_clear,
    .summary = control_summary,
};

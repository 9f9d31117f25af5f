/*
 * get_run.c - the tool get_run: how a run stands, or ended
 *
 * It looks the run up, waits for its end if it is asked to, and shows what
 * there is then: all of it in short, or, with a cursor, a page of the output.
 * Nothing that happens to this call happens to the run.
 */
#include "supervisor/tools/tool.h"

#include "common/js.h"
#include "common/clock.h"
#include "supervisor/core/lookup.h"
#include "supervisor/core/run.h"
#include "supervisor/tools/again.h"
#include "supervisor/tools/args.h"
#include "supervisor/tools/page.h"
#include "supervisor/tools/record.h"
#include "supervisor/tools/view.h"
#include "supervisor/tools/wait.h"

struct get_call {
	struct tool_call t;
	struct lookup *lookup;
	struct lookup_found found;
	struct log_request *request;
	uint64_t upto; /* of the page: the log's length, or PAGE_GROWS */
	struct wait wait;
	uint64_t deadline_ms; /* of its waiting; 0: it does not wait */
};

static struct page_of
page_of(const struct get_call *c)
{
	return (struct page_of){&c->found.row->uuid, tool_page_key(&c->t)};
}

static uint32_t
artifacts_from(const struct get_call *c)
{
	return (uint32_t)json_integer_value(
	    json_object_get(c->t.arguments, "artifacts_from"));
}

static bool
goes_on(const struct store_run *row)
{
	return row->state == RUN_STATE_QUEUED ||
	    row->state == RUN_STATE_RUNNING;
}

static void
get_done(struct get_call *c, const struct log_digest *d)
{
	const struct store_run *row = c->found.row;
	const enum sched_wait waits = run_waits_for(c->found.run);
	json_t *o = view_run(row, d,
	    &(struct view_wish){
		.size = VIEW_FOR_TOOL,
		.waits = waits,
		.stream_max = tool_stream_max(&c->t),
		.artifacts_from = artifacts_from(c),
	    });

	record_add(o, row);
	if (goes_on(row))
		json_object_set_new(o, "so_far", view_so_far(row, d, waits, 0));
	if (goes_on(row) || artifacts_from(c) > 0)
		tool_result(&c->t, o);
	else
		tool_result_of(&c->t, o, row);
}

static void
digest_cb(int rc, const struct log_digest *d, const struct err *why, void *arg)
{
	struct get_call *c = arg;

	c->request = NULL;
	if (rc != 0)
		tool_fail(&c->t, why);
	else
		get_done(c, d);
}

static void
page_cb(
    int rc, const struct log_records *records, const struct err *why, void *arg)
{
	struct get_call *c = arg;
	const struct page_of of = page_of(c);
	const struct page_wish wish = {c->upto, tool_form(&c->t)};

	c->request = NULL;
	if (rc != 0)
		tool_fail(&c->t, why);
	else
		tool_result(
		    &c->t, page_view(c->found.row, records, &of, &wish));
}

static void
look_page(struct get_call *c, const char *cursor)
{
	const struct run *r = c->found.run;
	const struct page_of of = page_of(c);
	struct log_at at;
	struct err e;

	if (page_parse_cursor(&of, cursor, &at, &e) != 0 ||
	    lookup_check_output(&c->found, &e) != 0) {
		tool_fail(&c->t, &e);
		return;
	}
	if (r == NULL)
		c->upto = c->found.row->spool_bytes;
	else
		c->upto = r->phase == RUN_OVER ? r->length : PAGE_GROWS;
	log_view_read(c->found.view, &at, r != NULL ? r->length : UINT64_MAX,
	    PAGE_BYTES, page_cb, c, &c->request);
}

static void
look(struct get_call *c)
{
	const json_t *cursor = json_object_get(c->t.arguments, "cursor");
	const struct run *r = c->found.run;

	if (cursor != NULL) {
		look_page(c, json_string_value(cursor));
		return;
	}
	log_view_digest(c->found.view, r != NULL ? r->length : UINT64_MAX,
	    digest_cb, c, &c->request);
}

static void
over_cb(struct wait *w, enum wait_outcome outcome, const struct log_digest *d,
    const struct err *why)
{
	struct get_call *c = w->arg;

	if (d != NULL && json_object_get(c->t.arguments, "cursor") == NULL)
		get_done(c, d);
	else if (outcome == WAIT_FAILED)
		tool_fail(&c->t, why);
	else
		look(c);
}

static void
found_cb(
    int rc, const struct lookup_found *found, const struct err *why, void *arg)
{
	struct get_call *c = arg;
	struct tool_call *t = &c->t;
	if (rc != 0) {
		tool_fail(t, why);
		return;
	}
	c->found = *found;
	if (c->deadline_ms == 0 || found->run == NULL ||
	    found->run->phase == RUN_OVER) {
		look(c);
		return;
	}
	t->call->deadline_ms = c->deadline_ms;
	wait_start(&c->wait, core_base(t->core), found->run, t->call,
	    WAIT_ENDED, over_cb, c);
	call_release(t->call); /* a cancel is not the run's */
}

static void
get_begin(struct get_call *c, const struct uuid *run)
{
	struct tool_call *t = &c->t;

	if (c->deadline_ms != 0)
		again_set(t, run, again_until(c->deadline_ms),
		    artifacts_from(c), js_text(t->arguments, "cursor"));
	c->lookup = lookup_open(
	    t->core, t->call->who, run, artifacts_from(c), found_cb, c);
}

static void
get_on_start(struct tool_call *t)
{
	struct get_call *c = (struct get_call *)t;
	json_int_t wait_ms =
	    json_integer_value(json_object_get(t->arguments, "wait_ms"));
	struct uuid run;
	struct err e;

	if (args_run_id(t->arguments, &run, &e) != 0) {
		tool_fail(t, &e);
		return;
	}
	if (wait_ms > 0)
		c->deadline_ms = clock_mono_ms() + (uint64_t)wait_ms;
	get_begin(c, &run);
}

/* With the arguments that the first call had, as far as they matter. */
static void
get_on_resume(struct tool_call *t, const void *token, size_t n)
{
	struct get_call *c = (struct get_call *)t;
	struct again_token said;
	struct err e;

	if (again_read(t, token, n, &said, &e) != 0) {
		tool_fail(t, &e);
		return;
	}
	json_object_set_new(t->arguments, "artifacts_from",
	    json_integer((json_int_t)said.bits));
	if (said.text[0] != '\0')
		json_object_set_new(
		    t->arguments, "cursor", json_string(said.text));
	c->deadline_ms = again_deadline(said.until_ms);
	get_begin(c, &said.run);
}

static void
get_on_clear(struct tool_call *t)
{
	struct get_call *c = (struct get_call *)t;

	log_request_cancel(c->request);
	wait_clear(&c->wait);
	lookup_close(c->lookup);
}

static void
get_summary(const json_t *o, struct buf *line)
{
	const char *error = js_text(o, "error");

	(void)buf_printf(line, "run %s %s%s%.700s", js_text(o, "run_id"),
	    js_text(o, "state"), error[0] != '\0' ? ": " : "", error);
	if (json_is_object(json_object_get(o, "so_far")))
		(void)buf_printf(line,
		    ": call get_run again, with wait_ms up to 45000, for its "
		    "end");
}

const struct tool tool_get_run = {
    .name = "get_run",
    .size = sizeof(struct get_call),
    .start = get_on_start,
    .resume = get_on_resume,
    .clear = get_on_clear,
    .summary = get_summary,
};

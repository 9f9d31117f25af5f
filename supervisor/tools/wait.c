#include "supervisor/tools/wait.h"

#include "common/clock.h"
#include "common/timer.h"
#include "supervisor/tools/progress.h"
#include "supervisor/tools/tool.h"

static void
wait_over(struct wait *w, enum wait_outcome outcome, const struct log_digest *d,
    const struct err *why)
{
	bus_leave(&w->run->bus, &w->member);
	timer_free(w->deadline);
	w->deadline = NULL;
	progress_free(w->progress);
	w->progress = NULL;
	w->cb(w, outcome, d, why); /* may clear it */
}

static void
digest_cb(int rc, const struct log_digest *d, const struct err *why, void *arg)
{
	struct wait *w = arg;

	w->request = NULL;
	wait_over(w, rc == 0 ? WAIT_IS_OVER : WAIT_FAILED, d, why);
}

static void
texts_cb(int rc, const struct err *why, void *arg)
{
	struct wait *w = arg;

	if (rc == 0)
		log_view_digest(run_view(w->run), w->run->length, digest_cb, w,
		    &w->request);
	else
		wait_over(w, WAIT_FAILED, NULL, why);
}

/* Of what is there so far. */
static void
late_cb(int rc, const struct log_digest *d, const struct err *why, void *arg)
{
	struct wait *w = arg;

	(void)why;
	w->request = NULL;
	wait_over(w, WAIT_TIMED_OUT, rc == 0 ? d : NULL, NULL);
}

static void
look_late(struct wait *w)
{
	log_view_digest(
	    run_view(w->run), w->run->length, late_cb, w, &w->request);
}

/* Perhaps while it is looked at for being late: then it is not. */
static void
on_ended(struct wait *w)
{
	log_request_cancel(w->request);
	w->request = NULL;
	bus_leave(&w->run->bus, &w->member);
	timer_free(w->deadline);
	w->deadline = NULL;
	if (run_read(w->run, &w->reader, texts_cb, w))
		texts_cb(0, NULL, w);
}

static void
on_bus(const struct bus_event *ev, void *arg)
{
	struct wait *w = arg;

	switch (ev->kind) {
	case BUS_RUN_RECORDED:
		if (w->until == WAIT_RECORDED)
			wait_over(w, WAIT_IS_RECORDED, NULL, NULL);
		else if (w->is_late)
			look_late(w);
		break;
	case BUS_RUN_REFUSED:
	case BUS_RUN_END_FAILED:
		wait_over(w, WAIT_FAILED, NULL, ev->why);
		break;
	case BUS_RUN_ENDED:
		on_ended(w);
		break;
	default:
		break;
	}
}

/* The answer names the run, so it waits until that is on disk. */
static void
deadline_cb(void *arg)
{
	struct wait *w = arg;

	w->is_late = true;
	if (w->run->recorded == RUN_NOT_RECORDED)
		run_record(w->run);
	else
		look_late(w);
}

/* The run ends as canceled, and with it the wait. */
static void
cancel_cb(struct call *c, void *arg)
{
	struct wait *w = arg;
	struct tool_call *t = w->arg;
	struct err e;

	(void)c;
	if (t->is_for_task) { /* tasks/cancel is for the run */
		(void)err_set(&e, ERR_WRONG_STATE, "canceled");
		tool_fail(t, &e);
		return;
	}
	tool_tell_run(w->arg, "run.cancel", w->run);
	run_cancel(w->run, RUNLOG_CANCELED);
}

static void
set_deadline(struct wait *w, struct event_base *base)
{
	uint64_t now = clock_mono_ms();

	if (w->call->deadline_ms == 0)
		return;
	w->deadline = timer_new(base, deadline_cb, w);
	timer_set_ms(w->deadline,
	    w->call->deadline_ms > now ? w->call->deadline_ms - now : 0);
}

void
wait_start(struct wait *w, struct event_base *base, struct run *run,
    struct call *call, enum wait_until until, wait_cb cb, void *arg)
{
	w->run = run_ref(run);
	w->call = call;
	w->until = until;
	w->cb = cb;
	w->arg = arg;
	bus_join(&run->bus, &w->member, on_bus, w);
	if (until == WAIT_ENDED) {
		set_deadline(w, base);
		if (call_wants_progress(call))
			w->progress = progress_new(base, run, call);
	}
	call_hold(call, cancel_cb, w);
}

void
wait_clear(struct wait *w)
{
	if (w->run == NULL)
		return;
	bus_leave(&w->run->bus, &w->member);
	log_request_cancel(w->request);
	run_read_end(w->run, &w->reader);
	progress_free(w->progress);
	timer_free(w->deadline);
	run_unref(w->run);
	w->run = NULL;
}

#include "supervisor/core/counters.h"

#include <stdio.h>

#include "common/clock.h"
#include "supervisor/core/run.h"
#include "supervisor/core/sandbox.h"

_Static_assert(
    METRIC_RUNS_ENDED_TOTAL_CELLS == RUNLOG_DISK_FULL - RUNLOG_EXIT + 1,
    "the label reason has all reasons");

static const enum metric_number families[RUN_SPANS] = {
    [RUN_SPAN_QUEUE] = FAMILY_RUN_QUEUE_SECONDS,
    [RUN_SPAN_START] = FAMILY_RUN_START_SECONDS,
    [RUN_SPAN_DURATION] = FAMILY_RUN_DURATION_SECONDS,
};

static void
take(struct counters *c, enum run_span span, const struct run *r, int64_t us)
{
	uint64_t at_least_0 = us < 0 ? 0 : (uint64_t)us;
	unsigned int bucket = metric_observe(families[span], 0, at_least_0);
	struct run_sample *s = &c->latest[span][bucket];

	s->run = r->row.uuid;
	(void)snprintf(s->trace, sizeof(s->trace), "%s", r->row.trace);
	s->us = at_least_0;
	s->wall_ms = clock_wall_ms();
}

/* Of one that an earlier front made, as its row has it. */
static int64_t
since_made_us(const struct run *r)
{
	if (r->made_us != 0)
		return (int64_t)(clock_mono_us() - r->made_us);
	return (clock_wall_ms() - r->row.created_ms) * 1000;
}

static void
count_command(struct counters *c, const struct store_command *k)
{
	int64_t ms = k->ended_ms - k->started_ms;

	if (k->status == COMMAND_COMPLETED)
		c->total.commands_completed++;
	else if (k->status == COMMAND_TIMED_OUT)
		c->total.commands_timed_out++;
	else
		c->total.commands_failed++;
	(void)metric_observe(FAMILY_MCP_COMMAND_DURATION_SECONDS, 0,
	    ms < 0 ? 0 : (uint64_t)ms * 1000);
}

static void
count_run(struct counters *c, const struct run *r)
{
	const struct store_run *row = &r->row;

	/* The agent's clock is this machine's, of milliseconds. */
	if (row->started_ms != 0 && r->sent_wall_us != 0)
		take(c, RUN_SPAN_START, r,
		    row->started_ms * 1000 - r->sent_wall_us);
	take(c, RUN_SPAN_DURATION, r, since_made_us(r));
	if (row->end_reason >= RUNLOG_EXIT)
		metric_add(METRIC_RUNS_ENDED_TOTAL +
			(unsigned int)row->end_reason - RUNLOG_EXIT,
		    1);
	if (row->state == RUN_STATE_COMPLETED)
		c->total.runs_completed++;
	else if (row->state == RUN_STATE_CANCELED)
		c->total.runs_canceled++;
	else
		c->total.runs_failed++;
}

static void
counters_on(const struct bus_event *ev, void *arg)
{
	struct counters *c = arg;

	if (ev->kind == BUS_RUN_SENT)
		take(c, RUN_SPAN_QUEUE, ev->run, since_made_us(ev->run));
	else if (ev->kind == BUS_COMMAND_ENDED)
		count_command(c, &ev->run->row.commands[ev->command]);
	else if (ev->kind == BUS_RUN_ENDED)
		count_run(c, ev->run);
	else if (ev->kind == BUS_SANDBOX_GONE && ev->sandbox->is_expired)
		c->reaper_deletes++;
}

void
counters_init(struct counters *c, struct bus *bus)
{
	*c = (struct counters){0};
	bus_join(bus, &c->member, counters_on, c);
}

void
counters_clear(struct counters *c, struct bus *bus)
{
	bus_leave(bus, &c->member);
}

const struct run_sample *
counters_latest(
    const struct counters *c, enum run_span span, unsigned int bucket)
{
	const struct run_sample *s = &c->latest[span][bucket];

	return s->wall_ms == 0 ? NULL : s;
}

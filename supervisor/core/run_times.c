#include "supervisor/core/run_times.h"

#include <stdio.h>

#include "common/clock.h"
#include "supervisor/core/run.h"

_Static_assert(
    METRIC_RUNS_ENDED_TOTAL_CELLS == RUNLOG_DISK_FULL - RUNLOG_EXIT + 1,
    "the label reason has all reasons");

static const enum metric_number families[RUN_SPANS] = {
    [RUN_SPAN_QUEUE] = FAMILY_RUN_QUEUE_SECONDS,
    [RUN_SPAN_START] = FAMILY_RUN_START_SECONDS,
    [RUN_SPAN_DURATION] = FAMILY_RUN_DURATION_SECONDS,
};

static void
take(struct run_times *t, enum run_span span, const struct run *r, uint64_t us)
{
	unsigned int bucket = metric_observe(families[span], 0, us);
	struct run_sample *s = &t->latest[span][bucket];

	s->run = r->row.uuid;
	(void)snprintf(s->trace, sizeof(s->trace), "%s", r->row.trace);
	s->us = us;
	s->wall_ms = clock_wall_ms();
}

/* Of one that an earlier front made, as its row has it. */
static uint64_t
since_made_us(const struct run *r)
{
	int64_t ms = clock_wall_ms() - r->row.created_ms;

	if (r->clock.made_us != 0)
		return clock_mono_us() - r->clock.made_us;
	return ms < 0 ? 0 : (uint64_t)ms * 1000;
}

/* The agent's clock is this machine's, of milliseconds. */
static void
take_start(struct run_times *t, const struct run *r)
{
	int64_t us = r->row.started_ms * 1000 - r->clock.sent_wall_us;

	if (r->row.started_ms != 0 && r->clock.sent_wall_us != 0)
		take(t, RUN_SPAN_START, r, us < 0 ? 0 : (uint64_t)us);
}

static void
run_times_on(const struct bus_event *ev, void *arg)
{
	struct run_times *t = arg;
	const struct run *r = ev->run;

	if (ev->kind == BUS_RUN_SENT) {
		take(t, RUN_SPAN_QUEUE, r, since_made_us(r));
	} else if (ev->kind == BUS_RUN_ENDED) {
		take_start(t, r);
		take(t, RUN_SPAN_DURATION, r, since_made_us(r));
		if (r->row.end_reason >= RUNLOG_EXIT)
			metric_add(METRIC_RUNS_ENDED_TOTAL +
				(unsigned int)r->row.end_reason - RUNLOG_EXIT,
			    1);
	}
}

void
run_times_init(struct run_times *t, struct bus *bus)
{
	*t = (struct run_times){0};
	bus_join(bus, &t->member, run_times_on, t);
}

void
run_times_clear(struct run_times *t, struct bus *bus)
{
	bus_leave(bus, &t->member);
}

const struct run_sample *
run_times_latest(
    const struct run_times *t, enum run_span span, unsigned int bucket)
{
	const struct run_sample *s = &t->latest[span][bucket];

	return s->wall_ms == 0 ? NULL : s;
}

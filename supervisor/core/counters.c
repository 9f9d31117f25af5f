#include "supervisor/core/counters.h"

#include "common/metric.h"
#include "supervisor/core/run.h"
#include "supervisor/core/sandbox.h"

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
count_run(struct counters *c, const struct store_run *row)
{
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

	if (ev->kind == BUS_COMMAND_ENDED)
		count_command(c, &ev->run->row.commands[ev->command]);
	else if (ev->kind == BUS_RUN_ENDED)
		count_run(c, &ev->run->row);
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

void
counters_restore(struct counters *c, const struct store_counts *total)
{
	c->total = *total;
}

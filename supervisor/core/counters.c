#include "supervisor/core/counters.h"

#include "supervisor/core/run.h"
#include "supervisor/core/sandbox.h"

const double counters_bounds[COUNTERS_BOUNDS] = {
    0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30, 120};

static void
count_duration(struct counters_histogram *h, int64_t duration_ms)
{
	double seconds = (double)(duration_ms < 0 ? 0 : duration_ms) / 1000;
	size_t i = 0;

	while (i < COUNTERS_BOUNDS && seconds > counters_bounds[i])
		i++;
	h->bucket[i]++;
	h->count++;
	h->sum += seconds;
}

static void
count_command(struct counters *c, const struct store_command *k)
{
	if (k->status == COMMAND_COMPLETED)
		c->total.commands_completed++;
	else if (k->status == COMMAND_TIMED_OUT)
		c->total.commands_timed_out++;
	else
		c->total.commands_failed++;
	count_duration(&c->command_seconds, k->ended_ms - k->started_ms);
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

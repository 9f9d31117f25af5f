/*
 * counters.h - how many of what, and how long: a member of the core's bus
 *
 * Totals of runs and commands go on from what the database has, so that they
 * do not fall when the server starts again.  How long runs wait, start and
 * take fills the histograms of common/metric.h; of each bucket the latest run
 * is kept, for who asks for exemplars.
 */
#ifndef CORE_COUNTERS_H
#define CORE_COUNTERS_H

#include "common/base.h"
#include "common/metric.h"
#include "common/uuid.h"
#include "supervisor/core/bus.h"
#include "supervisor/store/store.h"

enum run_span {
	RUN_SPAN_QUEUE, /* as METRIC_RUN_QUEUE_SECONDS and those behind it */
	RUN_SPAN_START,
	RUN_SPAN_DURATION,
	RUN_SPANS
};

#define RUN_SAMPLE_TRACE_MAX 32
struct run_sample {
	struct uuid run;
	char trace[RUN_SAMPLE_TRACE_MAX + 1]; /* "": none */
	uint64_t us;
	int64_t wall_ms; /* 0: there was none */
};

struct counters {
	struct store_counts total;
	uint64_t reaper_deletes;
	struct run_sample latest[RUN_SPANS][METRIC_BOUNDS_MAX + 1];
	struct bus_member member;
};

void counters_init(struct counters *c, struct bus *bus);
void counters_clear(struct counters *c, struct bus *bus);
/* counters_latest - of a bucket; NULL: none */
const struct run_sample *counters_latest(
    const struct counters *c, enum run_span span, unsigned int bucket);

#endif

/*
 * run_times.h - how long runs wait, start and take, by why they end: a member
 * of the core's bus that fills the histograms of common/metric.h
 *
 * Of each bucket the latest run is kept, for who asks for exemplars.
 */
#ifndef CORE_RUN_TIMES_H
#define CORE_RUN_TIMES_H

#include "common/base.h"
#include "common/metric.h"
#include "common/uuid.h"
#include "supervisor/core/bus.h"

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

struct run_times {
	struct run_sample latest[RUN_SPANS][METRIC_BOUNDS_MAX + 1];
	struct bus_member member;
};

void run_times_init(struct run_times *t, struct bus *bus);
void run_times_clear(struct run_times *t, struct bus *bus);
/* run_times_latest - of a bucket; NULL: none */
const struct run_sample *run_times_latest(
    const struct run_times *t, enum run_span span, unsigned int bucket);

#endif

/*
 * run_deadline.h - when a run should be over, whatever its agent says
 *
 * The sum of its commands' limits, and RUN_GRACE_MS (decision 16).
 */
#ifndef CORE_RUN_DEADLINE_H
#define CORE_RUN_DEADLINE_H

#include "common/base.h"
#include "supervisor/store/store.h"

struct conf;

struct run_deadline {   /* part of a run */
	uint64_t at_ms; /* 0: its time does not count yet */
	bool is_for_files;
};

/* run_deadline_set - its time counts from now; again: it gets the grace once
 * more */
void run_deadline_set(struct run_deadline *d, const struct store_run *row,
    const struct conf *conf);
/* run_deadline_files - its programs are over, and their files are copied: once
 * there is time for that */
void run_deadline_files(struct run_deadline *d);
bool run_deadline_is_over(const struct run_deadline *d, uint64_t now_ms);

#endif

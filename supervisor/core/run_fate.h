/*
 * run_fate.h - how a run ends whose sandbox ended while the server was down,
 * or so shortly before that the run's own end is not on disk: pure
 */
#ifndef CORE_RUN_FATE_H
#define CORE_RUN_FATE_H

#include "common/base.h"
#include "common/runlog.h"
#include "supervisor/store/store.h"

struct run_fate { /* as for run_sandbox_gone */
	enum runlog_reason reason;
	int code;
	const char *text; /* a constant */
};

/* run_fate_of - by what its sandbox's row says; NULL: there is no such row */
struct run_fate run_fate_of(const struct store_sandbox *row);

#endif

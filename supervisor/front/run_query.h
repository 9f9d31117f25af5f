/*
 * run_query.h - the parameters by which runs are asked for
 *
 * Lists, statistics and exports have the same filters; each has its own
 * parameters behind them.
 */
#ifndef FRONT_RUN_QUERY_H
#define FRONT_RUN_QUERY_H

#include "supervisor/front/query.h"
#include "supervisor/front/scope.h"
#include "supervisor/store/history.h"

enum run_query_param {
	RUN_QUERY_TENANT,
	RUN_QUERY_IDENTIFIER,
	RUN_QUERY_SANDBOX,
	RUN_QUERY_PRINCIPAL,
	RUN_QUERY_TOOL,
	RUN_QUERY_STATE,
	RUN_QUERY_END_REASON,
	RUN_QUERY_EXIT_CODE,
	RUN_QUERY_LANGUAGE,
	RUN_QUERY_SINCE,
	RUN_QUERY_UNTIL,
	RUN_QUERY_MIN_DURATION,
	RUN_QUERY_MAX_DURATION,
	RUN_QUERY_Q,
	RUN_QUERY_ARTIFACT,
	RUN_QUERY_FILTERS /* so many; a route's own come here */
};

extern const char *const run_query_states[];  /* by enum run_state */
extern const char *const run_query_reasons[]; /* by enum runlog_reason - 1 */

/* The rows of a table; a macro, so that each table is one constant. */
#define RUN_QUERY_PARAMS                                                       \
	[RUN_QUERY_TENANT] = SCOPE_PARAM,                                      \
	[RUN_QUERY_IDENTIFIER] = {"identifier", QUERY_TEXT, .max = 36},        \
	[RUN_QUERY_SANDBOX] = {"sandbox", QUERY_TEXT, .max = 128},             \
	[RUN_QUERY_PRINCIPAL] = {"principal", QUERY_TEXT, .max = 128},         \
	[RUN_QUERY_TOOL] = {"tool", QUERY_TEXT, .max = 64},                    \
	[RUN_QUERY_STATE] = {"state", QUERY_WORD, .words = run_query_states},  \
	[RUN_QUERY_END_REASON] = {"end_reason", QUERY_WORD,                    \
	    .words = run_query_reasons},                                       \
	[RUN_QUERY_EXIT_CODE] = {"exit_code", QUERY_NUMBER, .max = INT32_MAX}, \
	[RUN_QUERY_LANGUAGE] = {"language", QUERY_TEXT, .max = 64},            \
	[RUN_QUERY_SINCE] = {.name = "since", .kind = QUERY_TIME},             \
	[RUN_QUERY_UNTIL] = {.name = "until", .kind = QUERY_TIME},             \
	[RUN_QUERY_MIN_DURATION] = {"min_duration_ms", QUERY_NUMBER,           \
	    .max = INT32_MAX},                                                 \
	[RUN_QUERY_MAX_DURATION] = {"max_duration_ms", QUERY_NUMBER, .min = 1, \
	    .max = INT32_MAX},                                                 \
	[RUN_QUERY_Q] = {"q", QUERY_TEXT, .max = HISTORY_Q_MAX},               \
	[RUN_QUERY_ARTIFACT] = {"artifact", QUERY_TEXT, .max = 1024}

/* run_query_filter - *out points into q and digest (32 bytes, which a digest
 * in place of a file's name becomes).  states is as asked for: see
 * record_states_on_disk */
void run_query_filter(
    const struct query *q, uint8_t digest[32], struct history_filter *out);

#endif

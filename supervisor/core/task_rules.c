#include "supervisor/core/task_rules.h"

#include <stdio.h>

#include "supervisor/core/run.h"

int64_t
task_ttl_ms(int64_t wish_ms)
{
	if (wish_ms < 0)
		return TASK_TTL_MS;
	if (wish_ms < TASK_TTL_LEAST_MS)
		return TASK_TTL_LEAST_MS;
	return wish_ms < TASK_TTL_MOST_MS ? wish_ms : TASK_TTL_MOST_MS;
}

static bool
goes_on(const struct store_task *row)
{
	return strcmp(row->run_state, RUN_STATE_QUEUED_WORD) == 0 ||
	    strcmp(row->run_state, RUN_STATE_RUNNING_WORD) == 0;
}

bool
task_is_stale(const struct store_task *row, const struct run *run)
{
	return goes_on(row) && (run == NULL || run->phase == RUN_OVER);
}

static long long
seconds(int64_t since_ms, int64_t now_ms)
{
	return now_ms > since_ms ? (long long)((now_ms - since_ms) / 1000) : 0;
}

/* The log has little else but what was printed. */
static void
add_printed(char *message, uint64_t bytes)
{
	size_t n = strlen(message);

	if (bytes >= 1000000)
		(void)snprintf(message + n, TASK_MESSAGE_MAX - n,
		    ", %llu MB printed", (unsigned long long)(bytes / 1000000));
	else if (bytes >= 1000)
		(void)snprintf(message + n, TASK_MESSAGE_MAX - n,
		    ", %llu kB printed", (unsigned long long)(bytes / 1000));
}

static void
works(const struct store_task *row, const struct run *run, int64_t now_ms,
    struct task_status *out)
{
	out->standing = TASK_WORKS;
	out->updated_ms = row->created_ms;
	if (run == NULL)
		return;
	if (run->row.started_ms == 0) {
		(void)snprintf(out->message, sizeof(out->message),
		    "queued for %lld s", seconds(run->row.created_ms, now_ms));
		return;
	}
	out->updated_ms = run->row.started_ms > row->created_ms ?
	    run->row.started_ms :
	    row->created_ms;
	(void)snprintf(out->message, sizeof(out->message), "running for %lld s",
	    seconds(run->row.started_ms, now_ms));
	add_printed(out->message, run->length);
}

static bool
never_began(const struct store_task *row)
{
	return row->run_reason == RUNLOG_START_FAILED && row->run_began_ms == 0;
}

static void
has_ended(const struct store_task *row, struct task_status *out)
{
	out->updated_ms = row->run_ended_ms > row->created_ms ?
	    row->run_ended_ms :
	    row->created_ms;
	if (strcmp(row->run_state, RUN_STATE_CANCELED_WORD) == 0) {
		out->standing = TASK_IS_CANCELED;
		return;
	}
	out->standing = never_began(row) ? TASK_HAS_FAILED : TASK_IS_DONE;
	if (strcmp(row->run_state, RUN_STATE_COMPLETED_WORD) != 0)
		(void)snprintf(out->message, sizeof(out->message),
		    "the run failed: %s", runlog_reason_word(row->run_reason));
}

void
task_stands(const struct store_task *row, const struct run *run, int64_t now_ms,
    struct task_status *out)
{
	*out = (struct task_status){
	    .standing = TASK_HAS_FAILED, .updated_ms = row->created_ms};
	if (row->cancelled_ms != 0) {
		out->standing = TASK_IS_CANCELED;
		out->updated_ms = row->cancelled_ms;
	} else if (goes_on(row)) {
		works(row, run, now_ms, out);
	} else if (row->run_state[0] != '\0') {
		has_ended(row, out);
	} else {
		(void)snprintf(out->message, sizeof(out->message),
		    "what it came to is not kept any more");
	}
}

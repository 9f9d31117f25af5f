#include "supervisor/front/run_query.h"

#include "common/hex.h"
#include "common/words_gen.h"

const char *const run_query_states[] = {RUN_STATE_QUEUED_WORD,
    RUN_STATE_RUNNING_WORD, RUN_STATE_COMPLETED_WORD, RUN_STATE_FAILED_WORD,
    RUN_STATE_CANCELED_WORD, NULL};
const char *const run_query_reasons[] = {RUNLOG_EXIT_WORD, RUNLOG_SIGNAL_WORD,
    RUNLOG_TIMEOUT_WORD, RUNLOG_MEMORY_WORD, RUNLOG_OUTPUT_LIMIT_WORD,
    RUNLOG_CANCELED_WORD, RUNLOG_START_FAILED_WORD, RUNLOG_DENIED_WORD,
    RUNLOG_LOST_WORD, RUNLOG_INTERNAL_WORD, RUNLOG_DISK_FULL_WORD, NULL};

/* 64 digits are no name that somebody gives a file by hand. */
static void
set_artifact(
    const struct query_value *v, uint8_t digest[32], struct history_filter *f)
{
	if (!v->is_given)
		return;
	if (hex_decode(v->text, digest, 32) == 0)
		f->digest = digest;
	else
		f->artifact = v->text;
}

void
run_query_filter(
    const struct query *q, uint8_t digest[32], struct history_filter *out)
{
	const struct query_value *v = q->values;

	*out = (struct history_filter){
	    .identifier = v[RUN_QUERY_IDENTIFIER].text,
	    .sandbox = v[RUN_QUERY_SANDBOX].text,
	    .principal = v[RUN_QUERY_PRINCIPAL].text,
	    .tool = v[RUN_QUERY_TOOL].text,
	    .language = v[RUN_QUERY_LANGUAGE].text,
	    .has_exit_code = v[RUN_QUERY_EXIT_CODE].is_given,
	    .exit_code = (int32_t)v[RUN_QUERY_EXIT_CODE].number,
	    .since_ms = v[RUN_QUERY_SINCE].time_ms,
	    .until_ms = query_until(&v[RUN_QUERY_UNTIL]),
	    .min_duration_ms = (int64_t)v[RUN_QUERY_MIN_DURATION].number,
	    .max_duration_ms = (int64_t)v[RUN_QUERY_MAX_DURATION].number,
	    .q = v[RUN_QUERY_Q].text,
	};
	if (v[RUN_QUERY_STATE].is_given)
		out->states = 1u << v[RUN_QUERY_STATE].word;
	if (v[RUN_QUERY_END_REASON].is_given)
		out->end_reason = (enum runlog_reason)(
		    v[RUN_QUERY_END_REASON].word + RUNLOG_EXIT);
	set_artifact(&v[RUN_QUERY_ARTIFACT], digest, out);
}

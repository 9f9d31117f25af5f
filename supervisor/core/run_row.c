#include "supervisor/core/run_row.h"

#include <stdio.h>

#include "common/buf.h"
#include "common/clock.h"
#include "common/conf.h"
#include "common/exit.h"
#include "common/xmalloc.h"

/* ---- the beginning */

/* Who asked, by what and from where; the one without a token is nobody. */
static void
set_asker(struct store_run *row, const struct call *by)
{
	static const struct call nobody;
	const struct call *c = by == NULL ? &nobody : by;
	const char *who = c->who == NULL ? "" : c->who->subject;

	row->principal = xstrdup(strcmp(who, PRINCIPAL_LOCAL) == 0 ? "" : who);
	row->client = xstrdup(c->client);
	row->address = xstrdup(c->origin);
	row->session = xstrdup(c->session);
	row->request_id = xstrdup(c->request_id);
	row->trace = xstrdup(c->trace);
	row->span = xstrdup(c->span);
	row->parent_span = xstrdup(c->parent_span);
}

void
run_row_begin(struct store_run *row, struct run_wish *w, uint64_t id,
    const struct store_sandbox *sandbox, const struct conf *conf)
{
	*row = (struct store_run){
	    .id = id,
	    .uuid = w->uuid,
	    .tenant = sandbox->tenant,
	    .sandbox = sandbox->id,
	    .identifier = xstrdup(sandbox->identifier),
	    .sandbox_name = xstrdup(sandbox->name),
	    .container_id = xstrdup(sandbox->container_id),
	    .tool = xstrdup(w->tool),
	    .language = xstrdup(w->language == NULL ? "" : w->language),
	    .rerun_of = w->rerun_of,
	    .options = run_wish_options(w),
	    .exit_code = -1,
	    .state = RUN_STATE_QUEUED,
	    .error = xstrdup(""),
	    .artifacts_error = xstrdup(""),
	    .created_ms = clock_wall_ms(),
	    .stdout_max =
		(uint32_t)conf_int(conf, CONF_DEFAULT_STDOUT_MAX_BYTES),
	    .stderr_max =
		(uint32_t)conf_int(conf, CONF_DEFAULT_STDERR_MAX_BYTES),
	    .commands = w->commands,
	    .ncommands = w->spec.ncommands,
	};
	w->commands = NULL;
	set_asker(row, w->by);
}

/* ---- records */

/* The compatible tools' words for how a command ended, and ours. */
static enum command_status
status_of(const struct runlog_end *end)
{
	switch (end->reason) {
	case RUNLOG_EXIT:
		return end->exit_code == 0 ? COMMAND_COMPLETED : COMMAND_FAILED;
	case RUNLOG_TIMEOUT:
		return COMMAND_TIMED_OUT;
	case RUNLOG_CANCELED:
		return COMMAND_CANCELED;
	default:
		return COMMAND_FAILED;
	}
}

static bool
command_ended(
    struct store_command *c, int64_t wall_us, const struct runlog_end *end)
{
	bool is_new = c->end_reason == 0;

	c->ended_ms = wall_us / 1000;
	c->exit_code = end->exit_code;
	c->signal = end->signal;
	c->stdout_bytes = end->stdout_bytes;
	c->stderr_bytes = end->stderr_bytes;
	c->cpu_us = end->cpu_us;
	c->memory_peak_bytes = end->memory_peak_bytes;
	c->memory_kills = end->memory_kills;
	c->status = status_of(end);
	c->end_reason = end->reason;
	if (end->text[0] != '\0')
		xset_text(&c->error, end->text);
	return is_new;
}

static void
command_left(struct store_command *c, const uint8_t *payload, size_t n)
{
	struct runlog_left left;

	if (runlog_parse_left(payload, n, &left, NULL) == 0)
		c->left_running = left.killed ? 0 : left.count;
}

int
run_row_parse(const struct span *record, struct runlog_header *h, struct err *e)
{
	if (record->n < RUNLOG_HEADER_BYTES ||
	    runlog_parse_header(record->p, h, e) != 0 ||
	    h->length != record->n - RUNLOG_HEADER_BYTES)
		return err_set(
		    e, ERR_PROTO, "a record of %zu bytes", record->n);
	return 0;
}

bool
run_row_take(struct store_run *row, struct run_log_end *log,
    const struct runlog_header *h, const uint8_t *payload)
{
	struct store_command *c;
	struct runlog_end end;

	if (h->command >= row->ncommands)
		return false;
	c = &row->commands[h->command];
	switch (h->type) {
	case RUNLOG_RUN_STARTED:
		row->started_ms = h->wall_us / 1000;
		row->state = RUN_STATE_RUNNING;
		break;
	case RUNLOG_COMMAND_STARTED:
		c->started_ms = h->wall_us / 1000;
		c->status = COMMAND_RUNNING;
		break;
	case RUNLOG_LEFT:
		command_left(c, payload, h->length);
		break;
	case RUNLOG_COMMAND_ENDED:
		return runlog_parse_end(payload, h->length, &end, NULL) == 0 &&
		    command_ended(c, h->wall_us, &end);
	case RUNLOG_RUN_ENDED:
		if (runlog_parse_run_end(payload, h->length, &log->end, NULL) ==
		    0)
			log->has_end = true;
		break;
	default:
		break;
	}
	return false;
}

void
run_row_take_digest(struct store_run *row, struct run_log_end *log,
    const struct log_digest *d, void (*each)(uint32_t command, void *arg),
    void *arg)
{
	if (d->started_us != 0) {
		row->started_ms = d->started_us / 1000;
		row->state = RUN_STATE_RUNNING;
	}
	for (uint32_t i = 0; i < row->ncommands && i < d->ncommands; i++) {
		const struct log_command *from = &d->commands[i];
		struct store_command *c = &row->commands[i];

		if (from->state == LOG_COMMAND_WAITING)
			continue;
		c->started_ms = from->started_us / 1000;
		command_left(c, buf_data(&from->left), buf_len(&from->left));
		if (from->state == LOG_COMMAND_ENDED) {
			if (command_ended(c, from->ended_us, &from->end))
				each(i, arg);
			continue;
		}
		c->status = COMMAND_RUNNING;
		c->stdout_bytes = from->out[0].bytes;
		c->stderr_bytes = from->out[1].bytes;
	}
	log->has_end = d->ended_us != 0;
	log->end = d->end;
}

#if LOG_DIGEST_MAX > STORE_DIGEST_MAX
#error "a digest that the store does not take"
#endif

void
run_row_keep_digest(struct store_run *row, const struct log_digest *d)
{
	struct buf b;

	buf_init(&b, LOG_DIGEST_MAX);
	log_digest_encode(d, &b);
	row->digest_len = buf_len(&b);
	row->digest = xmemdup(buf_data(&b), buf_len(&b));
	buf_clear(&b);
}

/* ---- the end */

/* What stopped the run, in the compatible tools' words. */
static char *
failure_text(const struct store_run *row, const struct runlog_run_end *end)
{
	const struct store_command *c;

	if (end->command >= row->ncommands)
		return xstrdup("");
	c = &row->commands[end->command];
	if (c->status == COMMAND_TIMED_OUT)
		return xasprintf("command %u timed out", c->index);
	switch (c->end_reason) {
	case RUNLOG_DENIED:
		return xasprintf("denylist matched: %.200s", c->error);
	case RUNLOG_START_FAILED:
		return xasprintf(
		    "command %u could not start: %.200s", c->index, c->error);
	case RUNLOG_DISK_FULL: /* the sandbox's own */
		return xasprintf(
		    "command %u was ended: %.200s", c->index, c->error);
	case RUNLOG_MEMORY:
		return xasprintf("command %u was killed at the sandbox's "
				 "memory limit",
		    c->index);
	default:
		return xasprintf(
		    "command %u failed with exit %d", c->index, c->exit_code);
	}
}

static void
end_open_commands(struct store_run *row, enum runlog_reason reason,
    void (*each)(uint32_t command, void *arg), void *arg)
{
	for (uint32_t i = 0; i < row->ncommands; i++) {
		struct store_command *c = &row->commands[i];

		if (c->status != COMMAND_RUNNING)
			continue;
		c->status = status_of(&(struct runlog_end){
		    .reason = (uint8_t)reason, .exit_code = EXIT_KILLED});
		c->end_reason = reason;
		c->ended_ms = clock_wall_ms();
		c->exit_code = EXIT_KILLED;
		each(i, arg);
	}
}

/* A disk that was full: the agent says so of the sandbox's. */
static bool
is_of_the_sandbox(const struct store_run *row, const struct run_log_end *log)
{
	return log->has_end && log->end.command < row->ncommands &&
	    row->commands[log->end.command].error != NULL &&
	    row->commands[log->end.command].error[0] != '\0';
}

static char *
ending_text(const struct store_run *row, const struct run_log_end *log,
    const struct run_ending *end, const char *text)
{
	if (text[0] != '\0')
		return xstrdup(text);
	if (end->reason == RUNLOG_CANCELED)
		return xstrdup("the run was canceled");
	if (end->reason == RUNLOG_OUTPUT_LIMIT)
		return xstrdup(
		    "the run printed more than RUN_OUTPUT_MAX_BYTES");
	if (end->reason == RUNLOG_DISK_FULL && is_of_the_sandbox(row, log))
		return failure_text(row, &log->end);
	if (end->reason == RUNLOG_DISK_FULL)
		return xstrdup(
		    "the server's disk is full: less than DISK_RESERVE_MB is "
		    "free, so the run was ended and its output is cut; delete "
		    "old runs, or let it print less");
	if (end->state == RUN_STATE_FAILED && log->has_end)
		return failure_text(row, &log->end);
	return xstrdup("");
}

/* What its commands came to.  When its turn came is not known of one that
 * began before the server was started anew: it waited until it began. */
static void
sum_commands(struct store_run *row)
{
	row->exit_code = -1;
	row->stdout_bytes = row->stderr_bytes = 0;
	row->cpu_us = row->memory_peak_bytes = 0;
	for (uint32_t i = 0; i < row->ncommands; i++) {
		const struct store_command *c = &row->commands[i];

		if (c->end_reason != 0)
			row->exit_code = c->exit_code;
		row->stdout_bytes += c->stdout_bytes;
		row->stderr_bytes += c->stderr_bytes;
		row->cpu_us += c->cpu_us;
		if (c->memory_peak_bytes > row->memory_peak_bytes)
			row->memory_peak_bytes = c->memory_peak_bytes;
	}
	if (row->sent_ms == 0)
		row->sent_ms = row->started_ms;
}

/* The run went through its commands: how the one ended that decided it. */
static enum runlog_reason
deciding_reason(const struct store_run *row, const struct run_log_end *log)
{
	enum runlog_reason reason = RUNLOG_EXIT;

	if (log->has_end && log->end.failed &&
	    log->end.command < row->ncommands)
		reason = row->commands[log->end.command].end_reason;
	return reason != 0 ? reason : RUNLOG_EXIT;
}

void
run_row_end(struct store_run *row, const struct run_log_end *log,
    enum runlog_reason reason, const char *text,
    void (*each)(uint32_t command, void *arg), void *arg,
    struct run_ending *out)
{
	struct run_ending end = {.state = RUN_STATE_FAILED, .reason = reason};

	end_open_commands(row, reason, each, arg);
	sum_commands(row);
	if (reason == RUNLOG_EXIT && log->has_end && !log->end.failed)
		end.state = RUN_STATE_COMPLETED;
	else if (reason == RUNLOG_CANCELED)
		end.state = RUN_STATE_CANCELED;
	end.error = ending_text(row, log, &end, text);
	if (reason == RUNLOG_EXIT)
		end.reason = deciding_reason(row, log);
	end.artifacts_error = xstrdup("");
	end.ended_ms = clock_wall_ms();
	*out = end;
}

void
run_ending_clear(struct run_ending *end)
{
	free(end->error);
	free(end->artifacts_error);
	*end = (struct run_ending){0};
}

struct store_run
run_row_ended(const struct store_run *row, const struct run_ending *end)
{
	struct store_run out = *row;

	out.state = end->state;
	out.end_reason = end->reason;
	out.error = end->error;
	out.artifacts_error = end->artifacts_error;
	out.ended_ms = end->ended_ms;
	return out;
}

void
run_row_close(struct store_run *row, struct run_ending *end)
{
	row->state = end->state;
	row->end_reason = end->reason;
	row->ended_ms = end->ended_ms;
	free(row->error);
	row->error = end->error;
	free(row->artifacts_error);
	row->artifacts_error = end->artifacts_error;
	*end = (struct run_ending){0};
}

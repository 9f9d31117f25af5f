#include "supervisor/service/internal.h"

#include <sys/stat.h>

#include "common/clock.h"
#include "common/xmalloc.h"

static void
set_string(char **to, const char *text)
{
	free(*to);
	*to = xstrdup(text);
}

/* The seed's three words for how a command ended, and ours for the rest. */
static enum command_status
command_status(const struct runlog_end *end)
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

static void
command_started(struct run *r, const struct runlog_header *h)
{
	struct store_command *c = &r->row.commands[h->command];

	c->started_ms = h->wall_us / 1000;
	c->status = COMMAND_RUNNING;
}

static void
command_ended(
    struct run *r, const struct runlog_header *h, const struct runlog_end *end)
{
	struct store_command *c = &r->row.commands[h->command];
	enum command_status status = command_status(end);

	if (c->end_reason == 0)
		service_count_command(
		    r->service, status, (int64_t)(end->wall_us / 1000));
	c->ended_ms = h->wall_us / 1000;
	c->exit_code = end->exit_code;
	c->signal = end->signal;
	c->stdout_bytes = end->stdout_bytes;
	c->stderr_bytes = end->stderr_bytes;
	c->status = status;
	c->end_reason = (enum runlog_reason)end->reason;
	if (end->text[0] != '\0')
		set_string(&c->error, end->text);
}

void
run_take_record(
    struct run *r, const struct runlog_header *h, const uint8_t *payload)
{
	struct runlog_end end;

	if (h->command >= r->row.ncommands)
		return;
	switch (h->type) {
	case RUNLOG_RUN_STARTED:
		r->row.started_ms = h->wall_us / 1000;
		r->row.state = RUN_STATE_RUNNING;
		break;
	case RUNLOG_COMMAND_STARTED:
		command_started(r, h);
		break;
	case RUNLOG_COMMAND_ENDED:
		if (runlog_parse_end(payload, h->length, &end, NULL) == 0)
			command_ended(r, h, &end);
		break;
	case RUNLOG_RUN_ENDED:
		if (runlog_parse_run_end(
			payload, h->length, &r->log_end, NULL) == 0)
			r->in_log_end = true;
		break;
	default:
		break;
	}
}

static void
rescan_cb(
    const struct runlog_header *h, const uint8_t *record, size_t len, void *arg)
{
	(void)len;
	run_take_record(arg, h, record + RUNLOG_HEADER_BYTES);
}

/*
 * After a loss the spool is all there is: take every record from it, up to
 * the first byte that makes no sense.  Output bytes of a command that was cut
 * off are counted from the records themselves.
 */
void
run_rescan(struct run *r)
{
	AUTO(auto_free) uint8_t *chunk = xmalloc(1 << 18);
	struct runlog_check check;
	struct log_source l;
	struct stat st;
	uint64_t off = 0;
	size_t n;

	if (r->spool_fd < 0 || fstat(r->spool_fd, &st) != 0)
		return;
	r->length = (uint64_t)st.st_size;
	l = run_log_source(r);
	runlog_check_init(&check, r->row.ncommands);
	while ((n = logview_read(&l, off, chunk, 1 << 18)) > 0) {
		if (runlog_check_feed(&check, chunk, n, rescan_cb, r, NULL) !=
		    0)
			break;
		off += n;
	}
	if (check.command >= 0 && !r->in_log_end) {
		r->row.commands[check.command].stdout_bytes = check.bytes[0];
		r->row.commands[check.command].stderr_bytes = check.bytes[1];
	}
}

/* What stopped the run, in the seed's words. */
static void
failure_text(struct run *r)
{
	const struct store_command *c;
	char text[256];

	if (r->log_end.command >= r->row.ncommands)
		return;
	c = &r->row.commands[r->log_end.command];
	if (c->status == COMMAND_TIMED_OUT)
		(void)snprintf(
		    text, sizeof(text), "command %u timed out", c->index);
	else if (c->end_reason == RUNLOG_DENIED)
		(void)snprintf(
		    text, sizeof(text), "denylist matched: %.200s", c->error);
	else if (c->end_reason == RUNLOG_START_FAILED)
		(void)snprintf(text, sizeof(text),
		    "command %u could not start: %.200s", c->index, c->error);
	else if (c->end_reason == RUNLOG_MEMORY)
		(void)snprintf(text, sizeof(text),
		    "command %u was killed at the sandbox's memory limit",
		    c->index);
	else
		(void)snprintf(text, sizeof(text),
		    "command %u failed with exit %d", c->index, c->exit_code);
	set_string(&r->row.error, text);
}

/* Commands that were running when the run was cut off end with it. */
static void
end_open_commands(struct run *r, unsigned int reason)
{
	for (uint32_t i = 0; i < r->row.ncommands; i++) {
		struct store_command *c = &r->row.commands[i];

		if (c->status != COMMAND_RUNNING)
			continue;
		c->status = reason == RUNLOG_CANCELED ? COMMAND_CANCELED :
							COMMAND_FAILED;
		c->end_reason = (enum runlog_reason)reason;
		c->ended_ms = clock_wall_ms();
		c->exit_code = 137;
		service_count_command(
		    r->service, c->status, c->ended_ms - c->started_ms);
	}
}

void
run_finish_row(struct run *r, unsigned int reason, const char *text)
{
	enum run_state state = RUN_STATE_FAILED;

	end_open_commands(r, reason);
	if (reason == RUNLOG_EXIT && r->in_log_end && !r->log_end.failed)
		state = RUN_STATE_COMPLETED;
	else if (reason == RUNLOG_CANCELED)
		state = RUN_STATE_CANCELED;
	r->row.state = state;
	r->row.end_reason = (enum runlog_reason)reason;
	if (text != NULL && text[0] != '\0')
		set_string(&r->row.error, text);
	else if (reason == RUNLOG_CANCELED)
		set_string(&r->row.error, "the run was canceled");
	else if (reason == RUNLOG_OUTPUT_LIMIT)
		set_string(&r->row.error,
		    "the run printed more than RUN_OUTPUT_MAX_BYTES");
	else if (state == RUN_STATE_FAILED && r->in_log_end)
		failure_text(r);
	r->row.ended_ms = clock_wall_ms();
	r->row.spool_bytes = r->length;
}

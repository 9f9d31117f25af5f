#include "supervisor/core/run_wish.h"

#include "common/xmalloc.h"

#define TRACE_VARIABLE "TRACEPARENT"

void
run_wish_clear(struct run_wish *w)
{
	struct store_run rows = {0};

	rows.commands = w->commands;
	rows.ncommands = w->commands == NULL ? 0 : w->spec.ncommands;
	store_run_clear(&rows);
	w->commands = NULL;
	runspec_clear(&w->spec);
}

uint32_t
run_wish_options(const struct run_wish *w)
{
	uint32_t options = RUN_OPTIONS_ARE_KNOWN;

	if ((w->spec.flags & RUNSPEC_CONTINUE_ON_ERROR) != 0)
		options |= RUN_GOES_ON_AFTER_ERROR;
	if (w->lock)
		options |= RUN_HAS_LOCK;
	if ((w->spec.flags & RUNSPEC_KILL_LEFTOVERS) != 0)
		options |= RUN_KILLS_LEFTOVERS;
	if (w->spec.user == RUNSPEC_USER_ROOT)
		options |= RUN_IS_ROOT;
	return options;
}

static bool
has_variable(const struct runspec_command *c, const char *name)
{
	size_t n = strlen(name);

	for (uint32_t i = 0; i < c->nenv; i++)
		if (strncmp(c->env[i], name, n) == 0 && c->env[i][n] == '=')
			return true;
	return false;
}

static void
add_trace(struct runspec_command *c, const char *traceparent)
{
	if (has_variable(c, TRACE_VARIABLE) || c->nenv >= RUNSPEC_ENV_MAX)
		return;
	c->env = xreallocarray(c->env, c->nenv + 2, sizeof(*c->env));
	c->env[c->nenv++] = xasprintf(TRACE_VARIABLE "=%s", traceparent);
	c->env[c->nenv] = NULL;
}

void
run_wish_forget_trace(struct runspec_command *c, const char *trace)
{
	const char *last = c->nenv == 0 ? "" : c->env[c->nenv - 1];

	if (trace[0] == '\0' || strstr(last, trace) == NULL ||
	    strncmp(last, TRACE_VARIABLE "=", strlen(TRACE_VARIABLE "=")) != 0)
		return;
	free(c->env[--c->nenv]);
	c->env[c->nenv] = NULL;
}

static void
each_command(struct run_wish *w,
    void (*what)(struct runspec_command *c, const char *traceparent))
{
	for (uint32_t i = 0; i < w->spec.ncommands; i++)
		what(&w->spec.commands[i], w->by->traceparent);
}

static int
encode_spec(const struct runspec *s, struct buf *b, struct err *e)
{
	buf_truncate(b, 0);
	return runspec_encode(s, b, e);
}

int
run_wish_encode(struct run_wish *w, uint8_t **out, size_t *n, struct err *e)
{
	bool is_traced = w->by != NULL && w->by->traceparent[0] != '\0';
	struct buf b;

	buf_init(&b, RUNSPEC_BYTES_MAX);
	if (is_traced)
		each_command(w, add_trace);
	if (encode_spec(&w->spec, &b, e) != 0) {
		if (is_traced)
			each_command(w, run_wish_forget_trace);
		if (!is_traced || encode_spec(&w->spec, &b, e) != 0) {
			buf_clear(&b);
			return ERR_INVAL;
		}
	}
	*n = buf_len(&b);
	*out = xmemdup(buf_data(&b), *n);
	buf_clear(&b);
	return 0;
}

struct log_caps
run_wish_caps(const struct store_run *row, enum run_merge merge)
{
	uint32_t both = row->stdout_max + row->stderr_max;

	if (both > LOG_HEADS_MAX)
		both = LOG_HEADS_MAX;
	return (struct log_caps){
	    .head = {row->stdout_max, row->stderr_max},
	    .tail = LOG_TAIL_BYTES,
	    .merged = merge == RUN_MERGED ? both : 0,
	    .heads = LOG_HEADS_MAX,
	};
}

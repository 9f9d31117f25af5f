#include "supervisor/core/run_wish.h"

#include "common/xmalloc.h"

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

int
run_wish_encode(
    const struct run_wish *w, uint8_t **out, size_t *n, struct err *e)
{
	struct buf b;

	buf_init(&b, RUNSPEC_BYTES_MAX);
	if (runspec_encode(&w->spec, &b, e) != 0) {
		buf_clear(&b);
		return ERR_INVAL;
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

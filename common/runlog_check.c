#include "common/runlog_check.h"

#define RUNLOG_CHECK_READ_BYTES 16384

void
runlog_check_init(struct runlog_check *c, uint32_t ncommands)
{
	memset(c, 0, sizeof(*c));
	runlog_scan_init(&c->scan, 0);
	c->ncommands = ncommands;
	c->command = -1;
	c->last = -1;
}

/* May a record with this header come now? */
static bool
check_order(const struct runlog_check *c, const struct runlog_header *h)
{
	switch (h->type) {
	case RUNLOG_RUN_STARTED:
		return !c->started && h->command == 0;
	case RUNLOG_COMMAND_STARTED:
		return c->started && c->command < 0 &&
		    h->command == c->last + 1 && h->command < c->ncommands;
	case RUNLOG_STDOUT:
	case RUNLOG_STDERR:
	case RUNLOG_COMMAND_ENDED:
		return c->command >= 0 && h->command == c->command &&
		    (!c->left || h->type == RUNLOG_COMMAND_ENDED);
	case RUNLOG_LEFT:
		return c->command >= 0 && h->command == c->command && !c->left;
	case RUNLOG_RUN_ENDED:
		return c->started && c->command < 0 &&
		    h->command < c->ncommands;
	}
	return false;
}

static int
check_fail_behind(struct err *e)
{
	return err_set(e, ERR_PROTO, "bytes behind the end of the run");
}

int
runlog_check_header(struct runlog_check *c, struct err *e)
{
	const struct runlog_header *h = &c->scan.header;

	if (c->ended)
		return check_fail_behind(e);
	if (!check_order(c, h))
		return err_set(e, ERR_PROTO,
		    "record of type %d for command %u out of order",
		    (int)h->type, h->command);
	if (runlog_is_output(h->type))
		c->bytes[h->type == RUNLOG_STDERR] += h->length;
	return 0;
}

static int
check_command_end(
    struct runlog_check *c, const struct runlog_piece *payload, struct err *e)
{
	struct runlog_end end;

	if (runlog_parse_end(payload->p, payload->n, &end, e) != 0)
		return ERR_PROTO;
	if (end.stdout_bytes != c->bytes[0] || end.stderr_bytes != c->bytes[1])
		return err_set(e, ERR_PROTO,
		    "command %d ended with wrong byte counts", c->command);
	c->last = c->command;
	c->command = -1;
	return 0;
}

static int
check_left(
    struct runlog_check *c, const struct runlog_piece *payload, struct err *e)
{
	struct runlog_left left;

	if (runlog_parse_left(payload->p, payload->n, &left, e) != 0)
		return ERR_PROTO;
	c->left = true;
	return 0;
}

static int
check_run_end(
    struct runlog_check *c, const struct runlog_piece *payload, struct err *e)
{
	struct runlog_run_end end;

	if (runlog_parse_run_end(payload->p, payload->n, &end, e) != 0)
		return ERR_PROTO;
	if (end.command >= c->ncommands)
		return err_set(
		    e, ERR_PROTO, "run ended at command %u", end.command);
	c->ended = true;
	return 0;
}

int
runlog_check_record(
    struct runlog_check *c, const struct runlog_piece *payload, struct err *e)
{
	switch (c->scan.header.type) {
	case RUNLOG_RUN_STARTED:
		c->started = true;
		return 0;
	case RUNLOG_COMMAND_STARTED:
		c->command = c->scan.header.command;
		c->bytes[0] = c->bytes[1] = 0;
		c->left = false;
		return 0;
	case RUNLOG_LEFT:
		return check_left(c, payload, e);
	case RUNLOG_COMMAND_ENDED:
		return check_command_end(c, payload, e);
	case RUNLOG_RUN_ENDED:
		return check_run_end(c, payload, e);
	case RUNLOG_STDOUT: /* do not come here */
	case RUNLOG_STDERR:
		break;
	}
	return 0;
}

/* What a step of the scan means for the order; step is passed through. */
static int
check_step(struct runlog_check *c, int step, const struct runlog_piece *piece,
    runlog_record_cb cb, void *arg, struct err *e)
{
	if (step == RUNLOG_HEADER && runlog_check_header(c, e) != 0)
		return ERR_PROTO;
	if (step != RUNLOG_RECORD)
		return step;
	if (runlog_check_record(c, piece, e) != 0)
		return ERR_PROTO;
	if (cb != NULL)
		cb(&c->scan.header, c->scan.head,
		    RUNLOG_HEADER_BYTES + piece->n, arg);
	return step;
}

int
runlog_check_feed(struct runlog_check *c, const uint8_t *p, size_t n,
    runlog_record_cb cb, void *arg, struct err *e)
{
	struct runlog_piece piece;
	int step;

	do {
		if (c->ended && n > 0)
			return check_fail_behind(e);
		step = runlog_scan_next(&c->scan, &p, &n, &piece, e);
		step = check_step(c, step, &piece, cb, arg, e);
	} while (step > RUNLOG_MORE);
	return step;
}

int
runlog_check_file(struct runlog_check *c, int fd, uint64_t upto,
    runlog_record_cb cb, void *arg, struct err *e)
{
	const struct runlog_source source = {.fd = fd};
	uint8_t chunk[RUNLOG_CHECK_READ_BYTES];
	struct runlog_piece piece;
	struct runlog_walk w;
	int step;

	runlog_walk_init(&w, &c->scan, &source, upto, chunk, sizeof(chunk));
	do {
		if (c->ended && c->scan.offset < upto)
			return check_fail_behind(e);
		runlog_walk_skip(&w, UINT32_MAX);
		step = runlog_walk_next(&w, &piece, e);
		step = check_step(c, step, &piece, cb, arg, e);
	} while (step > RUNLOG_MORE);
	return step;
}

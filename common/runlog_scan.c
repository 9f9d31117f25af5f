/*
 * runlog_scan.c - records of a run's log from bytes cut anywhere (scan), from a
 * file or memory with what is skipped left unread (walk), and the order that
 * runlog.h promises (check).
 */
#include "common/runlog_scan.h"

#include "common/fd.h"

bool
runlog_is_output(enum runlog_type type)
{
	return type == RUNLOG_STDOUT || type == RUNLOG_STDERR;
}

void
runlog_scan_init(struct runlog_scan *s, uint64_t offset)
{
	memset(s, 0, sizeof(*s));
	s->offset = s->at = offset;
}

static void
scan_end_record(struct runlog_scan *s)
{
	s->inside = false;
	s->nhead = 0;
}

/* n bytes of output, at most s->left, go by unseen. */
static void
scan_skip(struct runlog_scan *s, uint32_t n)
{
	s->left -= n;
	s->offset += n;
	if (s->left == 0)
		scan_end_record(s);
}

/* Take bytes until s->head has want of them; true when it has. */
static bool
scan_fill(struct runlog_scan *s, size_t want, const uint8_t **p, size_t *n)
{
	size_t take = want - s->nhead;

	if (take > *n)
		take = *n;
	if (take == 0) /* perhaps there is no *p */
		return s->nhead == want;
	memcpy(s->head + s->nhead, *p, take);
	s->nhead += take;
	s->offset += take;
	*p += take;
	*n -= take;
	return s->nhead == want;
}

static int
scan_header(struct runlog_scan *s, const uint8_t **p, size_t *n, struct err *e)
{
	if (!scan_fill(s, RUNLOG_HEADER_BYTES, p, n)) {
		if (s->nhead > 0 && s->head[0] != RUNLOG_MAGIC)
			return err_set(
			    e, ERR_PROTO, "no record: magic %#x", s->head[0]);
		return RUNLOG_MORE;
	}
	if (runlog_parse_header(s->head, &s->header, e) != 0)
		return ERR_PROTO;
	s->inside = true;
	if (runlog_is_output(s->header.type)) {
		s->left = s->header.length;
		scan_skip(s, 0); /* the end of one without payload */
	}
	return RUNLOG_HEADER;
}

static int
scan_output(struct runlog_scan *s, const uint8_t **p, size_t *n,
    struct runlog_piece *piece)
{
	piece->p = *p;
	piece->n = s->left < *n ? s->left : *n;
	if (piece->n == 0)
		return RUNLOG_MORE;
	*p += piece->n;
	*n -= piece->n;
	scan_skip(s, (uint32_t)piece->n);
	return RUNLOG_OUTPUT;
}

int
runlog_scan_next(struct runlog_scan *s, const uint8_t **p, size_t *n,
    struct runlog_piece *piece, struct err *e)
{
	if (!s->inside) {
		if (s->nhead == 0)
			s->at = s->offset;
		return scan_header(s, p, n, e);
	}
	if (runlog_is_output(s->header.type))
		return scan_output(s, p, n, piece);
	if (!scan_fill(s, RUNLOG_HEADER_BYTES + s->header.length, p, n))
		return RUNLOG_MORE;
	piece->p = s->head + RUNLOG_HEADER_BYTES;
	piece->n = s->header.length;
	scan_end_record(s);
	return RUNLOG_RECORD;
}

void
runlog_walk_init(struct runlog_walk *w, struct runlog_scan *scan,
    const struct runlog_source *source, uint64_t upto, uint8_t *chunk,
    size_t size)
{
	*w = (struct runlog_walk){.scan = scan,
	    .source = *source,
	    .upto = upto,
	    .size = size,
	    .ahead = size};
	w->chunk = chunk;
	if (source->mem == NULL || scan->offset >= upto)
		return;
	w->p = source->mem + scan->offset;
	w->n = (size_t)(upto - scan->offset);
}

static int
walk_read(struct runlog_walk *w, struct err *e)
{
	uint64_t left = w->upto - w->scan->offset;
	size_t n = left < w->ahead ? (size_t)left : w->ahead;
	ssize_t got =
	    fd_pread_all(w->source.fd, w->chunk, n, w->scan->offset, e);

	if (got < 0)
		return ERR_SYS;
	if ((size_t)got < n)
		return err_set(e, ERR_SYS, "log: shorter than it was");
	w->ahead = w->ahead < w->size / 2 ? w->ahead * 2 : w->size;
	w->nread += n;
	w->p = w->chunk;
	w->n = n;
	return 0;
}

int
runlog_walk_next(
    struct runlog_walk *w, struct runlog_piece *piece, struct err *e)
{
	int step;

	for (;;) {
		step = runlog_scan_next(w->scan, &w->p, &w->n, piece, e);
		if (step != RUNLOG_MORE || w->scan->offset >= w->upto)
			return step;
		if (walk_read(w, e) != 0)
			return ERR_SYS;
	}
}

void
runlog_walk_skip(struct runlog_walk *w, uint32_t n)
{
	uint64_t room;
	size_t have;

	if (w->scan->offset >= w->upto)
		return;
	room = w->upto - w->scan->offset;
	if (n > w->scan->left)
		n = w->scan->left;
	if (n > room)
		n = (uint32_t)room;
	if (n == 0)
		return;
	have = n < w->n ? n : w->n;
	scan_skip(w->scan, n);
	w->p += have;
	w->n -= have;
	/* Even when all of it had been read: the next is as long, perhaps. */
	if (n >= RUNLOG_WALK_JUMP_BYTES && w->size > RUNLOG_WALK_FIRST_BYTES)
		w->ahead = RUNLOG_WALK_FIRST_BYTES;
}

/* ---- the order of records */

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

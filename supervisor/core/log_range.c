#include "supervisor/core/log_range.h"

void
log_range_init(struct log_range *r)
{
	if (r->max > LOG_RANGE_BYTES_MAX)
		r->max = LOG_RANGE_BYTES_MAX;
	buf_init(&r->bytes, r->max);
	runlog_scan_init(&r->scan, 0);
}

void
log_range_clear(struct log_range *r)
{
	buf_clear(&r->bytes);
}

static bool
is_wanted(const struct log_range *r, const struct runlog_header *h)
{
	const enum log_range_stream stream =
	    h->type == RUNLOG_STDOUT ? LOG_RANGE_STDOUT : LOG_RANGE_STDERR;

	return (r->command == LOG_RANGE_ALL || r->command == h->command) &&
	    (!runlog_is_output(h->type) || (r->streams & stream) != 0);
}

/* How much of the next n bytes, which begin at total, nobody wants. */
static uint32_t
unwanted(const struct log_range *r, uint32_t n)
{
	if (buf_len(&r->bytes) == r->max || r->total + n <= r->offset)
		return n;
	return r->total < r->offset ? (uint32_t)(r->offset - r->total) : 0;
}

static void
take_output(struct log_range *r, const struct runlog_piece *piece)
{
	size_t n = piece->n, room = r->max - buf_len(&r->bytes);
	size_t skip = unwanted(r, (uint32_t)n);

	r->total += n;
	n -= skip;
	if (n > 0)
		(void)!buf_append(
		    &r->bytes, piece->p + skip, n < room ? n : room);
}

static void
take_record(struct log_range *r, const struct runlog_piece *piece)
{
	struct runlog_end end;

	if (r->scan.header.type != RUNLOG_COMMAND_ENDED ||
	    runlog_parse_end(piece->p, piece->n, &end, NULL) != 0)
		return;
	if ((r->streams & LOG_RANGE_STDOUT) != 0)
		r->claimed += end.stdout_bytes;
	if ((r->streams & LOG_RANGE_STDERR) != 0)
		r->claimed += end.stderr_bytes;
}

/* A record begins: what of it need not be read goes by. */
static void
begin_record(struct log_range *r, struct runlog_walk *walk)
{
	const uint32_t n = r->scan.header.length;
	const bool counts = is_wanted(r, &r->scan.header);
	const uint64_t before = r->scan.offset;

	if (!runlog_is_output(r->scan.header.type))
		return;
	runlog_walk_skip(walk, counts ? unwanted(r, n) : n);
	/* Of a record that is not whole yet as much as there is. */
	if (counts)
		r->total += r->scan.offset - before;
}

int
log_range_advance(struct log_range *r, const struct runlog_source *source,
    uint64_t upto, const struct log_work *work, struct err *e)
{
	struct runlog_piece piece;
	struct runlog_walk walk;
	int step;

	if (upto < r->scan.offset)
		upto = r->scan.offset;
	runlog_walk_init(
	    &walk, &r->scan, source, upto, work->chunk, work->size);
	while (walk.nread < LOG_SLICE_BYTES) {
		step = runlog_walk_next(&walk, &piece, e);
		if (step == ERR_PROTO)
			r->is_broken = true;
		if (step == ERR_PROTO || step == RUNLOG_MORE)
			return 0;
		if (step < 0)
			return step;
		if (step == RUNLOG_HEADER)
			begin_record(r, &walk);
		else if (!is_wanted(r, &r->scan.header))
			continue;
		else if (step == RUNLOG_OUTPUT)
			take_output(r, &piece);
		else
			take_record(r, &piece);
	}
	return 1;
}

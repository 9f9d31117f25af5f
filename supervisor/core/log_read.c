/*
 * log_read.c - records from a place in a log on, and bytes of its output
 *
 * Of records as many bytes of output as are wanted: the headers of the first
 * and of the last are rewritten, so that who goes through them sees records and
 * no halves.
 */
#include "supervisor/core/log_read.h"

#include "common/fd.h"
#include "common/utf8.h"
#include "common/xmalloc.h"

/* Leave out what is behind the last whole record. */
static int
cut_records(struct log_read *r, struct err *e)
{
	const struct runlog_source source = {-1, r->records.p};
	struct runlog_piece piece;
	struct runlog_scan scan;
	struct runlog_walk walk;
	int step;

	runlog_scan_init(&scan, 0);
	runlog_walk_init(&walk, &scan, &source, r->records.n, NULL, 0);
	while ((step = runlog_walk_next(&walk, &piece, e)) > RUNLOG_MORE) {
		if (step != RUNLOG_HEADER)
			continue;
		if (scan.header.length > walk.upto - scan.offset)
			break;
		if (scan.header.command >= r->ncommands) {
			step = err_set(e, ERR_PROTO,
			    "log: a record of command %u, which there is not",
			    scan.header.command);
			break;
		}
		runlog_walk_skip(&walk, UINT32_MAX);
	}
	r->records.n = (size_t)scan.at;
	r->records.next = r->from.offset + scan.at;
	return step < 0 && scan.at == 0 ? step : 0;
}

/* ---- parts of records */

static ssize_t
read_at(const struct log_read *r, uint8_t *p, size_t n, uint64_t offset,
    struct err *e)
{
	if (offset >= r->upto)
		return 0;
	if (n > r->upto - offset)
		n = (size_t)(r->upto - offset);
	if (r->source.mem == NULL)
		return fd_pread_all(r->source.fd, p, n, offset, e);
	memcpy(p, r->source.mem + offset, n);
	return (ssize_t)n;
}

static void
set_length(uint8_t *header, struct runlog_header h, uint32_t length)
{
	struct buf b = {0};

	h.length = length;
	runlog_put_header(&b, &h);
	memcpy(header, buf_data(&b), buf_len(&b));
	buf_clear(&b);
}

/* A header for what is left of the first record, and the bytes behind. */
static int
read_parts(struct log_read *r, struct runlog_header *first, struct err *e)
{
	const uint64_t at = r->from.offset + RUNLOG_HEADER_BYTES + r->from.skip;
	ssize_t got;

	r->mem = xmalloc(RUNLOG_HEADER_BYTES + r->max);
	r->records.p = r->mem;
	got = read_at(r, r->mem, RUNLOG_HEADER_BYTES, r->from.offset, e);
	if (got < RUNLOG_HEADER_BYTES)
		return got < 0 ? ERR_SYS : 0;
	if (runlog_parse_header(r->mem, first, e) != 0)
		return ERR_PROTO;
	if (r->from.skip > 0 &&
	    (!runlog_is_output(first->type) || r->from.skip >= first->length))
		return err_set(e, ERR_PROTO,
		    "log: no output at byte %u of "
		    "the record",
		    r->from.skip);
	if (first->length > r->upto - r->from.offset - RUNLOG_HEADER_BYTES)
		return 0; /* not whole yet */
	set_length(r->mem, *first, first->length - r->from.skip);
	got = read_at(r, r->mem + RUNLOG_HEADER_BYTES, r->max, at, e);
	if (got < 0)
		return ERR_SYS;
	r->records.n = RUNLOG_HEADER_BYTES + (size_t)got;
	return 0;
}

/* The record at p, of which not all was read: as much of it as was, if it is
 * output and whole in the log.  Returns how many bytes of it are given. */
static uint32_t
cut_output(const struct log_read *r, size_t p, uint64_t offset)
{
	size_t n = r->records.n - p;
	struct runlog_header h;
	uint64_t end;

	if (n <= RUNLOG_HEADER_BYTES ||
	    runlog_parse_header(r->mem + p, &h, NULL) != 0 ||
	    !runlog_is_output(h.type))
		return 0;
	end = offset + RUNLOG_HEADER_BYTES + h.length +
	    (p == 0 ? r->from.skip : 0);
	if (end > r->upto)
		return 0;
	n = utf8_complete_len(
	    r->mem + p + RUNLOG_HEADER_BYTES, n - RUNLOG_HEADER_BYTES);
	set_length(r->mem + p, h, (uint32_t)n);
	return (uint32_t)n;
}

static int
read_records(struct log_read *r, struct err *e)
{
	struct runlog_header first;
	size_t read, whole;
	uint32_t part;
	int rc = read_parts(r, &first, e);

	if (rc != 0 || r->records.n == 0)
		return rc;
	read = r->records.n;
	rc = cut_records(r, e);
	if (rc != 0)
		return rc;
	whole = r->records.n;
	r->records.n = read;
	/* In the log the first one is longer by what was skipped of it. */
	if (whole > 0)
		r->records.next = r->from.offset + r->from.skip + whole;
	part = whole < read ? cut_output(r, whole, r->records.next) : 0;
	r->records.n = whole + (part > 0 ? RUNLOG_HEADER_BYTES + part : 0);
	if (part > 0)
		r->records.skip = part + (whole == 0 ? r->from.skip : 0);
	return 0;
}

int
log_read_records(struct log_read *r, struct err *e)
{
	r->records.next = r->from.offset;
	r->records.from = r->from;
	if (r->from.offset >= r->upto)
		return 0;
	return read_records(r, e);
}

/* ---- bytes of output by their place */

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

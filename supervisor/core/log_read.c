/*
 * log_read.c - records from a place in a log on
 *
 * As many bytes of output as are wanted: the headers of the first and of the
 * last are rewritten, so that who goes through them sees records and no halves.
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

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
		runlog_scan_skip(s, 0); /* the end of one without payload */
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
	runlog_scan_skip(s, (uint32_t)piece->n);
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
runlog_scan_skip(struct runlog_scan *s, uint32_t n)
{
	s->left -= n;
	s->offset += n;
	if (s->left == 0)
		scan_end_record(s);
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
	runlog_scan_skip(w->scan, n);
	w->p += have;
	w->n -= have;
	/* Even when all of it had been read: the next is as long, perhaps. */
	if (n >= RUNLOG_WALK_JUMP_BYTES && w->size > RUNLOG_WALK_FIRST_BYTES)
		w->ahead = RUNLOG_WALK_FIRST_BYTES;
}

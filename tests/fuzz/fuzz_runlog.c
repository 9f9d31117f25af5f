/* fuzz_runlog.c - the walker sees the same records whole and in pieces, and
 * so gives the order checker the same answer; what that lets through keeps
 * the order.
 * libs: common */
#include "common/runlog_scan.h"
#include "tests/fuzz/fuzz.h"

struct seen {
	size_t records;
	size_t bytes;
	unsigned int last;
};

static void
record_cb(
    const struct runlog_header *h, const uint8_t *record, size_t len, void *arg)
{
	struct seen *s = arg;

	if (len != RUNLOG_HEADER_BYTES + h->length ||
	    record[0] != RUNLOG_MAGIC || record[1] != h->type)
		abort();
	if (h->type == RUNLOG_STDOUT || h->type == RUNLOG_STDERR)
		abort();
	if ((s->records == 0) != (h->type == RUNLOG_RUN_STARTED))
		abort();
	if (h->type == RUNLOG_COMMAND_ENDED &&
	    s->last != RUNLOG_COMMAND_STARTED && s->last != RUNLOG_LEFT)
		abort();
	if (h->type == RUNLOG_LEFT && s->last != RUNLOG_COMMAND_STARTED)
		abort();
	if (s->last == RUNLOG_RUN_ENDED)
		abort();
	s->last = h->type;
	s->records++;
	s->bytes += len;
}

static int
feed(const uint8_t *p, size_t n, size_t piece, uint32_t ncommands,
    struct seen *s)
{
	struct runlog_check c;
	struct err e;

	memset(s, 0, sizeof(*s));
	runlog_check_init(&c, ncommands);
	while (n > 0) {
		size_t take = n < piece ? n : piece;
		/* Of the exact size, for the sanitizer. */
		AUTO(auto_free) uint8_t *copy = xmemdup(p, take);

		if (runlog_check_feed(&c, copy, take, record_cb, s, &e) != 0)
			return -1;
		p += take;
		n -= take;
	}
	return 0;
}

/* What the walker alone says, as a sum over steps and bytes. */
struct walked {
	uint64_t sum;
	uint64_t at;
	int end;
};

static void
walked_step(struct walked *w, const struct runlog_scan *s, int step,
    const struct runlog_piece *piece)
{
	if (step == RUNLOG_HEADER) {
		if (s->at < w->at || s->offset != s->at + RUNLOG_HEADER_BYTES)
			abort();
		w->sum = w->sum * 31 + s->header.type;
		w->sum = w->sum * 31 + s->header.length;
		w->at = s->at;
		return;
	}
	if (s->at != w->at)
		abort();
	if (step == RUNLOG_RECORD && piece->n != s->header.length)
		abort();
	for (size_t i = 0; i < piece->n; i++)
		w->sum = w->sum * 31 + piece->p[i];
}

static struct walked
walk(const uint8_t *p, size_t n, size_t size)
{
	struct walked w = {.end = RUNLOG_MORE};
	struct runlog_scan s;

	runlog_scan_init(&s, 0);
	while (n > 0 && w.end == RUNLOG_MORE) {
		size_t left = n < size ? n : size;
		AUTO(auto_free) uint8_t *copy = xmemdup(p, left);
		const uint8_t *from = copy;
		struct runlog_piece piece;

		p += left;
		n -= left;
		while ((w.end = runlog_scan_next(
			    &s, &from, &left, &piece, NULL)) > RUNLOG_MORE)
			walked_step(&w, &s, w.end, &piece);
	}
	w.at = s.at;
	return w;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct walked one, many;
	struct seen whole, pieces;
	uint32_t ncommands;

	if (size < 2)
		return 0;
	ncommands = data[0] % 4 + 1u;
	if (feed(data + 2, size - 2, size, ncommands, &whole) !=
	    feed(data + 2, size - 2, data[1] + 1u, ncommands, &pieces))
		abort();
	if (whole.records != pieces.records || whole.bytes != pieces.bytes ||
	    whole.last != pieces.last)
		abort();
	one = walk(data + 2, size - 2, size);
	many = walk(data + 2, size - 2, data[1] + 1u);
	if (one.sum != many.sum || one.at != many.at || one.end != many.end)
		abort();
	return 0;
}

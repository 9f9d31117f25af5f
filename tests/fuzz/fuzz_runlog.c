/* fuzz_runlog.c - the order checker gives the same answer whole and in
 * pieces, and what it lets through keeps the order.
 * libs: common */
#include "common/runlog.h"
#include "common/xmalloc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
	    s->last != RUNLOG_COMMAND_STARTED)
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

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
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
	return 0;
}

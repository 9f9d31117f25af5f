/* fuzz_sse.c - server-sent events of any server, in pieces: the first byte
 * says of how many bytes.  However they are cut, the same is read. */
#include "common/buf.h"
#include "supervisor/stdio/sse_reader.h"
#include "tests/fuzz/fuzz.h"

#define MAX 4096

static void
event_cb(const char *data, size_t n, void *arg)
{
	struct buf *seen = arg;

	REQUIRE(n > 0 && n <= MAX);
	REQUIRE(buf_append(seen, data, n) == 0 && buf_append(seen, "", 1) == 0);
}

static int
feed(struct sse_reader *s, const uint8_t *data, size_t size, size_t piece)
{
	struct err e;

	for (size_t at = 0; at < size; at += piece)
		if (sse_feed(s, (const char *)data + at,
			size - at < piece ? size - at : piece, &e) != 0)
			return -1;
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole_seen, cut_seen;
	struct sse_reader whole, cut;

	if (size < 2)
		return 0;
	buf_init(&whole_seen, 0);
	buf_init(&cut_seen, 0);
	sse_init(&whole, MAX, event_cb, &whole_seen);
	sse_init(&cut, MAX, event_cb, &cut_seen);
	REQUIRE(feed(&whole, data + 1, size - 1, size) ==
	    feed(&cut, data + 1, size - 1, (size_t)data[0] + 1));
	REQUIRE(buf_len(&whole_seen) == buf_len(&cut_seen));
	REQUIRE(buf_len(&cut_seen) == 0 ||
	    memcmp(buf_data(&whole_seen), buf_data(&cut_seen),
		buf_len(&cut_seen)) == 0);
	REQUIRE(strcmp(whole.last_id, cut.last_id) == 0);
	REQUIRE(whole.retry_ms == cut.retry_ms);
	for (const char *p = whole.last_id; *p != '\0'; p++)
		REQUIRE((uint8_t)*p >= ' '); /* it becomes a header */
	sse_clear(&whole);
	sse_clear(&cut);
	buf_clear(&whole_seen);
	buf_clear(&cut_seen);
	return 0;
}

/* fuzz_websocket.c - a WebSocket server's bytes, in pieces: the first byte says
 * of how many bytes.  However they are cut, the same is read, and what is
 * answered is frames.
 * libs: worker */
#include "tests/fuzz/fuzz.h"
#include "worker/kubernetes/websocket.h"

struct reading {
	struct websocket *w;
	struct buf seen, back;
	bool is_within; /* a message */
	int rc;
};

static void
see(struct reading *r, const void *p, size_t n)
{
	REQUIRE(buf_append(&r->seen, p, n) == 0);
}

static void
begin_cb(void *arg)
{
	struct reading *r = arg;

	REQUIRE(!r->is_within);
	r->is_within = true;
	see(r, "[", 1);
}

static void
bytes_cb(const uint8_t *p, size_t n, void *arg)
{
	struct reading *r = arg;

	REQUIRE(r->is_within && n > 0);
	see(r, p, n);
}

static void
end_cb(void *arg)
{
	struct reading *r = arg;

	REQUIRE(r->is_within);
	r->is_within = false;
	see(r, "]", 1);
}

/* Control frames of the client, each with its mask: PONGs, and when it is over
 * a CLOSE. */
static void
require_frames(const struct buf *back, bool is_over)
{
	const uint8_t *p = buf_data(back);
	size_t n = buf_len(back), size;
	uint8_t last = 0;

	while (n > 0) {
		REQUIRE(n >= 6);
		REQUIRE(p[0] == 0x88 || p[0] == 0x8a);
		REQUIRE(last != 0x88);
		last = p[0];
		REQUIRE((p[1] & 0x80) != 0 && (p[1] & 0x7f) <= 125);
		size = 6 + (size_t)(p[1] & 0x7f);
		REQUIRE(n >= size);
		p += size;
		n -= size;
	}
	REQUIRE(is_over == (last == 0x88));
}

static void
read_all(struct reading *r, const uint8_t *data, size_t size, size_t piece)
{
	static const struct websocket_user user = {begin_cb, bytes_cb, end_cb};
	struct err e;

	memset(r, 0, sizeof(*r));
	r->w = websocket_new(&user, r);
	for (size_t at = 0; at < size && r->rc == 0; at += piece)
		r->rc = websocket_take(r->w, data + at,
		    size - at < piece ? size - at : piece, &r->back, &e);
	REQUIRE(r->rc == 0 || r->rc == ERR_PROTO);
	require_frames(&r->back, r->rc != 0 || websocket_is_closed(r->w));
}

static void
reading_clear(struct reading *r)
{
	websocket_free(r->w);
	buf_clear(&r->seen);
	buf_clear(&r->back);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reading whole, cut;

	if (size < 2)
		return 0;
	read_all(&whole, data + 1, size - 1, size);
	read_all(&cut, data + 1, size - 1, (size_t)data[0] + 1);
	/* Of a CLOSE's reason wslay leaves out what begins a piece. */
	if (memchr(data + 1, 0x88, size - 1) == NULL) {
		REQUIRE(whole.rc == cut.rc);
		REQUIRE(!websocket_is_closed(whole.w));
		REQUIRE(!websocket_is_closed(cut.w));
	}
	REQUIRE(buf_len(&whole.seen) == buf_len(&cut.seen));
	REQUIRE(buf_len(&cut.seen) == 0 ||
	    memcmp(buf_data(&whole.seen), buf_data(&cut.seen),
		buf_len(&cut.seen)) == 0);
	reading_clear(&whole);
	reading_clear(&cut);
	return 0;
}

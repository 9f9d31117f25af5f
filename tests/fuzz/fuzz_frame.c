/* fuzz_frame.c - the link's frames, as they come out of a byte stream.
 * libs: common */
#include "common/msg/frame_gen.h"
#include "tests/fuzz/fuzz.h"

/* Each frame of the list, both ways: what decodes is encoded again, and must
 * be the same bytes. */
static const uint8_t *whole;
static size_t whole_size;

static void
check(struct buf *b, int rc)
{
	if (rc != 0 || buf_len(b) != whole_size ||
	    memcmp(buf_data(b), whole, whole_size) != 0)
		abort();
	buf_clear(b);
}

#define HANDLER(way, name, constness)                                          \
	static int way##_on_##name(                                            \
	    void *arg, constness struct frame_##name *m, struct err *e)        \
	{                                                                      \
		struct buf *b = arg;                                           \
                                                                               \
		(void)e;                                                       \
		check(b, frame_put_##name(b, m));                              \
		return 0;                                                      \
	}
#define UP_HANDLER(name, constness) HANDLER(up, name, constness)
#define DOWN_HANDLER(name, constness) HANDLER(down, name, constness)
FRAME_UP_EACH(UP_HANDLER)
FRAME_DOWN_EACH(DOWN_HANDLER)

#define UP_ROW(name, constness) .on_##name = up_on_##name,
#define DOWN_ROW(name, constness) .on_##name = down_on_##name,
static const struct frame_up up = {FRAME_UP_EACH(UP_ROW)};
static const struct frame_down down = {FRAME_DOWN_EACH(DOWN_ROW)};

static void
read_fields(const struct buf *from, const struct frame *f)
{
	struct frame copy = *f;
	struct buf b;
	struct err e;
	int rc;

	whole = buf_data(from);
	whole_size = f->size;
	buf_init(&b, 0);
	rc = frame_dispatch_up(&up, &copy, &b, &e);
	if (rc != 0 && rc != ERR_PROTO)
		abort();
	copy = *f;
	rc = frame_dispatch_down(&down, &copy, &b, &e);
	if (rc != 0 && rc != ERR_PROTO)
		abort();
	buf_clear(&b);
}

/* The first byte says in which pieces the stream arrives. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t piece, at = 1;
	struct frame f;
	struct buf b;
	struct err e;
	int rc = 0;

	if (size == 0)
		return 0;
	piece = (size_t)data[0] * data[0] + 1;
	buf_init(&b, FRAME_UP_MAX * 2);
	while (rc == 0 && at < size) {
		size_t n = size - at < piece ? size - at : piece;

		if (buf_append(&b, data + at, n) != 0)
			abort(); /* more than two frames wait */
		at += n;
		while ((rc = frame_next(&b, FRAME_UP_MAX, &f, &e)) == 1) {
			read_fields(&b, &f);
			buf_consume(&b, f.size);
		}
	}
	if (rc != 0 && rc != ERR_PROTO)
		abort();
	buf_clear(&b);
	return 0;
}

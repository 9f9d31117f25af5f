/* fuzz_frame.c - the link's frames, as they come out of a byte stream.
 * libs: common */
#include "common/msg/frame_gen.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every kind of field in turn, chosen by the frame's own bytes. */
static void
read_fields(struct frame *f)
{
	struct wire_in all = f->in;
	const uint8_t *p;
	struct uuid u;
	struct err e;
	size_t n, got = 0;

	while (f->in.bad == NULL && f->in.left > 0) {
		switch (wire_get_u8(&f->in) & 7) {
		case 0:
			(void)wire_get_u16(&f->in);
			break;
		case 1:
			(void)wire_get_i32(&f->in);
			break;
		case 2:
			(void)wire_get_i64(&f->in);
			break;
		case 3:
			free(wire_get_str(&f->in, FRAME_PATH_MAX));
			break;
		case 4:
			p = wire_get_bytes(&f->in, FRAME_LOG_MAX, &n);
			got += p != NULL && n > 0 ? p[n - 1] : 0;
			break;
		case 5:
			wire_get_uuid(&f->in, &u);
			break;
		case 6:
			(void)wire_get_u32(&f->in);
			break;
		default:
			p = wire_get_rest(&f->in, &n);
			got += p != NULL && n > 0 ? p[n - 1] : 0;
			break;
		}
	}
	if ((wire_get_end(&f->in, &e) == 0) !=
	    (f->in.bad == NULL && f->in.left == 0))
		abort();
	if (all.left + FRAME_HEADER_BYTES != f->size || got > SIZE_MAX / 2)
		abort();
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
			read_fields(&f);
			buf_consume(&b, f.size);
		}
	}
	if (rc != 0 && rc != ERR_PROTO)
		abort();
	buf_clear(&b);
	return 0;
}

/* websocket_frames.h - the server's side of a WebSocket, byte for byte */
#ifndef TESTS_WORKER_WEBSOCKET_FRAMES_H
#define TESTS_WORKER_WEBSOCKET_FRAMES_H

#include "common/buf.h"
#include "tests/unit/test.h"

enum {
	FRAMES_FINAL = 0x80,
	FRAMES_CONTINUATION = 0,
	FRAMES_TEXT = 1,
	FRAMES_BINARY = 2,
	FRAMES_CLOSE = 8,
	FRAMES_PING = 9,
	FRAMES_PONG = 10
};

/* frames_put - a frame of the server; first is its whole first byte */
static inline void
frames_put(struct buf *b, int first, const void *p, size_t n)
{
	uint8_t head[10] = {(uint8_t)first};
	size_t nhead = 2;

	if (n < 126) {
		head[1] = (uint8_t)n;
	} else if (n < 65536) {
		head[1] = 126;
		head[2] = (uint8_t)(n >> 8);
		head[3] = (uint8_t)n;
		nhead = 4;
	} else {
		head[1] = 127;
		for (size_t i = 0; i < 8; i++)
			head[2 + i] = (uint8_t)((uint64_t)n >> (56 - 8 * i));
		nhead = 10;
	}
	assert_int_equal(buf_append(b, head, nhead), 0);
	if (n > 0)
		assert_int_equal(buf_append(b, p, n), 0);
}

/* frames_put_message - of a channel, which may be "" of data */
static inline void
frames_put_message(struct buf *b, int channel, const void *p, size_t n)
{
	uint8_t *m = xcalloc(1, n + 1);

	m[0] = (uint8_t)channel;
	memcpy(m + 1, p, n);
	frames_put(b, FRAMES_FINAL | FRAMES_BINARY, m, n + 1);
	free(m);
}

static inline void
frames_put_close(struct buf *b, unsigned int code)
{
	const uint8_t payload[] = {(uint8_t)(code >> 8), (uint8_t)code};

	frames_put(b, FRAMES_FINAL | FRAMES_CLOSE, payload, sizeof(payload));
}

/* A frame of the client, with its payload as it was before the mask. */
struct client_frame {
	int first;
	uint64_t n;
	uint8_t *p; /* in the buffer */
	size_t size;
};

/* frames_look - the first frame of the client in b, whole or not at all; false:
 * it has not come whole.  Masked it must be, and in the shortest form. */
static inline bool
frames_look(struct buf *b, struct client_frame *f)
{
	uint8_t *p = buf_data(b);
	size_t all = buf_len(b), nlength = 0;

	if (all < 2)
		return false;
	assert_int_equal(p[1] & 0x80, 0x80);
	f->first = p[0];
	f->n = p[1] & 0x7f;
	if (f->n > 125)
		nlength = f->n == 126 ? 2 : 8;
	if (all < 2 + nlength + 4)
		return false;
	if (nlength > 0)
		f->n = 0;
	for (size_t i = 0; i < nlength; i++)
		f->n = f->n << 8 | p[2 + i];
	assert_true(nlength == 0 || f->n > (nlength == 2 ? 125 : 65535));
	f->p = p + 2 + nlength + 4;
	f->size = 2 + nlength + 4 + (size_t)f->n;
	if (all < f->size)
		return false;
	for (size_t i = 0; i < f->n; i++)
		f->p[i] ^= p[2 + nlength + i % 4];
	return true;
}

/* frames_expect - the next frame of the client is this one; it is taken off */
static inline void
frames_expect(struct buf *b, int first, const void *p, size_t n)
{
	struct client_frame f = {0};

	assert_true(frames_look(b, &f));
	assert_int_equal(f.first, first);
	assert_int_equal(f.n, n);
	if (n > 0)
		assert_memory_equal(f.p, p, n);
	buf_consume(b, f.size);
}

static inline void
frames_expect_close(struct buf *b, unsigned int code)
{
	const uint8_t payload[] = {(uint8_t)(code >> 8), (uint8_t)code};

	frames_expect(b, FRAMES_FINAL | FRAMES_CLOSE, payload, sizeof(payload));
}

#endif

#include "common/frame.h"

#include "common/log.h"

#define EXIT_BUG 70
#define FRAME_LENGTH_BYTES 4 /* what the length field does not count */

static const char *const frame_names[] = {
    [FRAME_HELLO] = "HELLO",
    [FRAME_HELLO_RUN] = "HELLO_RUN",
    [FRAME_HELLO_END] = "HELLO_END",
    [FRAME_RUN_KNOWN] = "RUN_KNOWN",
    [FRAME_RUN_REFUSED] = "RUN_REFUSED",
    [FRAME_RUN_LOG] = "RUN_LOG",
    [FRAME_FILE_ENTRY] = "FILE_ENTRY",
    [FRAME_FILE_DATA] = "FILE_DATA",
    [FRAME_FILE_END] = "FILE_END",
    [FRAME_PONG] = "PONG",
    [FRAME_WELCOME] = "WELCOME",
    [FRAME_RUN_START] = "RUN_START",
    [FRAME_RUN_ACK] = "RUN_ACK",
    [FRAME_RUN_CANCEL] = "RUN_CANCEL",
    [FRAME_RUN_FORGET] = "RUN_FORGET",
    [FRAME_WALK] = "WALK",
    [FRAME_WALK_TAKEN] = "WALK_TAKEN",
    [FRAME_READ] = "READ",
    [FRAME_READ_ACK] = "READ_ACK",
    [FRAME_ABORT] = "ABORT",
    [FRAME_PING] = "PING",
};

const char *
frame_type_name(unsigned int type)
{
	if (type >= ARRAY_LEN(frame_names) || frame_names[type] == NULL)
		return "?";
	return frame_names[type];
}

size_t
frame_begin(struct buf *b, enum frame_type type)
{
	size_t at = buf_len(b);

	wire_put_u32(b, 0); /* frame_end knows it */
	wire_put_u16(b, (uint16_t)type);
	wire_put_u16(b, 0);
	return at;
}

void
frame_end(struct buf *b, size_t at)
{
	size_t size = buf_len(b) - at;
	uint8_t *p = buf_data(b) + at;

	if (size < FRAME_HEADER_BYTES || size > FRAME_DOWN_MAX)
		fatal(EXIT_BUG, "frame_end: a frame of %zu bytes", size);
	size -= FRAME_LENGTH_BYTES;
	for (size_t i = 0; i < FRAME_LENGTH_BYTES; i++)
		p[i] = (uint8_t)(size >> 8 * i);
}

int
frame_next(const struct buf *b, size_t max, struct frame *f, struct err *e)
{
	struct wire_in in;
	uint32_t length;
	uint16_t type, zero;
	size_t have = buf_len(b);

	if (have < FRAME_LENGTH_BYTES)
		return 0;
	wire_in_init(&in, buf_data(b), have);
	length = wire_get_u32(&in);
	/* Refused before it is all there: nothing to wait for. */
	if (length < FRAME_HEADER_BYTES - FRAME_LENGTH_BYTES ||
	    length > max - FRAME_LENGTH_BYTES)
		return err_set(
		    e, ERR_PROTO, "frame of %u bytes, limit %zu", length, max);
	if (have < FRAME_HEADER_BYTES)
		return 0;
	type = wire_get_u16(&in);
	zero = wire_get_u16(&in);
	if (zero != 0 || strcmp(frame_type_name(type), "?") == 0)
		return err_set(
		    e, ERR_PROTO, "no frame: type %u, flags %u", type, zero);
	if (have - FRAME_LENGTH_BYTES < length)
		return 0;
	f->type = (enum frame_type)type;
	f->size = (size_t)length + FRAME_LENGTH_BYTES;
	wire_in_init(&f->in, in.p, f->size - FRAME_HEADER_BYTES);
	return 1;
}

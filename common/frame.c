#include "common/frame.h"

#include "common/exit.h"
#include "common/log.h"
#include "common/msg/frame_gen.h"

#define FRAME_LENGTH_BYTES 4 /* what the length field does not count */

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
	f->type = type;
	f->size = (size_t)length + FRAME_LENGTH_BYTES;
	wire_in_init(&f->in, in.p, f->size - FRAME_HEADER_BYTES);
	return 1;
}

bool
frame_cut(const struct buf *b, struct frame *f, struct frame_data *rest)
{
	struct frame_data part;
	struct wire_in in;
	struct frame copy;
	size_t left;

	wire_in_init(&in, buf_data(b), buf_len(b));
	left = (size_t)wire_get_u32(&in) + FRAME_LENGTH_BYTES;
	f->type = wire_get_u16(&in);
	(void)wire_get_u16(&in);
	if (in.bad != NULL || f->type != FRAME_DATA || left <= buf_len(b))
		return false;
	left -= buf_len(b);
	f->size = buf_len(b);
	wire_in_init(&f->in, in.p, f->size - FRAME_HEADER_BYTES);
	copy = *f;
	if (frame_get_data(&copy, &part, NULL) != 0 || part.bytes.n == 0 ||
	    part.bytes.n + left > FRAME_DATA_MAX)
		return false;
	*rest = part;
	rest->offset += part.bytes.n;
	rest->bytes = (struct span){NULL, left};
	return true;
}

int
frame_put(struct buf *b, const struct codec *c, const void *m)
{
	size_t n = codec_size(c, m);

	if (n > FRAME_DOWN_MAX - FRAME_HEADER_BYTES)
		fatal(EXIT_BUG, "%s of %zu bytes", c->name, n);
	if (n > buf_room(b) || buf_room(b) - n < FRAME_HEADER_BYTES)
		return -1;
	wire_put_u32(
	    b, (uint32_t)(n + FRAME_HEADER_BYTES - FRAME_LENGTH_BYTES));
	wire_put_u16(b, c->type);
	wire_put_u16(b, 0);
	codec_put(b, c, m);
	return 0;
}

int
frame_get(struct frame *f, const struct codec *c, void *m, struct err *e)
{
	return codec_get(&f->in, c, m, e);
}

/* frame_raw.h - frames that no sender would write: any bytes as fields. */
#ifndef TESTS_UNIT_COMMON_FRAME_RAW_H
#define TESTS_UNIT_COMMON_FRAME_RAW_H

#include "common/msg/frame_gen.h"

/* raw_begin - a frame's header at the end of b; its fields follow, and then
 * raw_end with what this returned */
static inline size_t
raw_begin(struct buf *b, unsigned int type)
{
	size_t at = buf_len(b);

	wire_put_u32(b, 0);
	wire_put_u16(b, (uint16_t)type);
	wire_put_u16(b, 0);
	return at;
}

static inline void
raw_end(struct buf *b, size_t at)
{
	size_t n = buf_len(b) - at - sizeof(uint32_t);

	for (size_t i = 0; i < sizeof(uint32_t); i++)
		buf_data(b)[at + i] = (uint8_t)(n >> 8 * i);
}

#endif

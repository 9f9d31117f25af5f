/*
 * wire.h - typed fields in a byte buffer: the encoding of messages, frames
 * and run specifications.
 *
 * Little endian; strings and byte strings are u32 length + bytes, a text has
 * its NUL behind them (so it can be read where it lies).  Reading is
 * sticky: after the first bad field every get returns zero or NULL, and
 * wire_get_end says what was wrong.  A handler reads all its fields, calls
 * wire_get_end, checks ranges, and then acts.
 */
#ifndef COMMON_MSG_WIRE_H
#define COMMON_MSG_WIRE_H

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/uuid.h"

/* Writing.  The buffer's limit is the message's limit: over it, ends the
 * process (our bug: senders bound what they send). */
void wire_put_u8(struct buf *b, uint8_t v);
void wire_put_u16(struct buf *b, uint16_t v);
void wire_put_u32(struct buf *b, uint32_t v);
void wire_put_u64(struct buf *b, uint64_t v);
void wire_put_i32(struct buf *b, int32_t v);
void wire_put_i64(struct buf *b, int64_t v);
void wire_put_uuid(struct buf *b, const struct uuid *u);
void wire_put_str(struct buf *b, const char *s); /* NULL is sent as "" */
void wire_put_bytes(struct buf *b, const void *p, size_t n);

struct wire_in {
	const uint8_t *p;
	size_t left;
	const char *bad; /* what failed first, NULL: nothing */
};

void wire_in_init(struct wire_in *in, const void *p, size_t n);
/* wire_get_number - of n bytes, 1 to 8 */
uint64_t wire_get_number(struct wire_in *in, size_t n);
uint8_t wire_get_u8(struct wire_in *in);
uint16_t wire_get_u16(struct wire_in *in);
uint32_t wire_get_u32(struct wire_in *in);
uint64_t wire_get_u64(struct wire_in *in);
int32_t wire_get_i32(struct wire_in *in);
int64_t wire_get_i64(struct wire_in *in);
void wire_get_uuid(struct wire_in *in, struct uuid *u);
/* wire_get_str - a NUL-terminated copy, the caller's to free; bad when longer
 * than max or with a NUL inside; then NULL */
char *wire_get_str(struct wire_in *in, size_t max) MUSTCHECK;
/* wire_get_text - a string with its NUL behind it, as a view into the message;
 * bad when longer than max or with another NUL inside; then NULL */
const char *wire_get_text(struct wire_in *in, size_t max);
/* wire_get_bytes - a view into the message, valid as long as it is */
const uint8_t *wire_get_bytes(struct wire_in *in, size_t max, size_t *n);
/* wire_get_fixed - exactly n bytes, as a view; NULL when they are missing */
const uint8_t *wire_get_fixed(struct wire_in *in, size_t n);
/* wire_get_rest - all that is left, as a view */
const uint8_t *wire_get_rest(struct wire_in *in, size_t *n);
/* wire_get_end - 0 when every field was good and none is left over, else
 * ERR_PROTO with the reason */
int wire_get_end(const struct wire_in *in, struct err *e) MUSTCHECK;

#endif

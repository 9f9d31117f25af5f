/*
 * buf.h - a growing byte buffer with a limit; consumes from the front.
 *
 * struct buf b = BUF_INIT(limit) or buf_init(); buf_clear frees.
 * buf_data/buf_len give the unread part; any append may move it.
 */
#ifndef COMMON_BUF_H
#define COMMON_BUF_H

#include <stdarg.h>

#include "common/base.h"

struct buf {
	uint8_t *mem;
	size_t start; /* first unread byte */
	size_t end;   /* one past the last byte */
	size_t cap;
	size_t max; /* limit of unread bytes, 0: SIZE_MAX / 2 */
};

void buf_init(struct buf *b, size_t max);
void buf_clear(struct buf *b); /* frees; usable again with the same max */
static inline uint8_t *
buf_data(const struct buf *b)
{
	/* As a number: adding 0 to a null pointer is undefined. */
	return (uint8_t *)((uintptr_t)b->mem + b->start);
}
static inline size_t
buf_len(const struct buf *b)
{
	return b->end - b->start;
}
size_t buf_room(const struct buf *b); /* bytes until the limit */
/* buf_set_max - another limit; at least buf_len, or 0 as in buf_init */
void buf_set_max(struct buf *b, size_t max);

/* buf_append - copies n bytes; -1, and nothing changed, over the limit */
int buf_append(struct buf *b, const void *p, size_t n) MUSTCHECK;
/* buf_printf - formatted text without the final NUL; -1 over the limit */
int buf_printf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);
/* buf_reserve - n writable bytes at the end, then buf_commit what was used;
 * NULL over the limit */
uint8_t *buf_reserve(struct buf *b, size_t n) MUSTCHECK;
void buf_commit(struct buf *b, size_t n);
void buf_consume(struct buf *b, size_t n); /* n <= buf_len */
/* buf_truncate - only the first n unread bytes stay; n <= buf_len */
void buf_truncate(struct buf *b, size_t n);
/* buf_shrink - give memory back when empty */
void buf_shrink(struct buf *b);

#endif

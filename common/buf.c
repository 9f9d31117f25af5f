#include "common/buf.h"

#include <stdio.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/xmalloc.h"

#define BUF_FIRST_BYTES 256

static size_t
buf_max(const struct buf *b)
{
	return b->max != 0 ? b->max : SIZE_MAX / 2;
}

void
buf_init(struct buf *b, size_t max)
{
	memset(b, 0, sizeof(*b));
	b->max = max;
}

void
buf_clear(struct buf *b)
{
	free(b->mem);
	b->mem = NULL;
	b->start = b->end = b->cap = 0;
}

size_t
buf_room(const struct buf *b)
{
	size_t max = buf_max(b), len = buf_len(b);

	return len < max ? max - len : 0;
}

/*
 * Make n bytes writable behind the end.  The unread bytes move to the front
 * only when at least as many were consumed, or when the memory grows, so that
 * each byte is moved a constant number of times however the buffer is used.
 */
static void
buf_make_space(struct buf *b, size_t n)
{
	size_t len = buf_len(b), cap = b->cap;

	if (b->mem != NULL && n <= cap - b->end)
		return;
	if (n > cap - len || b->start < len || b->mem == NULL) {
		cap = cap < BUF_FIRST_BYTES / 2 ? BUF_FIRST_BYTES : cap * 2;
		if (cap > buf_max(b))
			cap = buf_max(b);
		if (cap < len + n)
			cap = len + n;
	}
	if (b->start > 0)
		memmove(b->mem, b->mem + b->start, len);
	b->start = 0;
	b->end = len;
	if (cap != b->cap || b->mem == NULL)
		b->mem = xreallocarray(b->mem, 1, cap);
	b->cap = cap;
}

uint8_t *
buf_reserve(struct buf *b, size_t n)
{
	if (n > buf_room(b))
		return NULL;
	buf_make_space(b, n);
	return b->mem + b->end;
}

void
buf_commit(struct buf *b, size_t n)
{
	if (n > b->cap - b->end)
		fatal(EXIT_BUG, "buf_commit: %zu of %zu bytes", n,
		    b->cap - b->end);
	b->end += n;
}

int
buf_append(struct buf *b, const void *p, size_t n)
{
	uint8_t *to;

	if (n == 0)
		return 0;
	to = buf_reserve(b, n);
	if (to == NULL)
		return -1;
	memcpy(to, p, n);
	b->end += n;
	return 0;
}

int
buf_printf(struct buf *b, const char *fmt, ...)
{
	size_t space = b->cap - b->end;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(
	    b->mem != NULL ? (char *)b->mem + b->end : NULL, space, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n > buf_room(b))
		return -1;
	if ((size_t)n >= space) { /* the NUL was in the way, too */
		buf_make_space(b, (size_t)n + 1);
		va_start(ap, fmt);
		n = vsnprintf((char *)b->mem + b->end, (size_t)n + 1, fmt, ap);
		va_end(ap);
		if (n < 0)
			return -1;
	}
	b->end += (size_t)n;
	return 0;
}

void
buf_consume(struct buf *b, size_t n)
{
	if (n > buf_len(b))
		fatal(EXIT_BUG, "buf_consume: %zu of %zu bytes", n, buf_len(b));
	b->start += n;
	if (b->start == b->end)
		b->start = b->end = 0;
}

void
buf_set_max(struct buf *b, size_t max)
{
	if (max != 0 && max < buf_len(b))
		fatal(EXIT_BUG, "buf_set_max: %zu for %zu bytes", max,
		    buf_len(b));
	b->max = max;
}

void
buf_truncate(struct buf *b, size_t n)
{
	if (n > buf_len(b))
		fatal(
		    EXIT_BUG, "buf_truncate: %zu of %zu bytes", n, buf_len(b));
	b->end = b->start + n;
}

void
buf_shrink(struct buf *b)
{
	if (buf_len(b) == 0)
		buf_clear(b);
}

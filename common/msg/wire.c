/*
 * wire.c - bytes to fields and back
 *
 * Reading is one function, wire_take, which gives the next n bytes or makes
 * the reader bad for good; all others are made of it.  Lengths from outside
 * are compared before they are used, never added to a pointer.
 */
#include "common/msg/wire.h"

#include "common/exit.h"
#include "common/log.h"
#include "common/xmalloc.h"

static void
wire_put(struct buf *b, const void *p, size_t n)
{
	if (buf_append(b, p, n) != 0)
		fatal(EXIT_BUG, "message too long: %zu bytes more than %zu", n,
		    buf_len(b));
}

static void
wire_put_le(struct buf *b, uint64_t v, size_t n)
{
	uint8_t bytes[sizeof(v)];

	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(v >> 8 * i);
	wire_put(b, bytes, n);
}

void
wire_put_u8(struct buf *b, uint8_t v)
{
	wire_put_le(b, v, 1);
}

void
wire_put_u16(struct buf *b, uint16_t v)
{
	wire_put_le(b, v, 2);
}

void
wire_put_u32(struct buf *b, uint32_t v)
{
	wire_put_le(b, v, 4);
}

void
wire_put_u64(struct buf *b, uint64_t v)
{
	wire_put_le(b, v, 8);
}

void
wire_put_i32(struct buf *b, int32_t v)
{
	wire_put_le(b, (uint32_t)v, 4);
}

void
wire_put_i64(struct buf *b, int64_t v)
{
	wire_put_le(b, (uint64_t)v, 8);
}

void
wire_put_uuid(struct buf *b, const struct uuid *u)
{
	wire_put(b, u->b, sizeof(u->b));
}

void
wire_put_str(struct buf *b, const char *s)
{
	wire_put_bytes(b, s, s != NULL ? strlen(s) : 0);
}

void
wire_put_bytes(struct buf *b, const void *p, size_t n)
{
	if (n > UINT32_MAX)
		fatal(EXIT_BUG, "wire_put_bytes: %zu bytes", n);
	wire_put_u32(b, (uint32_t)n);
	wire_put(b, p, n);
}

void
wire_in_init(struct wire_in *in, const void *p, size_t n)
{
	in->p = n != 0 ? p : (const uint8_t *)"";
	in->left = n;
	in->bad = NULL;
}

/* The next n bytes, or NULL; the first that are missing make in bad. */
static const uint8_t *
wire_take(struct wire_in *in, size_t n, const char *what)
{
	const uint8_t *p = in->p;

	if (in->bad != NULL)
		return NULL;
	if (n > in->left) {
		in->bad = what;
		return NULL;
	}
	in->p += n;
	in->left -= n;
	return p;
}

uint64_t
wire_get_number(struct wire_in *in, size_t n)
{
	const uint8_t *p = wire_take(in, n, "a number is cut off");
	uint64_t v = 0;

	if (p == NULL)
		return 0;
	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

uint8_t
wire_get_u8(struct wire_in *in)
{
	return (uint8_t)wire_get_number(in, 1);
}

uint16_t
wire_get_u16(struct wire_in *in)
{
	return (uint16_t)wire_get_number(in, 2);
}

uint32_t
wire_get_u32(struct wire_in *in)
{
	return (uint32_t)wire_get_number(in, 4);
}

uint64_t
wire_get_u64(struct wire_in *in)
{
	return wire_get_number(in, 8);
}

int32_t
wire_get_i32(struct wire_in *in)
{
	return (int32_t)(uint32_t)wire_get_number(in, 4);
}

int64_t
wire_get_i64(struct wire_in *in)
{
	return (int64_t)wire_get_number(in, 8);
}

void
wire_get_uuid(struct wire_in *in, struct uuid *u)
{
	const uint8_t *p = wire_take(in, sizeof(u->b), "a UUID is cut off");

	if (p != NULL)
		memcpy(u->b, p, sizeof(u->b));
	else
		memset(u->b, 0, sizeof(u->b));
}

const uint8_t *
wire_get_bytes(struct wire_in *in, size_t max, size_t *n)
{
	const uint8_t *p;
	size_t len = wire_get_u32(in);

	*n = 0;
	if (in->bad != NULL)
		return NULL;
	if (len > max) {
		in->bad = "a string is longer than permitted";
		return NULL;
	}
	p = wire_take(in, len, "a string is cut off");
	if (p != NULL)
		*n = len;
	return p;
}

char *
wire_get_str(struct wire_in *in, size_t max)
{
	size_t n;
	const uint8_t *p = wire_get_bytes(in, max, &n);
	char *s;

	if (p == NULL)
		return NULL;
	if (memchr(p, '\0', n) != NULL) {
		in->bad = "a string has a NUL inside";
		return NULL;
	}
	s = xmalloc(n + 1);
	memcpy(s, p, n);
	s[n] = '\0';
	return s;
}

const char *
wire_get_text(struct wire_in *in, size_t max)
{
	size_t n = wire_get_u32(in);
	const uint8_t *p;

	if (in->bad != NULL)
		return NULL;
	if (n > max) {
		in->bad = "a string is longer than permitted";
		return NULL;
	}
	p = wire_take(in, n + 1, "a string is cut off");
	if (p != NULL && memchr(p, '\0', n + 1) != p + n) {
		in->bad = "a string has a NUL inside, or none at its end";
		return NULL;
	}
	return (const char *)p;
}

const uint8_t *
wire_get_fixed(struct wire_in *in, size_t n)
{
	return wire_take(in, n, "bytes are cut off");
}

const uint8_t *
wire_get_rest(struct wire_in *in, size_t *n)
{
	size_t left = in->left;
	const uint8_t *p = wire_take(in, left, "");

	*n = p != NULL ? left : 0;
	return p;
}

int
wire_get_end(const struct wire_in *in, struct err *e)
{
	if (in->bad != NULL)
		return err_set(e, ERR_PROTO, "%s", in->bad);
	if (in->left != 0)
		return err_set(e, ERR_PROTO, "%zu bytes too many", in->left);
	return 0;
}

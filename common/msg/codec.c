/*
 * codec.c - one field after the other
 *
 * field_size says how many bytes it takes,
 * field_put writes them into memory that is reserved for all of them,
 * field_get reads them.  A number passes through a uint64_t, in which a signed
 * one is sign-extended, so that one comparison checks any range.
 *
 * Writing, what is over a bound is our bug.  Reading, it is the peer's: the
 * reader (wire.h) is sticky, and after each field codec_get looks whether it
 * was good, to name the first that was not.
 */
#include "common/msg/codec.h"

#include "common/exit.h"
#include "common/log.h"

/* Numbers, by kind: bytes on the wire, and of the member. */
static const struct codec_width {
	uint8_t wire;
	uint8_t member;
} widths[] = {
    [CODEC_U8] = {1, 1},
    [CODEC_U16] = {2, 2},
    [CODEC_U32] = {4, 4},
    [CODEC_U64] = {8, 8},
    [CODEC_I32] = {4, 4},
    [CODEC_I64] = {8, 8},
    [CODEC_BOOL] = {1, sizeof(bool)},
    [CODEC_ENUM] = {1, sizeof(enum codec_kind)},
};

static void *
member_of(void *m, const struct codec_field *f)
{
	return (uint8_t *)m + f->offset;
}

static const void *
member_in(const void *m, const struct codec_field *f)
{
	return (const uint8_t *)m + f->offset;
}

static const char *
text_in(const void *m, const struct codec_field *f)
{
	const char *s;

	memcpy(&s, member_in(m, f), sizeof(s));
	return s;
}

static const struct span *
span_in(const void *m, const struct codec_field *f)
{
	return member_in(m, f);
}

/* ---- numbers; a signed one is sign-extended in its uint64_t */

static bool
is_signed(enum codec_kind kind)
{
	return kind == CODEC_I32 || kind == CODEC_I64;
}

static bool
is_in_range(const struct codec_field *f, uint64_t v)
{
	if (is_signed(f->kind))
		return (int64_t)v >= f->min && (int64_t)v <= (int64_t)f->max;
	return v >= (uint64_t)f->min && v <= f->max;
}

static uint64_t
number_load(const struct codec_field *f, const void *m)
{
	union {
		uint8_t u8;
		uint16_t u16;
		uint32_t u32;
		uint64_t u64;
	} v;
	size_t width = widths[f->kind].member;

	memcpy(&v, member_in(m, f), width);
	switch (width) {
	case 1:
		return v.u8;
	case 2:
		return v.u16;
	case 4:
		return f->kind == CODEC_I32 ? (uint64_t)(int32_t)v.u32 : v.u32;
	default:
		return v.u64;
	}
}

static void
number_store(const struct codec_field *f, void *m, uint64_t number)
{
	union {
		uint8_t u8;
		uint16_t u16;
		uint32_t u32;
		uint64_t u64;
	} v;
	size_t width = widths[f->kind].member;

	switch (width) {
	case 1:
		v.u8 = (uint8_t)number;
		break;
	case 2:
		v.u16 = (uint16_t)number;
		break;
	case 4:
		v.u32 = (uint32_t)number;
		break;
	default:
		v.u64 = number;
		break;
	}
	memcpy(member_of(m, f), &v, width);
}

static uint8_t *
put_le(uint8_t *p, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		*p++ = (uint8_t)(v >> 8 * i);
	return p;
}

static uint8_t *
number_put(uint8_t *p, const struct codec_field *f, const void *m)
{
	uint64_t v = number_load(f, m);

	if (!is_in_range(f, v))
		fatal(EXIT_BUG, "%s of %lld is out of its range", f->name,
		    (long long)v);
	return put_le(p, v, widths[f->kind].wire);
}

static void
number_get(struct wire_in *in, const struct codec_field *f, void *m)
{
	uint64_t v = wire_get_number(in, widths[f->kind].wire);

	if (f->kind == CODEC_I32)
		v = (uint64_t)(int32_t)(uint32_t)v;
	if (in->bad == NULL && !is_in_range(f, v))
		in->bad = "out of its range";
	number_store(f, m, v);
}

/* ---- strings */

/* n bytes, or as many zeros for NULL. */
static uint8_t *
raw_put(uint8_t *p, const void *from, size_t n)
{
	if (from != NULL && n > 0)
		memcpy(p, from, n);
	else
		memset(p, 0, n);
	return p + n;
}

static uint8_t *
string_put(uint8_t *p, const struct codec_field *f, const void *from, size_t n)
{
	if (n > f->max)
		fatal(EXIT_BUG, "%s has %zu bytes, limit %llu", f->name, n,
		    (unsigned long long)f->max);
	return raw_put(put_le(p, n, sizeof(uint32_t)), from, n);
}

static uint8_t *
text_put(uint8_t *p, const struct codec_field *f, const void *m)
{
	const char *s = text_in(m, f);

	p = string_put(p, f, s, s != NULL ? strlen(s) : 0);
	*p++ = '\0';
	return p;
}

static void
bytes_get(struct wire_in *in, const struct codec_field *f, void *m)
{
	struct span s;

	if (f->kind == CODEC_REST)
		s.p = wire_get_rest(in, &s.n);
	else
		s.p = wire_get_bytes(in, (size_t)f->max, &s.n);
	memcpy(member_of(m, f), &s, sizeof(s));
}

static void
pointer_get(struct wire_in *in, const struct codec_field *f, void *m)
{
	const void *p;

	if (f->kind == CODEC_STR)
		p = wire_get_text(in, (size_t)f->max);
	else
		p = wire_get_fixed(in, (size_t)f->max);
	memcpy(member_of(m, f), &p, sizeof(p));
}

/* ---- fields */

static size_t
field_size(const struct codec_field *f, const void *m)
{
	const char *s;

	switch (f->kind) {
	case CODEC_UUID:
		return sizeof(struct uuid);
	case CODEC_STR:
		s = text_in(m, f);
		return sizeof(uint32_t) + (s != NULL ? strlen(s) : 0) + 1;
	case CODEC_BYTES:
		return sizeof(uint32_t) + span_in(m, f)->n;
	case CODEC_REST:
		return span_in(m, f)->n;
	case CODEC_FIXED:
		return (size_t)f->max;
	case CODEC_FD:
		return 0;
	default:
		return widths[f->kind].wire;
	}
}

static uint8_t *
field_put(uint8_t *p, const struct codec_field *f, const void *m)
{
	const struct span *s;

	switch (f->kind) {
	case CODEC_UUID:
		return raw_put(p, member_in(m, f), sizeof(struct uuid));
	case CODEC_STR:
		return text_put(p, f, m);
	case CODEC_BYTES:
		s = span_in(m, f);
		return string_put(p, f, s->p, s->n);
	case CODEC_REST:
		s = span_in(m, f);
		return s->p != NULL ? raw_put(p, s->p, s->n) : p;
	case CODEC_FIXED:
		return raw_put(p, text_in(m, f), (size_t)f->max);
	case CODEC_FD:
		return p;
	default:
		return number_put(p, f, m);
	}
}

static void
field_get(struct wire_in *in, const struct codec_field *f, void *m)
{
	switch (f->kind) {
	case CODEC_UUID:
		wire_get_uuid(in, member_of(m, f));
		break;
	case CODEC_STR:
	case CODEC_FIXED:
		pointer_get(in, f, m);
		break;
	case CODEC_BYTES:
	case CODEC_REST:
		bytes_get(in, f, m);
		break;
	case CODEC_FD:
		*codec_fd(f, m) = -1;
		break;
	default:
		number_get(in, f, m);
		break;
	}
}

/* ---- public */

size_t
codec_size(const struct codec *c, const void *m)
{
	size_t n = 0;

	for (size_t i = 0; i < c->nfields; i++)
		n += field_size(&c->fields[i], m);
	return n;
}

/* Bytes of a rest that the sender writes itself. */
static size_t
left_out(const struct codec *c, const void *m)
{
	const struct codec_field *last;

	if (c->nfields == 0)
		return 0;
	last = &c->fields[c->nfields - 1];
	if (last->kind != CODEC_REST || span_in(m, last)->p != NULL)
		return 0;
	return span_in(m, last)->n;
}

void
codec_put(struct buf *b, const struct codec *c, const void *m)
{
	size_t n = codec_size(c, m) - left_out(c, m);
	uint8_t *begin = buf_reserve(b, n), *p = begin;

	if (begin == NULL)
		fatal(EXIT_BUG, "%s: no room for %zu bytes", c->name, n);
	for (size_t i = 0; i < c->nfields; i++)
		p = field_put(p, &c->fields[i], m);
	buf_commit(b, (size_t)(p - begin));
}

int
codec_get(struct wire_in *in, const struct codec *c, void *m, struct err *e)
{
	for (size_t i = 0; i < c->nfields; i++) {
		field_get(in, &c->fields[i], m);
		if (in->bad != NULL)
			return err_set(e, ERR_PROTO, "%s: %s: %s", c->name,
			    c->fields[i].name, in->bad);
	}
	if (in->left != 0)
		return err_set(
		    e, ERR_PROTO, "%s: %zu bytes too many", c->name, in->left);
	return 0;
}

int *
codec_fd(const struct codec_field *f, void *m)
{
	return member_of(m, f);
}

void
codec_close_fds(const struct codec *c, void *m)
{
	for (size_t i = 0; i < c->nfields; i++) {
		int *fd;

		if (c->fields[i].kind != CODEC_FD)
			continue;
		fd = codec_fd(&c->fields[i], m);
		if (*fd >= 0)
			(void)close(*fd);
		*fd = -1;
	}
}

int
codec_handled(const struct codec *c, int rc, struct err *e)
{
	if (rc < 0)
		(void)err_wrap(e, "%s", c->name);
	return rc;
}

int
codec_not_now(const struct codec *c, struct err *e)
{
	return err_set(e, ERR_PROTO, "%s is not permitted now", c->name);
}

int
codec_not_here(const struct codec *c, unsigned int type, struct err *e)
{
	if (c == NULL)
		return err_set(e, ERR_PROTO, "unknown type %u", type);
	return err_set(e, ERR_PROTO, "%s is not for this process", c->name);
}

/* codec_any.h - any message of a list: filled at random, compared by its
 * table.  For tests and fuzz targets. */
#ifndef TESTS_UNIT_COMMON_CODEC_ANY_H
#define TESTS_UNIT_COMMON_CODEC_ANY_H

#include "common/msg/codec.h"

struct any {
	_Alignas(16) uint8_t m[512]; /* the struct */
	uint64_t seed;
	uint8_t *pool; /* what its texts and bytes are cut from */
	size_t used;
	size_t size;
};

static inline uint64_t
any_random(struct any *a)
{
	a->seed = a->seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return a->seed >> 29 ^ a->seed;
}

static inline size_t
any_width(const struct codec_field *f)
{
	switch (f->kind) {
	case CODEC_U8:
		return sizeof(uint8_t);
	case CODEC_U16:
		return sizeof(uint16_t);
	case CODEC_U32:
	case CODEC_I32:
		return sizeof(uint32_t);
	case CODEC_U64:
	case CODEC_I64:
		return sizeof(uint64_t);
	case CODEC_BOOL:
		return sizeof(bool);
	case CODEC_ENUM:
		return sizeof(enum codec_kind);
	case CODEC_UUID:
		return sizeof(struct uuid);
	case CODEC_FD:
		return sizeof(int);
	default:
		return 0; /* views */
	}
}

/* Short ones mostly, and now and then one as long as it may be. */
static inline size_t
any_length(struct any *a, const struct codec_field *f)
{
	size_t most = f->kind == CODEC_REST ? 4096 : (size_t)f->max;

	if (f->kind == CODEC_FIXED || any_random(a) % 8 == 0)
		return most;
	return (size_t)any_random(a) % (most < 40 ? most + 1 : 40);
}

static inline void
any_fill_view(struct any *a, const struct codec_field *f)
{
	size_t n = any_length(a, f);
	struct span s = {a->pool + a->used, n};

	if (a->used + n + 1 > a->size)
		abort();
	for (size_t i = 0; i < n; i++)
		a->pool[a->used + i] = (uint8_t)(any_random(a) % 255 + 1);
	a->pool[a->used + n] = '\0';
	a->used += n + 1;
	if (f->kind == CODEC_STR || f->kind == CODEC_FIXED)
		memcpy(a->m + f->offset, &s.p, sizeof(s.p));
	else
		memcpy(a->m + f->offset, &s, sizeof(s));
}

/* Of all values in the range, its two ends often. */
static inline void
any_fill_number(struct any *a, const struct codec_field *f)
{
	uint64_t span = f->max - (uint64_t)f->min, v = any_random(a);

	if (v % 4 == 0)
		v = f->max;
	else if (v % 4 == 1)
		v = (uint64_t)f->min;
	else
		v = (uint64_t)f->min +
		    (span == UINT64_MAX ? v : v % (span + 1));
	/* Little endian or not: as the codec reads it. */
	switch (any_width(f)) {
	case 1:
		memcpy(a->m + f->offset, &(uint8_t){(uint8_t)v}, 1);
		break;
	case 2:
		memcpy(a->m + f->offset, &(uint16_t){(uint16_t)v}, 2);
		break;
	case 4:
		memcpy(a->m + f->offset, &(uint32_t){(uint32_t)v}, 4);
		break;
	default:
		memcpy(a->m + f->offset, &v, 8);
		break;
	}
}

/* any_fill - a message of this kind; a->pool and a->seed are the caller's */
static inline void
any_fill(struct any *a, const struct codec *c)
{
	const int none = -1;

	if (c->size > sizeof(a->m))
		abort();
	memset(a->m, 0, sizeof(a->m));
	a->used = 0;
	for (size_t i = 0; i < c->nfields; i++) {
		const struct codec_field *f = &c->fields[i];

		if (f->kind == CODEC_FD) {
			memcpy(a->m + f->offset, &none, sizeof(none));
		} else if (f->kind == CODEC_UUID) {
			for (size_t k = 0; k < sizeof(struct uuid); k++)
				a->m[f->offset + k] = (uint8_t)any_random(a);
		} else if (any_width(f) > 0) {
			any_fill_number(a, f);
		} else {
			any_fill_view(a, f);
		}
	}
}

static inline struct span
any_view(const struct codec_field *f, const uint8_t *m)
{
	struct span s;

	if (f->kind != CODEC_STR && f->kind != CODEC_FIXED) {
		memcpy(&s, m + f->offset, sizeof(s));
		return s;
	}
	memcpy(&s.p, m + f->offset, sizeof(s.p));
	s.n = f->kind == CODEC_STR ? strlen((const char *)s.p) : (size_t)f->max;
	return s;
}

static inline bool
any_is_equal(const struct codec *c, const uint8_t *a, const uint8_t *b)
{
	for (size_t i = 0; i < c->nfields; i++) {
		const struct codec_field *f = &c->fields[i];
		size_t n = any_width(f);
		struct span x, y;

		if (n > 0) {
			if (memcmp(a + f->offset, b + f->offset, n) != 0)
				return false;
			continue;
		}
		x = any_view(f, a);
		y = any_view(f, b);
		if (x.n != y.n || (x.n > 0 && memcmp(x.p, y.p, x.n) != 0))
			return false;
	}
	return true;
}

#endif

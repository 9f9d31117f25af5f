/*
 * picture.c - the headers of four formats: PNG (RFC 2083), JPEG (ITU T.81,
 * annex B), GIF89a, WebP (RFC 9649)
 *
 * What stands there comes from inside a sandbox: every place is checked before
 * it is read.
 */
#include "supervisor/tools/picture.h"

struct picture_sides {
	uint32_t width, height;
};

static uint32_t
big_endian(const uint8_t *p, size_t bytes)
{
	uint32_t v = 0;

	for (size_t i = 0; i < bytes; i++)
		v = v << 8 | p[i];
	return v;
}

static uint32_t
little_endian(const uint8_t *p, size_t bytes)
{
	uint32_t v = 0;

	for (size_t i = bytes; i > 0; i--)
		v = v << 8 | p[i - 1];
	return v;
}

static bool
has(const uint8_t *p, size_t n, size_t at, const char *bytes, size_t len)
{
	return n >= at + len && memcmp(p + at, bytes, len) == 0;
}

static bool
is_png(const uint8_t *p, size_t n, struct picture_sides *s)
{
	/* It ends with an empty chunk of its own and that one's check sum. */
	static const char end[] = "\0\0\0\0IEND\xae\x42\x60\x82";
	const size_t len = sizeof(end) - 1;

	if (!has(p, n, 0, "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16) ||
	    n < 33 + len || !has(p, n, n - len, end, len))
		return false;
	*s = (struct picture_sides){
	    big_endian(p + 16, 4), big_endian(p + 20, 4)};
	return true;
}

static bool
is_gif(const uint8_t *p, size_t n, struct picture_sides *s)
{
	if ((!has(p, n, 0, "GIF87a", 6) && !has(p, n, 0, "GIF89a", 6)) ||
	    n < 14 || p[n - 1] != ';')
		return false;
	*s = (struct picture_sides){
	    little_endian(p + 6, 2), little_endian(p + 8, 2)};
	return true;
}

/* A start of frame: C0 to CF but for tables (C4, CC) and what is reserved. */
static bool
is_frame(uint8_t marker)
{
	return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 &&
	    marker != 0xc8 && marker != 0xcc;
}

/* Segment after segment, up to the frame, which has the sides. */
static bool
is_jpeg(const uint8_t *p, size_t n, struct picture_sides *s)
{
	size_t at = 2;

	if (!has(p, n, 0, "\xff\xd8\xff", 3))
		return false;
	while (n - at >= 9 && p[at] == 0xff) {
		const size_t len = big_endian(p + at + 2, 2);

		if (is_frame(p[at + 1])) {
			*s = (struct picture_sides){big_endian(p + at + 7, 2),
			    big_endian(p + at + 5, 2)};
			return true;
		}
		if (p[at + 1] == 0xff) { /* a fill byte */
			at++;
			continue;
		}
		if (len < 2 || len + 2 > n - at)
			return false;
		at += len + 2;
	}
	return false;
}

/* Lossy, lossless or extended: three ways of saying the sides. */
static bool
is_webp(const uint8_t *p, size_t n, struct picture_sides *s)
{
	uint32_t bits;

	if (!has(p, n, 0, "RIFF", 4) || !has(p, n, 8, "WEBPVP8", 7) || n < 30 ||
	    little_endian(p + 4, 4) > n - 8)
		return false;
	if (p[15] == 'X') {
		*s = (struct picture_sides){
		    little_endian(p + 24, 3) + 1, little_endian(p + 27, 3) + 1};
	} else if (p[15] == 'L') {
		bits = little_endian(p + 21, 4);
		*s = (struct picture_sides){
		    (bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1};
	} else if (p[15] == ' ') {
		*s = (struct picture_sides){little_endian(p + 26, 2) & 0x3fff,
		    little_endian(p + 28, 2) & 0x3fff};
	} else {
		return false;
	}
	return true;
}

static const struct picture_kind {
	const char *type;
	bool (*is)(const uint8_t *p, size_t n, struct picture_sides *s);
} kinds[] = {{"image/png", is_png}, {"image/jpeg", is_jpeg},
    {"image/gif", is_gif}, {"image/webp", is_webp}};

const char *
picture_type(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct picture_sides s;

		if (!kinds[i].is(p, n, &s))
			continue;
		return s.width > 0 && s.height > 0 &&
			s.width <= PICTURE_SIDE_MAX &&
			s.height <= PICTURE_SIDE_MAX ?
		    kinds[i].type :
		    NULL;
	}
	return NULL;
}

/* test_picture.c - bytes are a picture when its header says so, and is sane */
#include "supervisor/tools/picture.h"

#include "common/xmalloc.h"
#include "tests/unit/test.h"

#define BYTES(text) (const uint8_t *)(text), sizeof(text) - 1

#define PNG(width, height)                                                     \
	"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" width height                           \
	"\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\0IEND\xae\x42\x60\x82"
#define GIF(width) "GIF89a" width "\x01\0\x80\0\0\0\0\0;"
/* A comment, a table, then the frame. */
#define JPEG(frame, height)                                                    \
	"\xff\xd8\xff\xfe\0\x04hi\xff\xc4\0\x03x\xff" frame                    \
	"\0\x0b\x08" height "\0\x10\x01\x01\x11\0"
#define WEBP(kind, data) "RIFF\x16\0\0\0WEBPVP8" kind "\x0a\0\0\0" data

static void
expect(const uint8_t *p, size_t n, const char *want)
{
	const char *type = picture_type(p, n);

	if (want == NULL)
		assert_null(type);
	else
		assert_string_equal(type, want);
	/* Nothing behind what there is may be looked at: the sanitizer says. */
	for (size_t len = 0; len < n; len++) {
		uint8_t *part = xmalloc(len == 0 ? 1 : len);

		memcpy(part, p, len);
		(void)picture_type(part, len);
		free(part);
	}
}

TEST(each_kind_is_known_by_its_bytes)
{
	expect(BYTES(PNG("\0\0\0\1", "\0\0\x1f\x40")), "image/png");
	expect(BYTES(GIF("\x10\0")), "image/gif");
	expect(BYTES(JPEG("\xc0", "\0\x08")), "image/jpeg");
	expect(BYTES(JPEG("\xc2", "\0\x08")), "image/jpeg");
	expect(
	    BYTES(WEBP(" ", "\0\0\0\x9d\x01\x2a\x10\0\x10\0")), "image/webp");
	expect(BYTES(WEBP("L", "\x2f\x0f\xc0\x03\0\0\0\0\0\0")), "image/webp");
	expect(BYTES(WEBP("X", "\0\0\0\0\x0f\0\0\x0f\0\0")), "image/webp");
}

TEST(what_is_no_picture_or_too_large_is_none)
{
	expect(BYTES("just a text that ends with .png"), NULL);
	expect(BYTES("<svg xmlns='http://www.w3.org/2000/svg'></svg>"), NULL);
	expect(BYTES(PNG("\0\0\0\0", "\0\0\0\1")), NULL);
	expect(BYTES(PNG("\0\0\0\1", "\0\0\x1f\x41")), NULL);
	expect(BYTES(PNG("\xff\xff\xff\xff", "\0\0\0\1")), NULL);
	expect(BYTES(GIF("\0\0")), NULL);
	expect(BYTES(GIF("\xff\xff")), NULL);
	expect(BYTES(JPEG("\xc0", "\xff\xff")), NULL);
	expect(
	    BYTES("\xff\xd8\xff\xe0\0\0\xff\xc0\0\x0b\x08\0\x10\0\x10"), NULL);
	expect(BYTES(WEBP("Z", "\0\0\0\0\x0f\0\0\x0f\0\0")), NULL);
	expect(BYTES(WEBP("X", "\0\0\0\0\xff\xff\xff\x0f\0\0")), NULL);
}

/* Written to the end: an interface refuses the others. */
TEST(one_that_is_cut_short_is_none)
{
	static const char png[] = PNG("\0\0\0\1", "\0\0\0\1");
	static const char gif[] = GIF("\x10\0");

	expect((const uint8_t *)png, sizeof(png) - 2, NULL);
	expect((const uint8_t *)gif, sizeof(gif) - 2, NULL);
}

TEST_MAIN(NULL, NULL)

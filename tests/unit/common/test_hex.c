#include "common/hex.h"
#include "tests/unit/test.h"

TEST(every_byte_is_two_digits)
{
	static const uint8_t bytes[] = {0x00, 0x09, 0xa0, 0xff, 0x5c};
	char out[HEX_BYTES(sizeof(bytes))];

	hex_encode(bytes, sizeof(bytes), out);
	assert_string_equal(out, "0009a0ff5c");
	hex_encode(bytes, 0, out);
	assert_string_equal(out, "");
}

TEST(digits_have_values_and_nothing_else_has)
{
	for (int c = 0; c < 256; c++) {
		static const char lower[] = "0123456789abcdef";
		static const char upper[] = "0123456789ABCDEF";
		const char *at = c == 0 ? NULL : strchr(lower, c);
		int want = at != NULL ? (int)(at - lower) : -1;

		at = c == 0 ? NULL : strchr(upper, c);
		want = at != NULL ? (int)(at - upper) : want;
		assert_int_equal(hex_value((char)c), want);
	}
}

TEST_MAIN(NULL, NULL)

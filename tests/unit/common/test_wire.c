#include "common/msg/wire.h"
#include "tests/unit/common/forked.h"
#include "tests/unit/test.h"

TEST(fields_come_out_as_they_went_in)
{
	struct uuid u, v;
	struct wire_in in;
	struct buf b;
	struct err e;
	const uint8_t *p;
	size_t n;

	uuid_random(&u);
	buf_init(&b, 4096);
	wire_put_u8(&b, 200);
	wire_put_u16(&b, 60000);
	wire_put_u32(&b, 4000000000u);
	wire_put_u64(&b, UINT64_MAX - 1);
	wire_put_i32(&b, INT32_MIN);
	wire_put_i64(&b, INT64_MIN + 5);
	wire_put_str(&b, "text");
	wire_put_str(&b, NULL);
	wire_put_bytes(&b, "a\0b", 3);
	assert_int_equal(buf_append(&b, u.b, sizeof(u.b)), 0);
	assert_int_equal(buf_append(&b, "rest", 4), 0);

	wire_in_init(&in, buf_data(&b), buf_len(&b));
	assert_int_equal(wire_get_u8(&in), 200);
	assert_int_equal(wire_get_u16(&in), 60000);
	assert_int_equal(wire_get_u32(&in), 4000000000u);
	assert_true(wire_get_u64(&in) == UINT64_MAX - 1);
	assert_true(wire_get_i32(&in) == INT32_MIN);
	assert_true(wire_get_i64(&in) == INT64_MIN + 5);
	for (int i = 0; i < 2; i++) {
		AUTO(auto_free) char *s = wire_get_str(&in, 4);

		assert_string_equal(s, i == 0 ? "text" : "");
	}
	p = wire_get_bytes(&in, 3, &n);
	assert_int_equal(n, 3);
	assert_memory_equal(p, "a\0b", 3);
	wire_get_uuid(&in, &v);
	assert_true(uuid_is_equal(&u, &v));
	p = wire_get_rest(&in, &n);
	assert_int_equal(n, 4);
	assert_memory_equal(p, "rest", 4);
	assert_int_equal(wire_get_end(&in, &e), 0);
	buf_clear(&b);
}

TEST(numbers_are_little_endian)
{
	static const uint8_t want[] = {4, 3, 2, 1, 0xfe, 0xff, 0xff, 0xff};
	struct buf b;

	buf_init(&b, 0);
	wire_put_u32(&b, 0x01020304);
	wire_put_i32(&b, -2);
	assert_int_equal(buf_len(&b), sizeof(want));
	assert_memory_equal(buf_data(&b), want, sizeof(want));
	buf_clear(&b);
}

TEST(after_the_first_bad_field_all_are_empty)
{
	struct wire_in in;
	struct uuid u;
	struct err e;
	size_t n = 9;

	memset(&u, 1, sizeof(u));
	wire_in_init(&in, "\1\2\3", 3);
	assert_int_equal(wire_get_u32(&in), 0);
	assert_int_equal(wire_get_u8(&in), 0);
	assert_null(wire_get_str(&in, 10));
	assert_null(wire_get_bytes(&in, 10, &n));
	assert_int_equal(n, 0);
	assert_null(wire_get_rest(&in, &n));
	wire_get_uuid(&in, &u);
	assert_int_equal(u.b[0], 0);
	assert_int_equal(wire_get_end(&in, &e), ERR_PROTO);
	assert_string_equal(e.msg, "a number is cut off");
}

static void
check_bad_string(const void *p, size_t n, size_t max, const char *why)
{
	struct wire_in in;
	struct err e;

	wire_in_init(&in, p, n);
	assert_null(wire_get_str(&in, max));
	assert_int_equal(wire_get_end(&in, &e), ERR_PROTO);
	assert_string_equal(e.msg, why);
}

TEST(strings_are_bounded_before_they_are_believed)
{
	check_bad_string(
	    "\x03\0\0\0abc", 7, 2, "a string is longer than permitted");
	check_bad_string("\xff\xff\xff\xff"
			 "abc",
	    7, SIZE_MAX, "a string is cut off");
	check_bad_string("\x03\0\0\0ab", 6, 10, "a string is cut off");
	check_bad_string("\x03\0\0\0a\0c", 7, 10, "a string has a NUL inside");
	check_bad_string("\x03\0\0", 3, 10, "a number is cut off");
}

TEST(bytes_left_over_are_an_error)
{
	struct wire_in in;
	struct err e;

	wire_in_init(&in, "\1\2", 2);
	assert_int_equal(wire_get_u8(&in), 1);
	assert_int_equal(wire_get_end(&in, &e), ERR_PROTO);
	assert_string_equal(e.msg, "1 bytes too many");
	assert_int_equal(wire_get_u8(&in), 2);
	assert_int_equal(wire_get_end(&in, &e), 0);
}

TEST(an_empty_message_has_an_empty_rest)
{
	struct wire_in in;
	struct err e;
	size_t n = 1;

	wire_in_init(&in, NULL, 0);
	assert_int_equal(wire_get_end(&in, &e), 0);
	assert_non_null(wire_get_rest(&in, &n));
	assert_int_equal(n, 0);
	assert_int_equal(wire_get_end(&in, &e), 0);
}

static void
put_too_much(void)
{
	struct buf b;

	buf_init(&b, 6);
	wire_put_u32(&b, 1);
	wire_put_u32(&b, 2);
}

static void
put_a_long_string(void)
{
	struct buf b;

	buf_init(&b, 6);
	wire_put_str(&b, "abc");
}

TEST(a_message_over_its_limit_is_our_bug)
{
	struct forked f;

	forked_run(&f, put_too_much);
	assert_int_equal(f.status, 70);
	forked_run(&f, put_a_long_string);
	assert_int_equal(f.status, 70);
	assert_non_null(strstr(f.text, "message too long"));
}

TEST_MAIN(NULL, NULL)

#include "common/clock.h"
#include "common/uuid.h"
#include "tests/unit/test.h"

TEST(random_ones_are_version_4_and_differ)
{
	struct uuid a, b;

	for (int i = 0; i < 1000; i++) {
		uuid_random(&a);
		uuid_random(&b);
		assert_int_equal(a.b[6] >> 4, 4);
		assert_int_equal(a.b[8] >> 6, 2);
		assert_false(uuid_is_equal(&a, &b));
	}
}

TEST(timed_ones_are_version_7_and_in_order)
{
	struct uuid a, b;
	int64_t now;

	uuid_timed(&a);
	assert_true(uuid_is_timed(&a));
	assert_int_equal(a.b[8] >> 6, 2);
	uuid_random(&b);
	assert_false(uuid_is_timed(&b));
	now = clock_wall_ms();
	while (clock_wall_ms() <= now)
		;
	uuid_timed(&b);
	assert_true(memcmp(a.b, b.b, 6) < 0);
	assert_memory_not_equal(a.b + 9, b.b + 9, 7);
}

TEST(text_is_lower_case_and_comes_back)
{
	static const char text[] = "01234567-89ab-cdef-0123-456789abcdef";
	char out[UUID_TEXT_LEN + 1];
	struct uuid u;

	assert_int_equal(
	    uuid_parse("01234567-89AB-cdef-0123-456789ABCDEF", &u), 0);
	assert_int_equal(u.b[0], 0x01);
	assert_int_equal(u.b[15], 0xef);
	uuid_format(&u, out);
	assert_string_equal(out, text);
}

TEST(anything_else_is_none)
{
	static const char *const bad[] = {"", "0", "-",
	    "01234567-89ab-cdef-0123-456789abcde",
	    "01234567-89ab-cdef-0123-456789abcdef0",
	    "01234567-89ab-cdef-0123-456789abcdef ",
	    "0123456789abcdef0123456789abcdef",
	    "01234567-89ab-cdef-0123-456789abcdeg",
	    "01234567_89ab-cdef-0123-456789abcdef",
	    "0123456-789ab-cdef-0123-456789abcdef",
	    "{01234567-89ab-cdef-0123-456789abcdef}"};
	struct uuid u, before;

	uuid_random(&u);
	before = u;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(uuid_parse(bad[i], &u), -1);
	assert_true(uuid_is_equal(&u, &before));
}

TEST_MAIN(NULL, NULL)

#include "common/xmalloc.h"
#include "tests/unit/common/forked.h"
#include "tests/unit/test.h"

/* The allocator of the address sanitizer would abort, not return NULL. */
const char *__asan_default_options(void);
const char *
__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

/* Volatile: compilers warn about such sizes when they see them. */
static volatile size_t huge = SIZE_MAX / 2 - 4096;

static void
take_too_much(void)
{
	free(xmalloc(huge));
}

static void
take_an_overflow(void)
{
	free(xcalloc(huge, 16));
}

static void
grow_to_an_overflow(void)
{
	free(xreallocarray(NULL, huge, 16));
}

TEST(memory_that_is_out_ends_the_process_with_71)
{
	static void (*const takers[])(void) = {
	    take_too_much, take_an_overflow, grow_to_an_overflow};
	struct forked f;

	for (size_t i = 0; i < ARRAY_LEN(takers); i++) {
		forked_run(&f, takers[i]);
		assert_int_equal(f.status, 71);
		assert_non_null(strstr(f.text, "out of memory"));
	}
}

TEST(nothing_is_still_something)
{
	AUTO(auto_free) char *a = xmalloc(0);
	AUTO(auto_free) char *b = xcalloc(0, 8);
	AUTO(auto_free) char *c = xmemdup(NULL, 0);
	AUTO(auto_free) char *d = xreallocarray(NULL, 0, 4);

	assert_non_null(a);
	assert_non_null(b);
	assert_non_null(c);
	assert_non_null(d);
}

TEST(copies_are_equal_and_cut)
{
	AUTO(auto_free) char *a = xstrdup("abc");
	AUTO(auto_free) char *b = xstrndup("abcdef", 3);
	AUTO(auto_free) char *c = xstrndup("ab", 30);
	AUTO(auto_free) char *d = xmemdup("abc", 4);
	AUTO(auto_free) char *e = xasprintf("%s/%d", "x", 12);

	assert_string_equal(a, "abc");
	assert_string_equal(b, "abc");
	assert_string_equal(c, "ab");
	assert_string_equal(d, "abc");
	assert_string_equal(e, "x/12");
}

TEST(cleared_memory_is_zero_and_grown_memory_keeps_its_content)
{
	AUTO(auto_free) uint8_t *p = xcalloc(16, 4);

	for (size_t i = 0; i < 64; i++)
		assert_int_equal(p[i], 0);
	p[63] = 7;
	p = xreallocarray(p, 1000, 4);
	assert_int_equal(p[63], 7);
}

TEST_MAIN(NULL, NULL)

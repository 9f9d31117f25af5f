#include "supervisor/stdio/lines.h"

#include "common/buf.h"
#include "common/xmalloc.h"
#include "tests/unit/test.h"

#define MAX 16

/* Each line in brackets, each that is too long as "!" with its id. */
static struct buf seen;

static void
line_cb(const char *line, size_t n, void *arg)
{
	(void)arg;
	assert_int_equal(buf_printf(&seen, "[%.*s]", (int)n, line), 0);
}

static void
too_long_cb(const struct glimpse *what, void *arg)
{
	(void)arg;
	assert_int_equal(buf_printf(&seen, "!%s", what->id), 0);
}

static const struct lines_ops ops = {line_cb, too_long_cb};

/* In pieces of so many bytes, whatever they are, the same is seen. */
static void
check(const char *text, const char *want)
{
	size_t len = strlen(text);

	for (size_t piece = 1; piece <= len + 1; piece++) {
		struct lines l;

		buf_clear(&seen);
		lines_init(&l, MAX, &ops, NULL);
		for (size_t at = 0; at < len; at += piece)
			lines_feed(
			    &l, text + at, len - at < piece ? len - at : piece);
		lines_end(&l);
		lines_clear(&l);
		assert_int_equal(buf_append(&seen, "", 1), 0);
		assert_string_equal((char *)buf_data(&seen), want);
	}
	buf_clear(&seen);
}

TEST(a_line_is_a_message)
{
	check("a\nbc\n", "[a][bc]");
}

TEST(the_last_needs_no_newline)
{
	check("a\nbc", "[a][bc]");
	check("", "");
}

TEST(a_carriage_return_before_the_newline_is_not_the_messages)
{
	check("a\r\nb\rc\r\n\r\nx\r", "[a][b\rc][x]");
}

TEST(blank_lines_are_left_out)
{
	check("\n \t\na\n\r\n \n", "[a]");
}

TEST(a_line_may_have_max_bytes)
{
	check("0123456789abcdef\n0123456789abcdef\r\nx",
	    "[0123456789abcdef][0123456789abcdef][x]");
}

TEST(one_that_is_longer_tells_its_id_and_the_next_is_read)
{
	check("{\"id\": 17, \"method\": \"x\"}\nab\n", "!17[ab]");
	check("{\"params\":[1,2,3],\"id\":\"z\"}\r\nab\n", "!\"z\"[ab]");
	check("0123456789abcdefg", "!");
	check("a\n0123456789abcdefghijkl\nb", "[a]![b]");
}

TEST_MAIN(NULL, NULL)

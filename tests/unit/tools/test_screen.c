/* test_screen.c - what a terminal would show, and no more than was printed */
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/tools/screen.h"
#include "tests/unit/test.h"

static void
expect_bytes(const char *p, size_t n, const char *want)
{
	struct buf out = {0};

	screen_show(&out, p, n);
	assert_int_equal(buf_append(&out, "", 1), 0);
	assert_string_equal((char *)buf_data(&out), want);
	buf_clear(&out);
}

static void
expect(const char *printed, const char *want)
{
	expect_bytes(printed, strlen(printed), want);
}

TEST(text_without_control_characters_is_what_it_is)
{
	expect("", "");
	expect("a\tb\n\n  c  \n", "a\tb\n\n  c  \n");
	expect("na\xc3\xafve \xe2\x82\xac \xf0\x9f\x8e\x89",
	    "na\xc3\xafve "
	    "\xe2\x82\xac \xf0\x9f\x8e\x89");
}

TEST(a_progress_bar_is_its_last_state)
{
	expect("get\n  0%\r 50%\r100%\ndone\n", "get\n100%\ndone\n");
	expect("one\rtwo", "two");
	expect("longer\rab", "abnger"); /* as a terminal does */
	expect("50%\x1b[2K\r100%\n", "100%\n");
	expect("working...\r\x1b[Kok\n", "ok\n");
	expect("working\r       \rok\n", "ok\n");
	expect("working\r       \r", "");
	expect("12%\b\b\b34%\n", "34%\n");
	expect("|\b/\b-\b\\\bdone\n", "done\n");
	expect("\xe2\x96\x88 1\r\xe2\x96\x88\xe2\x96\x88 2\n",
	    "\xe2\x96\x88\xe2\x96\x88 2\n");
}

TEST(lines_of_other_systems_are_lines)
{
	expect("a\r\nb\r\n", "a\nb\n");
	expect("a\fb\vc", "a\nb\nc");
}

TEST(colours_and_titles_are_gone)
{
	expect("\x1b[31mred\x1b[0m \x1b[1;38;5;200mx\x1b[m\n", "red x\n");
	expect("\x1b[38:2::1:2:3mx", "x");
	expect("\x1b]0;title\x07x\x1b]8;;http://a/\x1b\\link\x1b]8;;\x1b\\",
	    "xlink");
	expect("\x1b(B\x1b)0a\x1b=\x1b>\x1b#8b\x1b%Gc", "abc");
	expect("\x1b[?25l\x1b[?1049hx\x1b[?25h\x1b[4 q\x1b[!p", "x");
	expect("\x1bP1;2|dcs\x1b\\a\x1b_apc\x1b\\b\x1b^pm\x1b\\c", "abc");
	expect("\007a\x0e\x0f\x01\177b", "ab");
	expect("match\x1b[m\x1b[K  \n", "match  \n");
}

TEST(control_characters_beyond_ascii_are_gone_and_take_nothing_along)
{
	/* A quotation mark that was decoded twice has U+009D in it. */
	expect("\xc3\xa2\xc2\x80\xc2\x9dsaid\xc2\23331m", "\xc3\xa2said31m");
	expect("\xc2\xa0|\xc2\x85", "\xc2\xa0|");
}

TEST(what_is_no_text_is_replaced_and_nul_is_a_blank)
{
	expect_bytes("A=1\0B=2\0", 8, "A=1 B=2 ");
	expect("a\xff\rb\xc3", "b\xef\xbf\xbd");
	expect("\23331m",
	    "\xef\xbf\xbd"
	    "31m");
}

TEST(the_cursor_moves_within_its_line)
{
	expect("abcdef\x1b[3DXY", "abcXYf");
	expect("abcdef\x1b[99D\x1b[2Cx", "abxdef");
	expect("abcdef\x1b[2Gx\x1b[0Kz", "axz");
	expect("abc\x1b[1Kd", "d");
	expect("abc\r\x1b[1Kd", "dbc");
	expect("name\x1b[40Gok\x1b[80Cend\n", "name ok end\n");
	expect("a\tb\r\t!", "a\tb!");
	expect("\x1b[1000D50%\x1b[1000D100%", "100%");
}

/* As docker pull does it: so many lines up, erase, write, down again. */
TEST(several_bars_are_their_last_states)
{
	expect("one: wait\ntwo: wait\n"
	       "\x1b[2A\x1b[2K\rone: 50%\r\x1b[2B"
	       "\x1b[1A\x1b[2K\rtwo: done\r\x1b[1B"
	       "\x1b[2A\x1b[2K\rone: done\r\x1b[2B"
	       "all\n",
	    "one: done\ntwo: done\nall\n");
	expect("a\nb\nc\n\x1b[3F\x1b[Jd\n", "d\n");
	expect("a\nb\x1b[Fx\x1b[Ey", "x\ny");
	expect("\x1b[5Aa\x1b[5Bb", "ab");
	expect("a\n\x1bMb", "b\n");
	expect("head\x1b[s\nfoot\x1b[uX\nFOOT", "headX\nFOOT");
	expect("head\0337\nfoot\0338X", "headX\nfoot");
}

TEST(what_is_above_the_screen_is_final)
{
	struct buf in = {0}, want = {0};

	for (unsigned int i = 0; i < 100; i++) {
		(void)buf_printf(&in, "line %u\n", i);
		(void)buf_printf(
		    &want, i == 100 - SCREEN_ROWS + 1 ? "X\n" : "line %u\n", i);
	}
	(void)buf_printf(&in, "\x1b[s\x1b[999A\x1b[2KX\x1b[u");
	assert_int_equal(buf_append(&want, "", 1), 0);
	expect_bytes(
	    (char *)buf_data(&in), buf_len(&in), (char *)buf_data(&want));
	buf_clear(&in);
	buf_clear(&want);
}

TEST(a_place_of_the_screen_is_a_line_of_its_own)
{
	expect("before\n\x1b[H\x1b[2J\x1b[3Jafter\n", "before\nafter\n");
	expect("before\x1b[2Jafter\n", "before\nafter\n");
	expect("\x1b[5;10Hfoo\x1b[6;10Hbar", "foo\nbar");
	expect("before\033cafter", "before\nafter");
}

TEST(what_is_no_sequence_takes_nothing_along)
{
	struct buf in = {0}, out = {0};

	expect("\x1b\xc3\xa9\x1b\n\x1b", "\xc3\xa9\n");
	expect("\x1b[12\xe2\x82\xac", "\xe2\x82\xac");
	expect("\x1b[3\x1b[31mx", "x");
	expect("\x1b]0;never ended\nnext", "\nnext");
	expect("\x1b]0;a\x1b[31mb", "b");
	expect("\x1b]0;a\030b", "b");
	(void)buf_printf(&in, "\x1b]");
	for (unsigned int i = 0; i < 3000; i++)
		(void)buf_printf(&in, "\xe2\x82\xac");
	screen_show(&out, buf_data(&in), buf_len(&in));
	assert_in_range(buf_len(&out), 4500, 5000);
	assert_true(utf8_is_valid(buf_data(&out), buf_len(&out)));
	buf_clear(&in);
	buf_clear(&out);
}

TEST(a_block_ends_with_its_line)
{
	static const char *const printed[] = {"a", "a\n", "a\nb\r"};
	static const char *const want[] = {"a\n", "a\n", "a\nb\n"};
	struct buf out = {0};

	screen_show_block(&out, "\x1b[0m", 4);
	assert_int_equal(buf_len(&out), 0);
	for (size_t i = 0; i < ARRAY_LEN(printed); i++) {
		screen_show_block(&out, printed[i], strlen(printed[i]));
		assert_int_equal(buf_len(&out), strlen(want[i]));
		assert_memory_equal(buf_data(&out), want[i], buf_len(&out));
		buf_consume(&out, buf_len(&out));
	}
	buf_clear(&out);
}

static size_t
unfinished(const char *text)
{
	return screen_unfinished_len(text, strlen(text));
}

TEST(a_cut_falls_between_sequences)
{
	static char url[2 * SCREEN_SEQUENCE_MAX];

	assert_int_equal(unfinished("a\x1b[31mb"), 0);
	assert_int_equal(unfinished("a\x1b"), 1);
	assert_int_equal(unfinished("a\x1b["), 2);
	assert_int_equal(unfinished("a\x1b[31;4"), 6);
	assert_int_equal(unfinished("a\x1b("), 2);
	assert_int_equal(unfinished("a\x1b]8;;http://x"), 13);
	assert_int_equal(unfinished("a\x1b]8;;http://x\x1b"), 1);
	assert_int_equal(unfinished("a\x1b]0;t\nb"), 0);
	memset(url, 'u', sizeof(url));
	memcpy(url, "\x1b]", 2);
	assert_int_equal(screen_unfinished_len(url, 100), 100);
	assert_int_equal(screen_unfinished_len(url, sizeof(url)), 0);
	assert_int_equal(screen_broken_start_len("1;31mx", 6), 5);
	assert_int_equal(screen_broken_start_len("[31mx", 5), 4);
	assert_int_equal(screen_broken_start_len("more", 4), 0);
	assert_int_equal(screen_broken_start_len("[1,2]", 5), 0);
	assert_int_equal(screen_broken_start_len("31", 2), 0);
	assert_int_equal(screen_broken_start_len("", 0), 0);
}

/* Hostile bytes: no more comes out than went in, and all of it is text. */
TEST(the_text_is_never_longer_than_what_was_printed)
{
	static const char *const parts[] = {"\x1b[", "\x1b]", "\x1b", "9", ";",
	    "A", "B", "C", "D", "G", "H", "J", "K", "m", "\r", "\n", "\b", "\t",
	    "x", "\xe2\x82\xac", "\xff", "\x07", "\x1b\\", "\0337", "\0338",
	    "s", "u", "\xc2\x9b", "999999999999"};
	uint32_t seed = 1;

	for (unsigned int round = 0; round < 3000; round++) {
		struct buf in = {0}, text = {0}, out = {0};

		for (unsigned int i = 0; i < 1 + round % 200; i++) {
			const char *p;

			seed = seed * 1103515245 + 12345;
			p = parts[(seed >> 16) % ARRAY_LEN(parts)];
			assert_int_equal(buf_append(&in, p, strlen(p)), 0);
		}
		assert_int_equal(
		    utf8_append_repaired(&text, buf_data(&in), buf_len(&in)),
		    0);
		screen_show(&out, buf_data(&in), buf_len(&in));
		assert_true(buf_len(&out) <= buf_len(&text));
		assert_true(utf8_is_valid(buf_data(&out), buf_len(&out)));
		buf_clear(&in);
		buf_clear(&text);
		buf_clear(&out);
	}
}

/* No sequence costs as much as a line is long. */
TEST(long_lines_and_many_sequences_cost_no_more_than_their_sum)
{
	static const char *const sequences[] = {"\x1b[1K", "\x1b[K", "\x1b[J",
	    "\r\x1b[9999C\x1b[1Kx", "\0337\r \0338\x1b[1K", "\x1b[A\x1b[B",
	    "\x1b[2J", "\x1b[H"};
	struct buf in = {0}, out = {0};

	for (size_t i = 0; i < ARRAY_LEN(sequences); i++) {
		for (unsigned int k = 0; k < 1000000; k++)
			assert_int_equal(buf_append(&in, "x", 1), 0);
		for (unsigned int k = 0; k < 200000; k++)
			assert_int_equal(
			    buf_append(&in, sequences[i], strlen(sequences[i])),
			    0);
		screen_show(&out, buf_data(&in), buf_len(&in));
		assert_true(buf_len(&out) <= buf_len(&in));
		buf_clear(&in);
		buf_clear(&out);
	}
}

TEST_MAIN(NULL, NULL)

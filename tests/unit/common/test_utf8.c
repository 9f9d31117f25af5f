#include <stdio.h>

#include "common/utf8.h"
#include "tests/unit/test.h"

/* RFC 3629 by arithmetic, the slow way, as a second opinion. */
static bool
is_one_character(const uint8_t *p, size_t n)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	uint32_t c = p[0];

	if (n == 1)
		return c < 0x80;
	if (n == 2 && (c & 0xe0) == 0xc0)
		c &= 0x1f;
	else if (n == 3 && (c & 0xf0) == 0xe0)
		c &= 0x0f;
	else if (n == 4 && (c & 0xf8) == 0xf0)
		c &= 0x07;
	else
		return false;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return false;
		c = c << 6 | (p[i] & 0x3f);
	}
	return c >= least[n] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
}

TEST(every_sequence_of_two_and_three_bytes_is_judged_right)
{
	uint8_t p[3];

	for (uint32_t v = 0; v < 1 << 24; v++) {
		p[0] = (uint8_t)(v >> 16);
		p[1] = (uint8_t)(v >> 8);
		p[2] = (uint8_t)v;
		if (p[0] < 0x80) { /* nothing new behind plain ASCII */
			v |= 0xffff;
			continue;
		}
		if (p[2] == 0 && utf8_is_valid(p, 2) != is_one_character(p, 2))
			fail_msg("%02x %02x", p[0], p[1]);
		if (p[2] >= 0x80 &&
		    utf8_is_valid(p, 3) != is_one_character(p, 3))
			fail_msg("%02x %02x %02x", p[0], p[1], p[2]);
	}
}

TEST(sequences_of_four_bytes_are_judged_right)
{
	static const uint8_t ends[] = {0x00, 0x7f, 0x80, 0xbf, 0xc0, 0xff};

	for (unsigned int a = 0xee; a <= 0xff; a++) {
		for (unsigned int b = 0; b <= 0xff; b++) {
			for (size_t i = 0; i < 36; i++) {
				uint8_t p[4] = {(uint8_t)a, (uint8_t)b,
				    ends[i / 6], ends[i % 6]};
				bool want = is_one_character(p, 4);

				if (p[3] < 0x80) /* 3 and ASCII is fine, too */
					want = is_one_character(p, 3);
				if (utf8_is_valid(p, 4) != want)
					fail_msg("%02x %02x %02x %02x", p[0],
					    p[1], p[2], p[3]);
			}
		}
	}
}

TEST(ascii_is_valid_and_one_bad_byte_anywhere_is_seen)
{
	uint8_t text[64];

	memset(text, 'a', sizeof(text));
	assert_true(utf8_is_valid(text, sizeof(text)));
	assert_true(utf8_is_valid(NULL, 0));
	for (size_t i = 0; i < sizeof(text); i++) {
		text[i] = 0x80;
		assert_false(utf8_is_valid(text, sizeof(text)));
		text[i] = 'a';
	}
}

TEST(a_cut_never_splits_a_character_of_valid_text)
{
	static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z";
	size_t n = sizeof(text) - 1;

	for (size_t cut = 0; cut <= n; cut++) {
		size_t len = utf8_complete_len(text, cut);

		assert_true(len <= cut && cut - len <= 3);
		assert_true(utf8_is_valid(text, len));
		assert_true(utf8_is_valid(text + len, n - len));
	}
}

TEST(a_tail_that_can_never_become_a_character_is_complete)
{
	static const struct {
		const char *text;
		size_t n, want;
	} known[] = {
	    {"ab\x80", 3, 3},            /* nothing before it */
	    {"ab\xc3", 3, 2},            /* waits for one */
	    {"\xe2\x82", 2, 0},          /* waits for one */
	    {"\xe0\x80", 2, 2},          /* overlong */
	    {"\xed\xa0", 2, 2},          /* surrogate */
	    {"\xf4\x90", 2, 2},          /* above U+10FFFF */
	    {"\xf0\x9f\x98", 3, 0},      /* waits for one */
	    {"\xff", 1, 1},              /* never */
	    {"\xc0", 1, 1},              /* never */
	    {"a\x80\x80\x80\x80", 5, 5}, /* no first byte in reach */
	    {"\xc3\xa9\x80", 3, 3},      /* complete, then one too many */
	    {"\xe2\x82\xac", 3, 3},      /* complete */
	    {"", 0, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		assert_int_equal(utf8_complete_len(known[i].text, known[i].n),
		    known[i].want);
}

static void
check_repair(const char *text, size_t n, const char *want)
{
	struct buf b;

	buf_init(&b, 0);
	assert_int_equal(utf8_append_repaired(&b, text, n), 0);
	assert_int_equal(buf_len(&b), strlen(want));
	assert_memory_equal(buf_data(&b), want, buf_len(&b));
	buf_clear(&b);
}

TEST(each_byte_without_a_character_becomes_one_replacement)
{
	check_repair("plain", 5, "plain");
	check_repair("\x80"
		     "a",
	    2,
	    "\xef\xbf\xbd"
	    "a");
	check_repair("a\xe2\x82", 3, "a\xef\xbf\xbd\xef\xbf\xbd");
	check_repair(
	    "\xc3\xa9\xff\xe2\x82\xac", 6, "\xc3\xa9\xef\xbf\xbd\xe2\x82\xac");
	check_repair("\xed\xa0\x80", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	check_repair("", 0, "");
}

TEST(a_repair_over_the_limit_is_refused)
{
	struct buf b;

	buf_init(&b, 5);
	assert_int_equal(utf8_append_repaired(&b, "\xff\xff", 2), -1);
	buf_clear(&b);
	assert_int_equal(utf8_append_repaired(&b, "abc\xff", 4), -1);
	buf_clear(&b);
}

TEST(the_rest_of_a_cut_character_at_the_start_is_measured)
{
	static const char text[] = "a\xf0\x9f\x98\x80z"; /* a, emoji, z */

	assert_int_equal(utf8_broken_start_len(text, 6), 0);
	assert_int_equal(utf8_broken_start_len(text + 1, 5), 0);
	assert_int_equal(utf8_broken_start_len(text + 2, 4), 3);
	assert_int_equal(utf8_broken_start_len(text + 4, 2), 1);
	assert_int_equal(utf8_broken_start_len(text + 4, 1), 1);
	assert_int_equal(utf8_broken_start_len(text + 5, 1), 0);
	assert_int_equal(utf8_broken_start_len("", 0), 0);
	/* No text at all: not more than a character can be. */
	assert_int_equal(utf8_broken_start_len("\x80\x80\x80\x80", 4), 3);
}

TEST(control_characters_are_masked_and_nothing_else)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
	    {"", ""},
	    {"a\x1b[31m\n\x7f", "a?[31m??"},
	    {"\xc2\x80\xc2\x9b"
	     "1m\xc2\x9f",
		"??1m?"},
	    {"\xc2\xa0\xc3\xa9\xc3\x80\xe2\x80\x9b",
		"\xc2\xa0\xc3\xa9\xc3\x80\xe2\x80\x9b"},
	    {"\xc2", "\xc2"},
	    {"\xe2\x80\xa8\xe2\x80\xae\xe2\x81\xa6\xe2\x81\xa9", "????"},
	    {"\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81",
		"\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[32];
		size_t n;

		(void)snprintf(text, sizeof(text), "%s", cases[i].text);
		n = utf8_mask_controls(text, strlen(text));
		assert_int_equal(n, strlen(cases[i].want));
		assert_memory_equal(text, cases[i].want, n);
	}
}

TEST_MAIN(NULL, NULL)

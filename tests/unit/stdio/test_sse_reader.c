#include "supervisor/stdio/sse_reader.h"

#include "tests/unit/test.h"

#define MAX 64

static struct buf seen; /* each event in brackets */

static void
event_cb(const char *data, size_t n, void *arg)
{
	(void)arg;
	assert_int_equal(buf_printf(&seen, "[%.*s]", (int)n, data), 0);
}

/* The same in pieces of any size; the reader, to be looked at and cleared. */
static struct sse_reader
read_all(const char *text, const char *want)
{
	struct sse_reader s = {.retry_ms = 0};
	size_t len = strlen(text);
	struct err e;

	for (size_t piece = 1; piece <= len; piece++) {
		buf_clear(&seen);
		sse_init(&s, MAX, event_cb, NULL);
		for (size_t at = 0; at < len; at += piece)
			assert_int_equal(
			    sse_feed(&s, text + at,
				len - at < piece ? len - at : piece, &e),
			    0);
		assert_int_equal(buf_append(&seen, "", 1), 0);
		assert_string_equal((char *)buf_data(&seen), want);
		if (piece < len)
			sse_clear(&s);
	}
	buf_clear(&seen);
	return s;
}

static void
check(const char *text, const char *want)
{
	struct sse_reader s = read_all(text, want);

	sse_clear(&s);
}

TEST(an_event_ends_with_a_blank_line)
{
	check("data: a\n\ndata:b\n\n", "[a][b]");
	check("data: a\n\ndata: never ended\n", "[a]");
}

TEST(lines_end_with_either_or_both)
{
	check("data: a\r\rdata: b\r\n\r\ndata: c\n\n", "[a][b][c]");
	check("data: a\r\n\n", "[a]");
}

TEST(several_data_lines_are_one_text)
{
	check("data: {\ndata:\ndata:  1}\n\n", "[{\n\n 1}]");
}

TEST(comments_and_unknown_fields_are_left_out)
{
	check(": hello\n\nfoo: bar\ndata\ndata: a\n:\n\n", "[\na]");
}

TEST(a_mark_of_byte_order_is_no_part_of_the_first_line)
{
	check("\xef\xbb\xbf"
	      "data: a\n\n",
	    "[a]");
}

TEST(events_of_other_types_are_not_ours)
{
	check("event: endpoint\ndata: /x\n\nevent: message\ndata: a\n\n"
	      "data: b\n\n",
	    "[a][b]");
}

TEST(an_id_counts_when_its_event_is_whole)
{
	struct sse_reader s =
	    read_all("id: 1\ndata: a\n\nid: 2\ndata: b\n", "[a]");

	assert_string_equal(s.last_id, "1");
	sse_begin(&s);
	assert_string_equal(s.last_id, "1");
	sse_clear(&s);
}

TEST(an_event_of_empty_data_tells_its_id_alone)
{
	struct sse_reader s = read_all("id: x-1\nretry: 250\ndata:\n\n", "");

	assert_string_equal(s.last_id, "x-1");
	assert_int_equal(s.retry_ms, 250);
	sse_clear(&s);
}

TEST(an_id_stays_until_another_one_is_said)
{
	struct sse_reader s =
	    read_all("id: 1\ndata: a\n\ndata: b\n\n", "[a][b]");

	assert_string_equal(s.last_id, "1");
	sse_clear(&s);
	s = read_all("id: 1\ndata: a\n\nid\ndata: b\n\n", "[a][b]");
	assert_string_equal(s.last_id, "");
	sse_clear(&s);
}

TEST(what_is_no_header_is_no_id)
{
	struct sse_reader s =
	    read_all("id: 1\ndata: a\n\nid: a\001b\ndata: b\n\n", "[a][b]");

	assert_string_equal(s.last_id, "1");
	sse_clear(&s);
}

TEST(what_is_no_number_is_no_retry)
{
	static const char *const bad[] = {
	    "retry: 1s\n", "retry:\n", "retry: -1\n", "retry: 0x10\n"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct sse_reader s = read_all(bad[i], "");

		assert_int_equal(s.retry_ms, -1);
		sse_clear(&s);
	}
}

TEST(nobody_waits_longer_than_a_minute)
{
	struct sse_reader s =
	    read_all("retry: 99999999999999999999999999\n", "");

	assert_int_equal(s.retry_ms, SSE_RETRY_MAX_MS);
	sse_clear(&s);
}

TEST(an_event_has_a_bound)
{
	static const char line[] = "data: 0123456789\n";
	struct sse_reader s;
	struct err e;
	int rc = 0;

	sse_init(&s, MAX, event_cb, NULL);
	for (int i = 0; i < 10 && rc == 0; i++)
		rc = sse_feed(&s, line, strlen(line), &e);
	assert_int_equal(rc, ERR_LIMIT);
	sse_begin(&s);
	for (int i = 0, n = rc = 0; i < 10 && rc == 0; i++, n++)
		rc = sse_feed(&s, "0123456789", 10, &e);
	assert_int_equal(rc, ERR_LIMIT);
	sse_clear(&s);
}

TEST_MAIN(NULL, NULL)

/* test_page.c - a cursor is a place that was given out, pages leave nothing
 * out, and they end */
#include <stdio.h>

#include "common/js.h"
#include "common/utf8.h"
#include "supervisor/tools/page.h"
#include "supervisor/tools/tool.h"
#include "tests/unit/core/log_fixture.h"
#include "tests/unit/test.h"

static const uint8_t key[SIPHASH_KEY_BYTES] = {1, 2, 3};
static const uint8_t other_key[SIPHASH_KEY_BYTES] = {1, 2, 4};
static const struct uuid run = {{7}}, other_run = {{8}};
static const struct page_of of = {&run, key};

static int
parse(const struct page_of *whose, const char *text, struct log_at *at)
{
	struct err e;
	int rc = page_parse_cursor(whose, text, at, &e);

	if (rc != 0)
		assert_non_null(strstr(e.msg, "cursor: want"));
	return rc;
}

TEST(a_cursor_leads_back_to_its_place)
{
	static const struct log_at places[] = {{0, 0}, {1, 0}, {32768, 1},
	    {999999999999999999, RUNLOG_PAYLOAD_MAX}};
	char text[PAGE_CURSOR_TEXT_MAX];
	struct log_at at;

	assert_int_equal(parse(&of, "0", &at), 0);
	assert_int_equal(at.offset, 0);
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		page_format_cursor(&of, &places[i], text);
		assert_int_equal(parse(&of, text, &at), 0);
		assert_true(at.offset == places[i].offset);
		assert_int_equal(at.skip, places[i].skip);
	}
}

/* They were an offset alone, and are still good for as long as nothing of a
 * record is behind. */
TEST(a_place_between_records_is_its_offset)
{
	char text[PAGE_CURSOR_TEXT_MAX];

	page_format_cursor(&of, &(struct log_at){100, 0}, text);
	assert_int_equal(strcspn(text, "-"), 3);
	page_format_cursor(&of, &(struct log_at){100, 7}, text);
	assert_int_equal(strncmp(text, "100.7-", 6), 0);
}

TEST(a_place_that_was_never_given_out_is_refused)
{
	static const char *const forged[] = {"", "7", "00", "0-", " 0", "-1",
	    "7-0123456789abcdef", "9999999999999999999", "x", "7.", "7.1",
	    "7.99999999999-0123456789abcdef", ".7-0123456789abcdef"};
	const struct page_of others[] = {{&other_run, key}, {&run, other_key}};
	char text[PAGE_CURSOR_TEXT_MAX], near[PAGE_CURSOR_TEXT_MAX + 2];
	struct log_at at;

	for (size_t i = 0; i < ARRAY_LEN(forged); i++)
		assert_int_equal(parse(&of, forged[i], &at), ERR_INVAL);
	page_format_cursor(&of, &(struct log_at){100, 0}, text);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_int_equal(parse(&others[i], text, &at), ERR_INVAL);
	(void)snprintf(near, sizeof(near), "0%s", text);
	assert_int_equal(parse(&of, near, &at), ERR_INVAL);
	(void)snprintf(near, sizeof(near), "%sa", text);
	assert_int_equal(parse(&of, near, &at), ERR_INVAL);
	(void)snprintf(near, sizeof(near), "100.0%s", text + 3);
	assert_int_equal(parse(&of, near, &at), ERR_INVAL);
	text[2] = '1';
	assert_int_equal(parse(&of, text, &at), ERR_INVAL);
}

static json_t *
view(const struct log_records *records, uint64_t upto, enum tool_text_form form)
{
	static char none[] = "";
	const struct store_run row = {
	    .identifier = none, .ncommands = 1, .state = RUN_STATE_COMPLETED};

	return page_view(&row, records, &of, &(struct page_wish){upto, form});
}

static bool
says_more(const struct log_records *records, uint64_t upto)
{
	json_t *o = view(records, upto, TOOL_TEXT_TRANSCRIPT);
	bool more = json_object_get(o, "next_cursor") != NULL;

	json_decref(o);
	return more;
}

/* A log may be shorter than its run's row says, after a loss. */
TEST(pages_end_where_nothing_comes_any_more)
{
	static const uint8_t bytes[1];
	const struct log_records nothing = {
	    .p = bytes, .next = 100, .from = {100, 0}};

	assert_false(says_more(&nothing, 100));
	assert_false(says_more(&nothing, 200));
	assert_true(says_more(&nothing, PAGE_GROWS));
}

/* ---- pages of a log, as get_run reads them */

struct paging {
	enum tool_text_form form;
	unsigned int pages;
	struct buf texts;    /* all, one behind the other */
	struct buf exact[2]; /* what the structures have, by stream */
};

/* What a program makes of a piece. */
static void
keep_exact(struct paging *p, const json_t *piece)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	bool is_err = strcmp(js_text(piece, "stream"), "stderr") == 0;
	const char *base64 = js_text(piece, "base64");
	const json_t *text = json_object_get(piece, "text");
	struct buf *to = &p->exact[is_err];
	uint32_t v = 0;

	if (base64[0] == '\0') {
		assert_int_equal(buf_append(to, json_string_value(text),
				     json_string_length(text)),
		    0);
		return;
	}
	for (size_t i = 0; base64[i] != '\0' && base64[i] != '='; i++) {
		uint8_t byte;

		v = v << 6 | (uint32_t)(strchr(digits, base64[i]) - digits);
		byte = (uint8_t)(v >> (i % 4 == 1 ? 4 : i % 4 == 2 ? 2 : 0));
		if (i % 4 != 0)
			assert_int_equal(buf_append(to, &byte, 1), 0);
	}
}

static size_t
lines_in(const char *text)
{
	size_t n = 0;

	for (; *text != '\0'; text++)
		n += *text == '\n';
	return n;
}

static void
keep_page(struct paging *p, const json_t *o)
{
	AUTO(auto_free)
	char *text = tool_text(&tool_get_run, o,
	    &(struct tool_text_wish){.form = p->form, .server_url = ""});
	const bool is_json = p->form == TOOL_TEXT_JSON;
	const json_t *piece;
	size_t i;

	assert_true(strlen(text) <= (is_json ? TOOL_JSON_MAX : TOOL_TEXT_MAX));
	assert_true(is_json || lines_in(text) <= TOOL_TEXT_LINES_MAX);
	assert_null(strstr(text, " of this text left out"));
	assert_true(utf8_is_valid(text, strlen(text)));
	assert_int_equal(buf_append(&p->texts, text, strlen(text)), 0);
	json_array_foreach (json_object_get(o, "output"), i, piece)
		keep_exact(p, piece);
	/* A page of JSON is the content, and never a transcript instead. */
	if (is_json) {
		json_t *again =
		    json_loads(strchr(text, '\n'), JSON_ALLOW_NUL, NULL);

		assert_true(json_equal(o, again));
		json_decref(again);
	}
}

static void
page_through(struct paging *p, const struct made_log *l)
{
	const size_t n = buf_len(&l->b);
	struct log_at at = {0};
	const char *next;
	json_t *o;

	do {
		struct log_read r = {.source = {-1, buf_data(&l->b)},
		    .ncommands = 1,
		    .from = at,
		    .upto = n,
		    .max = PAGE_BYTES};

		assert_int_equal(log_read_records(&r, NULL), 0);
		o = view(&r.records, n, p->form);
		free(r.mem);
		keep_page(p, o);
		next = js_text(o, "next_cursor");
		if (next[0] != '\0')
			assert_int_equal(parse(&of, next, &at), 0);
		assert_true(++p->pages < 2000);
		if (next[0] == '\0')
			break;
		json_decref(o);
	} while (true);
	json_decref(o);
}

static void
clear_paging(struct paging *p)
{
	buf_clear(&p->texts);
	buf_clear(&p->exact[0]);
	buf_clear(&p->exact[1]);
}

static void
assert_same(const struct buf *got, const struct buf *want)
{
	assert_int_equal(buf_len(got), buf_len(want));
	if (buf_len(want) > 0)
		assert_memory_equal(
		    buf_data(got), buf_data(want), buf_len(want));
}

/* Records as long as may be, of what fill makes. */
static void
make_long(struct made_log *l, struct buf *printed, size_t n,
    uint8_t (*fill)(size_t i))
{
	begin_log(l);
	put_started(l, 0);
	for (size_t at = 0; at < n;) {
		uint8_t record[RUNLOG_PAYLOAD_MAX];
		size_t len = n - at < sizeof(record) ? n - at : sizeof(record);

		for (size_t i = 0; i < len; i++)
			record[i] = fill(at + i);
		put_record(l, RUNLOG_STDOUT, record, len);
		assert_int_equal(buf_append(printed, record, len), 0);
		l->bytes[0] += len;
		at += len;
	}
	put_ended(l);
	put_run_ended(l);
}

static void
check_pages(const struct made_log *l, const struct buf *printed,
    const struct buf *errors)
{
	static const enum tool_text_form forms[] = {
	    TOOL_TEXT_TRANSCRIPT, TOOL_TEXT_JSON};

	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		struct paging p = {.form = forms[i]};

		page_through(&p, l);
		assert_same(&p.exact[0], printed);
		assert_same(&p.exact[1], errors);
		clear_paging(&p);
	}
}

static uint8_t
letter(size_t i)
{
	return (uint8_t)('A' + (i * 2654435761u >> 16) % 26);
}

static uint8_t
any_byte(size_t i)
{
	return pattern(i, 0);
}

static uint8_t
no_text(size_t i)
{
	return i % 2 == 0 ? 0xff : 0;
}

static size_t
count_of(const struct buf *b, char c)
{
	size_t n = 0;

	for (size_t i = 0; i < buf_len(b); i++)
		n += buf_data(b)[i] == (uint8_t)c;
	return n;
}

/* base64 -w0: one line in records of 64 KiB. */
TEST(the_texts_of_pages_show_what_their_cursors_pass_over)
{
	struct buf printed = {0}, none = {0};
	struct paging p = {.form = TOOL_TEXT_TRANSCRIPT};
	struct made_log l;

	make_long(&l, &printed, 348894, letter);
	page_through(&p, &l);
	/* No capital stands in the words around. */
	for (int c = 'A'; c <= 'Z'; c++)
		assert_int_equal(
		    count_of(&p.texts, (char)c), count_of(&printed, (char)c));
	check_pages(&l, &printed, &none);
	clear_paging(&p);
	buf_clear(&printed);
	buf_clear(&l.b);
}

TEST(what_is_no_text_costs_more_and_is_all_there)
{
	static uint8_t (*const fills[])(size_t) = {any_byte, no_text};
	struct buf none = {0};

	for (size_t i = 0; i < ARRAY_LEN(fills); i++) {
		struct buf printed = {0};
		struct made_log l;

		make_long(&l, &printed, 200000, fills[i]);
		check_pages(&l, &printed, &none);
		buf_clear(&printed);
		buf_clear(&l.b);
	}
}

TEST(two_streams_by_turns_are_all_there)
{
	static const size_t lengths[] = {1, 700, 9000};

	for (size_t k = 0; k < ARRAY_LEN(lengths); k++) {
		struct buf printed[2] = {{0}, {0}};
		uint8_t record[9000];
		struct made_log l;

		begin_log(&l);
		put_started(&l, 0);
		for (size_t i = 0; i < 9000; i++) {
			size_t n = i % 2 == 0 ? lengths[k] : 1;

			memset(record, letter(i), n);
			put_record(&l,
			    i % 2 == 0 ? RUNLOG_STDOUT : RUNLOG_STDERR, record,
			    n);
			l.bytes[i % 2] += n;
			assert_int_equal(
			    buf_append(&printed[i % 2], record, n), 0);
			if (buf_len(&l.b) > 400000)
				break;
		}
		put_ended(&l);
		put_run_ended(&l);
		check_pages(&l, &printed[0], &printed[1]);
		buf_clear(&printed[0]);
		buf_clear(&printed[1]);
		buf_clear(&l.b);
	}
}

TEST(pages_are_cut_between_characters)
{
	struct buf printed = {0}, none = {0};
	struct made_log l;

	begin_log(&l);
	put_started(&l, 0);
	for (unsigned int i = 0; i < 5; i++) {
		char record[60001];

		for (size_t at = 0; at < 60000; at += 3)
			memcpy(record + at, "\xe2\x82\xac", 3);
		put_record(&l, RUNLOG_STDOUT, record, 60000);
		assert_int_equal(buf_append(&printed, record, 60000), 0);
		l.bytes[0] += 60000;
	}
	put_ended(&l);
	put_run_ended(&l);
	check_pages(&l, &printed, &none); /* a half would be in base64 */
	buf_clear(&printed);
	buf_clear(&l.b);
}

TEST(a_page_shows_what_a_terminal_would)
{
	static const char printed[] = " 1%\r\x1b[1m 2%\x1b[0m\r 3%\nend\n";
	struct paging p = {.form = TOOL_TEXT_TRANSCRIPT};
	struct buf all = {0};
	struct made_log l;

	begin_log(&l);
	put_started(&l, 0);
	put_record(&l, RUNLOG_STDOUT, printed, strlen(printed));
	page_through(&p, &l);
	assert_int_equal(buf_append(&p.texts, "", 1), 0);
	assert_non_null(strstr(
	    (char *)buf_data(&p.texts), "stdout of command 0:\n 3%\nend\n"));
	assert_int_equal(buf_append(&all, printed, strlen(printed)), 0);
	assert_same(&p.exact[0], &all);
	clear_paging(&p);
	buf_clear(&all);
	buf_clear(&l.b);
}

static uint8_t
line_or_colour(size_t i)
{
	static const char text[] = "\x1b[38;5;123mword\x1b[0m \xe2\x82\xac\n";

	return (uint8_t)text[i % (sizeof(text) - 1)];
}

TEST(pages_end_with_a_line_and_never_within_a_sequence)
{
	struct buf printed = {0}, none = {0};
	struct paging p = {.form = TOOL_TEXT_TRANSCRIPT};
	struct made_log l;
	const char *at;

	make_long(&l, &printed, 300000, line_or_colour);
	page_through(&p, &l);
	assert_true(p.pages > 5);
	assert_int_equal(buf_append(&p.texts, "", 1), 0);
	/* Each line stands alone, but for the words of pages. */
	for (at = (char *)buf_data(&p.texts); *at != '\0';
	     at += strcspn(at, "\n") + 1)
		if (strncmp(at, "run ", 4) != 0 &&
		    strncmp(at, "stdout of", 9) != 0 &&
		    strncmp(at, "[more: ", 7) != 0 && strlen(at) > 20)
			assert_memory_equal(at, "word \xe2\x82\xac\n", 9);
	check_pages(&l, &printed, &none);
	clear_paging(&p);
	buf_clear(&printed);
	buf_clear(&l.b);
}

static json_t *
page_of_live_log(const struct made_log *l, struct log_at *at, uint64_t upto)
{
	struct log_read r = {.source = {-1, buf_data(&l->b)},
	    .ncommands = 1,
	    .from = *at,
	    .upto = buf_len(&l->b),
	    .max = PAGE_BYTES};
	json_t *o;

	assert_int_equal(log_read_records(&r, NULL), 0);
	o = view(&r.records, upto, TOOL_TEXT_TRANSCRIPT);
	free(r.mem);
	if (js_text(o, "next_cursor")[0] != '\0')
		assert_int_equal(parse(&of, js_text(o, "next_cursor"), at), 0);
	return o;
}

static const char *
first_text(const json_t *o)
{
	return js_text(json_array_get(json_object_get(o, "output"), 0), "text");
}

/* While more may come, what has begun waits for it. */
TEST(a_sequence_that_has_begun_is_left_for_the_next_page)
{
	struct log_at at = {0};
	struct made_log l;
	json_t *o;

	begin_log(&l);
	put_started(&l, 0);
	put_record(&l, RUNLOG_STDOUT, "red \x1b[3", 7);
	o = page_of_live_log(&l, &at, PAGE_GROWS);
	assert_string_equal(first_text(o), "red ");
	json_decref(o);
	o = page_of_live_log(&l, &at, PAGE_GROWS);
	assert_int_equal(json_array_size(json_object_get(o, "output")), 0);
	json_decref(o);
	put_record(&l, RUNLOG_STDOUT, "1mx", 3);
	o = page_of_live_log(&l, &at, PAGE_GROWS);
	assert_string_equal(first_text(o), "\x1b[31mx");
	json_decref(o);
	put_record(&l, RUNLOG_STDOUT, "\x1b[3", 3);
	/* The rest was lost: the row says more than there is. */
	o = page_of_live_log(&l, &at, buf_len(&l.b) + 100);
	assert_string_equal(first_text(o), "\x1b[3");
	json_decref(o);
	buf_clear(&l.b);
}

TEST_MAIN(NULL, NULL)

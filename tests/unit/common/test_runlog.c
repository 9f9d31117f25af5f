#include "common/runlog_scan.h"
#include "common/msg/wire.h"
#include "common/xmalloc.h"
#include "tests/unit/test.h"

#define WHEN_US INT64_C(1795201200123456)

static void
put(struct buf *b, enum runlog_type type, uint16_t command, const void *p,
    size_t n)
{
	const struct runlog_header h = {type, command, (uint32_t)n, WHEN_US};

	runlog_put_header(b, &h);
	assert_int_equal(buf_append(b, p, n), 0);
}

static void
put_end(struct buf *b, uint16_t command, uint64_t out, uint64_t err)
{
	const struct runlog_end end = {.reason = RUNLOG_EXIT,
	    .stdout_bytes = out,
	    .stderr_bytes = err,
	    .wall_us = 5,
	    .text = "why"};
	const struct runlog_header h = {RUNLOG_COMMAND_ENDED, command,
	    (uint32_t)runlog_end_size(&end), WHEN_US};

	runlog_put_header(b, &h);
	runlog_put_end(b, &end);
}

static void
put_run_end(struct buf *b, uint16_t command)
{
	const struct runlog_run_end end = {RUNLOG_EXIT, 0, 1, command};
	const struct runlog_header h = {
	    RUNLOG_RUN_ENDED, command, RUNLOG_RUN_END_BYTES, WHEN_US};

	runlog_put_header(b, &h);
	runlog_put_run_end(b, &end);
}

/* Two commands, the first with output. */
static void
put_good_log(struct buf *b)
{
	put(b, RUNLOG_RUN_STARTED, 0, NULL, 0);
	put(b, RUNLOG_COMMAND_STARTED, 0, NULL, 0);
	put(b, RUNLOG_STDOUT, 0, "hello", 5);
	put(b, RUNLOG_STDERR, 0, "oh", 2);
	put(b, RUNLOG_STDOUT, 0, "\xa7\1\2\3", 4);
	put_end(b, 0, 9, 2);
	put(b, RUNLOG_COMMAND_STARTED, 1, NULL, 0);
	put_end(b, 1, 0, 0);
	put_run_end(b, 1);
}

struct seen {
	char types[32]; /* one digit each */
	size_t n;
	size_t bytes;
};

static void
seen_cb(
    const struct runlog_header *h, const uint8_t *record, size_t len, void *arg)
{
	struct runlog_header again;
	struct seen *s = arg;
	struct err e;

	assert_int_equal(runlog_parse_header(record, &again, &e), 0);
	assert_int_equal(again.type, h->type);
	assert_int_equal(again.command, h->command);
	assert_true(again.wall_us == WHEN_US);
	assert_int_equal(len, RUNLOG_HEADER_BYTES + h->length);
	assert_true(s->n < sizeof(s->types) - 1);
	s->types[s->n++] = (char)('0' + (int)h->type);
	s->bytes += len;
}

/* Feed b in pieces; 0 or the first error. */
static int
feed(const struct buf *b, size_t piece, struct seen *s, struct err *e)
{
	struct runlog_check c;
	size_t left = buf_len(b);
	const uint8_t *p = buf_data(b);

	memset(s, 0, sizeof(*s));
	runlog_check_init(&c, 2);
	while (left > 0) {
		size_t n = piece < left ? piece : left;
		/* A copy of the exact size: the sanitizer sees a byte too
		 * many. */
		AUTO(auto_free) uint8_t *copy = xmemdup(p, n);

		if (runlog_check_feed(&c, copy, n, seen_cb, s, e) != 0)
			return ERR_PROTO;
		p += n;
		left -= n;
	}
	assert_true(c.scan.offset == buf_len(b));
	return c.ended ? 0 : 1;
}

TEST(a_good_log_passes_in_pieces_of_any_size)
{
	struct seen s;
	struct buf b;
	struct err e;

	buf_init(&b, 0);
	put_good_log(&b);
	for (size_t piece = 1; piece <= buf_len(&b); piece++) {
		assert_int_equal(feed(&b, piece, &s, &e), 0);
		assert_string_equal(s.types, "125256");
		assert_int_equal(
		    s.bytes, buf_len(&b) - 3 * RUNLOG_HEADER_BYTES - 11);
	}
	buf_clear(&b);
}

TEST(an_unfinished_log_is_no_error)
{
	struct runlog_check c;
	struct buf b;
	struct err e;

	buf_init(&b, 0);
	put_good_log(&b);
	for (size_t n = 0; n < buf_len(&b); n++) {
		runlog_check_init(&c, 2);
		assert_int_equal(
		    runlog_check_feed(&c, buf_data(&b), n, NULL, NULL, &e), 0);
		assert_false(c.ended);
		assert_int_equal(c.scan.offset, n);
	}
	buf_clear(&b);
}

TEST(a_run_may_end_before_its_first_command)
{
	struct seen s;
	struct buf b;
	struct err e;

	buf_init(&b, 0);
	put(&b, RUNLOG_RUN_STARTED, 0, NULL, 0);
	put_run_end(&b, 0);
	assert_int_equal(feed(&b, 7, &s, &e), 0);
	assert_string_equal(s.types, "16");
	buf_clear(&b);
}

/* One wrong log each. */
static void
put_bad_log(struct buf *b, int how)
{
	static const uint8_t zeros[RUNLOG_PAYLOAD_MAX + 1];

	if (how == 0) {
		put(b, RUNLOG_COMMAND_STARTED, 0, NULL, 0);
		return;
	}
	put(b, RUNLOG_RUN_STARTED, how == 1, NULL, 0);
	switch (how) {
	case 1:
		return;
	case 2:
		put(b, RUNLOG_RUN_STARTED, 0, NULL, 0);
		return;
	case 3:
		put(b, RUNLOG_STDOUT, 0, "x", 1); /* of no command */
		return;
	case 4:
		put(b, RUNLOG_COMMAND_STARTED, 1, NULL, 0); /* 0 is missing */
		return;
	case 5:
		put_end(b, 0, 0, 0);
		return;
	case 6:
		put_run_end(b, 2); /* there are two */
		return;
	case 7:
		put_run_end(b, 0);
		put(b, RUNLOG_RUN_STARTED, 0, NULL, 0);
		return;
	default:
		break;
	}
	put(b, RUNLOG_COMMAND_STARTED, 0, NULL, 0);
	put(b, RUNLOG_STDOUT, 0, "xyz", 3);
	switch (how) {
	case 8:
		put(b, RUNLOG_STDOUT, 1, "x", 1); /* of another command */
		return;
	case 9:
		put_end(b, 0, 2, 0);
		return;
	case 10:
		put_end(b, 0, 3, 1);
		return;
	case 11:
		put_run_end(b, 0); /* while one is running */
		return;
	case 12:
		put(b, RUNLOG_COMMAND_STARTED, 1, NULL, 0); /* likewise */
		return;
	case 13:
		put(b, RUNLOG_STDOUT, 0, zeros, sizeof(zeros));
		return;
	case 14:
		put(b, RUNLOG_COMMAND_ENDED, 0, zeros, 45); /* reason 0 */
		return;
	case 15:
		put_end(b, 0, 3, 0);
		put(b, RUNLOG_COMMAND_STARTED, 0, NULL, 0); /* again */
		return;
	default:
		put_end(b, 0, 3, 0);
		put(b, RUNLOG_COMMAND_STARTED, 1, NULL, 0);
		put_end(b, 1, 0, 0);
		put(b, RUNLOG_COMMAND_STARTED, 2, NULL, 0); /* there are two */
		return;
	}
}

TEST(a_log_out_of_order_is_refused_in_pieces_of_any_size)
{
	static const size_t pieces[] = {1, 7, 16, 100, 1000000};
	struct seen s;
	struct buf b;
	struct err e;

	for (int how = 0; how <= 16; how++) {
		buf_init(&b, 0);
		put_bad_log(&b, how);
		for (size_t i = 0; i < ARRAY_LEN(pieces); i++)
			if (feed(&b, pieces[i], &s, &e) != ERR_PROTO)
				fail_msg("log %d passed", how);
		buf_clear(&b);
	}
}

TEST(the_first_wrong_byte_is_enough)
{
	struct runlog_check c;
	struct err e;

	runlog_check_init(&c, 1);
	assert_int_equal(
	    runlog_check_feed(&c, (const uint8_t *)"x", 1, NULL, NULL, &e),
	    ERR_PROTO);
}

static void
check_header(const struct runlog_header *h, int want)
{
	struct runlog_header got;
	struct buf b;
	struct err e;

	buf_init(&b, 0);
	runlog_put_header(&b, h);
	assert_int_equal(buf_len(&b), RUNLOG_HEADER_BYTES);
	assert_int_equal(runlog_parse_header(buf_data(&b), &got, &e), want);
	if (want == 0)
		assert_int_equal(got.length, h->length);
	buf_clear(&b);
}

TEST(headers_over_a_limit_are_refused)
{
	static const struct {
		struct runlog_header h;
		int want;
	} known[] = {
	    {{RUNLOG_STDOUT, 0, RUNLOG_PAYLOAD_MAX, 0}, 0},
	    {{RUNLOG_STDOUT, 0, RUNLOG_PAYLOAD_MAX + 1, 0}, ERR_PROTO},
	    {{RUNLOG_STDERR, 63, 0, 0}, 0},
	    {{RUNLOG_STDERR, 64, 0, 0}, ERR_PROTO},
	    {{RUNLOG_STDERR, 0, 0, -1}, ERR_PROTO},
	    {{RUNLOG_STDERR, 0, 0, INT64_MAX}, ERR_PROTO},
	    {{RUNLOG_RUN_STARTED, 0, 1, 0}, ERR_PROTO},
	    {{RUNLOG_COMMAND_STARTED, 0, 1, 0}, ERR_PROTO},
	    {{RUNLOG_COMMAND_ENDED, 0, 45, 0}, 0},
	    {{RUNLOG_COMMAND_ENDED, 0, 44, 0}, ERR_PROTO},
	    {{RUNLOG_COMMAND_ENDED, 0, 257, 0}, ERR_PROTO},
	    {{RUNLOG_RUN_ENDED, 0, RUNLOG_RUN_END_BYTES, 0}, 0},
	    {{RUNLOG_RUN_ENDED, 0, 4, 0}, ERR_PROTO},
	    {{(enum runlog_type)0, 0, 0, 0}, ERR_PROTO},
	    {{RUNLOG_LEFT, 0, 6, 0}, 0},
	    {{RUNLOG_LEFT, 0, 5, 0}, ERR_PROTO},
	    {{RUNLOG_LEFT, 0, RUNLOG_RECORD_MAX, 0}, 0},
	    {{RUNLOG_LEFT, 0, RUNLOG_RECORD_MAX + 1, 0}, ERR_PROTO},
	    {{(enum runlog_type)8, 0, 0, 0}, ERR_PROTO},
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		check_header(&known[i].h, known[i].want);
}

TEST(what_was_left_comes_back_the_same)
{
	const struct runlog_left left = {.count = 9,
	    .killed = 1,
	    .nshown = 2,
	    .shown = {{1, 17, "python3 -m http.server"},
		{2, 18,
		    "caf\xc3\xa9\xc2\x9b"
		    "1m"}}};
	struct runlog_left got;
	struct buf b;
	struct err e;

	buf_init(&b, 0);
	runlog_put_left(&b, &left);
	assert_int_equal(
	    runlog_parse_left(buf_data(&b), buf_len(&b), &got, &e), 0);
	assert_int_equal(got.count, 9);
	assert_int_equal(got.killed, 1);
	assert_int_equal(got.nshown, 2);
	assert_int_equal(got.shown[0].pid, 17);
	assert_string_equal(got.shown[0].text, left.shown[0].text);
	assert_string_equal(got.shown[1].text, "caf\xc3\xa9?1m");
	for (size_t n = 0; n < buf_len(&b); n++)
		assert_int_equal(
		    runlog_parse_left(buf_data(&b), n, &got, &e), ERR_PROTO);
	buf_clear(&b);
}

static void
check_bad_left(const struct runlog_left *left)
{
	struct runlog_left got;
	struct buf b;
	struct err e;

	buf_init(&b, 0);
	runlog_put_left(&b, left);
	assert_int_equal(
	    runlog_parse_left(buf_data(&b), buf_len(&b), &got, &e), ERR_PROTO);
	buf_clear(&b);
}

TEST(what_was_left_is_not_believed)
{
	check_bad_left(&(struct runlog_left){.count = 0});
	check_bad_left(&(struct runlog_left){.count = 1, .killed = 2});
	check_bad_left(&(struct runlog_left){
	    .count = 1, .nshown = 2, .shown = {{1, 1, "a"}, {2, 2, "b"}}});
	check_bad_left(&(struct runlog_left){
	    .count = 1, .nshown = 1, .shown = {{0, 1, "a"}}});
	check_bad_left(&(struct runlog_left){
	    .count = 1, .nshown = 1, .shown = {{1, 1, "a\nb"}}});
	check_bad_left(&(struct runlog_left){
	    .count = 1, .nshown = 1, .shown = {{1, 1, "\x7f"}}});
	check_bad_left(&(struct runlog_left){
	    .count = 1, .nshown = 1, .shown = {{1, 1, "\xff"}}});
}

#define END_PEAK_BYTES 8 /* what later agents wrote behind */
#define END_KILLS_BYTES 4

TEST(an_end_comes_back_the_same)
{
	struct runlog_end end = {RUNLOG_SIGNAL, 139, 11, UINT64_MAX, 2, 3, 4,
	    "no such program", 5, 6};
	struct runlog_end got;
	struct buf b;
	struct err e;

	buf_init(&b, 0);
	runlog_put_end(&b, &end);
	assert_int_equal(buf_len(&b), runlog_end_size(&end));
	assert_int_equal(
	    runlog_parse_end(buf_data(&b), buf_len(&b), &got, &e), 0);
	assert_int_equal(got.reason, RUNLOG_SIGNAL);
	assert_int_equal(got.exit_code, 139);
	assert_int_equal(got.signal, 11);
	assert_true(got.stdout_bytes == UINT64_MAX);
	assert_int_equal(got.cpu_us, 4);
	assert_string_equal(got.text, end.text);
	assert_int_equal(got.memory_peak_bytes, 5);
	assert_int_equal(got.memory_kills, 6);
	for (size_t n = 0; n < buf_len(&b); n++)
		if (n != buf_len(&b) - END_KILLS_BYTES &&
		    n != buf_len(&b) - END_KILLS_BYTES - END_PEAK_BYTES)
			assert_int_equal(
			    runlog_parse_end(buf_data(&b), n, &got, &e),
			    ERR_PROTO);
	buf_clear(&b);
}

/* The sandbox may have said it, and clients are shown it. */
TEST(the_text_of_an_end_has_no_control_characters)
{
	struct runlog_end end = {.reason = RUNLOG_START_FAILED,
	    .text = "no \x1b[2Jsuch\r\n\xc2\x9b"
		    "1m\xffprogram"};
	struct runlog_end got;
	struct buf b;
	struct err e;

	buf_init(&b, 0);
	runlog_put_end(&b, &end);
	assert_int_equal(
	    runlog_parse_end(buf_data(&b), buf_len(&b), &got, &e), 0);
	assert_string_equal(got.text, "no [2Jsuch 1m program");
	buf_clear(&b);
}

/* Agents of before wrote no memory, or no kills, and their sandboxes and logs
 * live on. */
TEST(an_end_of_an_earlier_agent_is_read)
{
	struct runlog_end end = {.reason = RUNLOG_EXIT,
	    .cpu_us = 4,
	    .text = "x",
	    .memory_peak_bytes = 5,
	    .memory_kills = 6};
	struct runlog_end got;
	struct buf b;
	struct err e;

	buf_init(&b, 0);
	runlog_put_end(&b, &end);
	assert_int_equal(runlog_parse_end(buf_data(&b),
			     buf_len(&b) - END_KILLS_BYTES, &got, &e),
	    0);
	assert_int_equal(got.memory_peak_bytes, 5);
	assert_int_equal(got.memory_kills, 0);
	assert_int_equal(
	    runlog_parse_end(buf_data(&b),
		buf_len(&b) - END_KILLS_BYTES - END_PEAK_BYTES, &got, &e),
	    0);
	assert_string_equal(got.text, "x");
	assert_int_equal(got.cpu_us, 4);
	assert_int_equal(got.memory_peak_bytes, 0);
	assert_int_equal(got.memory_kills, 0);
	buf_clear(&b);
}

TEST(numbers_that_cannot_be_are_cut)
{
	struct runlog_end end = {.reason = RUNLOG_EXIT,
	    .cpu_us = UINT64_MAX,
	    .memory_peak_bytes = UINT64_MAX,
	    .memory_kills = UINT32_MAX};
	struct runlog_end got;
	struct buf b;
	struct err e;

	buf_init(&b, 0);
	runlog_put_end(&b, &end);
	assert_int_equal(
	    runlog_parse_end(buf_data(&b), buf_len(&b), &got, &e), 0);
	assert_true(got.cpu_us == RUNLOG_CPU_MAX_US);
	assert_true(got.memory_peak_bytes == RUNLOG_MEMORY_MAX_BYTES);
	assert_int_equal(got.memory_kills, RUNLOG_KILLS_MAX);
	buf_clear(&b);
}

TEST(the_longest_end_text_fits_a_record)
{
	struct runlog_end end = {.reason = RUNLOG_START_FAILED}, got;
	struct runlog_header h = {RUNLOG_COMMAND_ENDED, 0, 0, 0};
	struct buf b;
	struct err e;

	memset(end.text, 'x', sizeof(end.text)); /* not even ended */
	buf_init(&b, 0);
	runlog_put_end(&b, &end);
	h.length = (uint32_t)buf_len(&b);
	check_header(&h, 0);
	assert_int_equal(
	    runlog_parse_end(buf_data(&b), buf_len(&b), &got, &e), 0);
	assert_int_equal(strlen(got.text), sizeof(got.text) - 1);
	buf_clear(&b);
}

static void
check_bad_end(uint8_t reason, int32_t exit_code, int32_t sig)
{
	struct runlog_end end = {
	    .reason = reason, .exit_code = exit_code, .signal = sig};
	struct runlog_end got;
	struct buf b;
	struct err e;

	buf_init(&b, 0);
	runlog_put_end(&b, &end);
	assert_int_equal(
	    runlog_parse_end(buf_data(&b), buf_len(&b), &got, &e), ERR_PROTO);
	buf_clear(&b);
}

TEST(an_end_that_cannot_be_is_refused)
{
	struct runlog_run_end run_end;
	struct err e;

	check_bad_end(0, 0, 0);
	check_bad_end(RUNLOG_DISK_FULL + 1, 0, 0);
	check_bad_end(RUNLOG_EXIT, 256, 0);
	check_bad_end(RUNLOG_EXIT, -2, 0);
	check_bad_end(RUNLOG_SIGNAL, 0, 65);
	check_bad_end(RUNLOG_SIGNAL, 0, -1);
	assert_int_equal(runlog_parse_run_end(
			     (const uint8_t *)"\1\0\0\0\0", 5, &run_end, &e),
	    0);
	assert_int_equal(runlog_parse_run_end(
			     (const uint8_t *)"\1\2\0\0\0", 5, &run_end, &e),
	    ERR_PROTO);
	assert_int_equal(runlog_parse_run_end(
			     (const uint8_t *)"\1\0\2\0\0", 5, &run_end, &e),
	    ERR_PROTO);
	assert_int_equal(runlog_parse_run_end(
			     (const uint8_t *)"\0\0\0\0\0", 5, &run_end, &e),
	    ERR_PROTO);
	assert_int_equal(runlog_parse_run_end(
			     (const uint8_t *)"\1\0\0\x40\0", 5, &run_end, &e),
	    ERR_PROTO);
	assert_int_equal(
	    runlog_parse_run_end((const uint8_t *)"\1\0\0\0", 4, &run_end, &e),
	    ERR_PROTO);
}

TEST(every_reason_has_its_own_word)
{
	for (unsigned int a = RUNLOG_EXIT; a <= RUNLOG_DISK_FULL; a++) {
		assert_string_not_equal(runlog_reason_word(a), "?");
		for (unsigned int b = RUNLOG_EXIT; b < a; b++)
			assert_string_not_equal(
			    runlog_reason_word(a), runlog_reason_word(b));
	}
	assert_string_equal(runlog_reason_word(0), "");
	assert_string_equal(runlog_reason_word(RUNLOG_DISK_FULL + 1), "?");
	assert_string_equal(runlog_reason_word(RUNLOG_LOST), "sandbox_lost");
	assert_string_equal(
	    runlog_reason_word(RUNLOG_OUTPUT_LIMIT), "output_limit");
}

TEST_MAIN(NULL, NULL)

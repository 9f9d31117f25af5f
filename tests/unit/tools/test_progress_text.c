/* test_progress_text.c - progress shows what is new, of every stream */
#include <stdio.h>

#include "common/clock.h"
#include "common/js.h"
#include "supervisor/tools/progress.h"
#include "tests/unit/core/log_fixture.h"
#include "tests/unit/test.h"

static const struct log_caps caps = {
    {1u << 20, 1u << 20}, LOG_TAIL_BYTES, 0, 0};

struct ground {
	struct made_log log;
	struct log_digest *d;
	uint64_t told[1][2];
	struct buf text;
};

static void
begin(struct ground *g, const struct log_caps *c)
{
	memset(g, 0, sizeof(*g));
	begin_log(&g->log);
	put_started(&g->log, 0);
	g->d = log_digest_new(1, c);
}

static void
end(struct ground *g)
{
	log_digest_free(g->d);
	buf_clear(&g->log.b);
	buf_clear(&g->text);
}

static void
print(struct ground *g, enum runlog_type type, const void *p, size_t n)
{
	const uint8_t *from = p;

	for (size_t at = 0; at < n;) {
		size_t len =
		    n - at < RUNLOG_PAYLOAD_MAX ? n - at : RUNLOG_PAYLOAD_MAX;

		put_record(&g->log, type, from + at, len);
		at += len;
	}
}

/* What is told now. */
static const char *
tell(struct ground *g, uint64_t printed)
{
	static uint8_t chunk[LOG_WORK_BYTES];
	const struct log_work work = {chunk, sizeof(chunk)};
	const struct runlog_source source = {-1, buf_data(&g->log.b)};

	assert_int_equal(
	    log_digest_advance(g->d, &source, buf_len(&g->log.b), &work, NULL),
	    0);
	buf_clear(&g->text);
	assert_int_equal(progress_text_add(&g->text, g->d, g->told), printed);
	assert_true(js_bytes_cost(buf_data(&g->text), buf_len(&g->text)) <=
	    PROGRESS_TEXT_MAX + 256);
	assert_int_equal(buf_append(&g->text, "", 1), 0);
	return (const char *)buf_data(&g->text);
}

TEST(each_thing_is_told_once)
{
	struct ground g;

	begin(&g, &caps);
	print(&g, RUNLOG_STDOUT, "one\n", 4);
	print(&g, RUNLOG_STDERR, "bad\n", 4);
	assert_string_equal(tell(&g, 8), "one\nbad\n");
	assert_string_equal(tell(&g, 8), "");
	print(&g, RUNLOG_STDOUT, "two\0\n", 5);
	assert_string_equal(tell(&g, 13), "two \n");
	end(&g);
}

TEST(a_stream_that_prints_much_leaves_room_for_the_other)
{
	static char much[40000];
	struct ground g;
	const char *text;

	memset(much, 'x', sizeof(much));
	begin(&g, &caps);
	print(&g, RUNLOG_STDOUT, much, sizeof(much));
	print(&g, RUNLOG_STDERR, "bad\n", 4);
	text = tell(&g, sizeof(much) + 4);
	assert_non_null(strstr(text, "xxx"));
	assert_string_equal(text + strlen(text) - 4, "bad\n");
	end(&g);
}

TEST(what_is_left_out_of_one_stream_is_counted)
{
	static char much[40000];
	struct ground g;
	char want[64];

	memset(much, 'x', sizeof(much));
	begin(&g, &caps);
	print(&g, RUNLOG_STDOUT, "first\n", 6);
	assert_string_equal(tell(&g, 6), "first\n");
	print(&g, RUNLOG_STDOUT, much, sizeof(much));
	(void)snprintf(want, sizeof(want), "[... %zu bytes left out ...]\nxxx",
	    sizeof(much) - PROGRESS_TEXT_MAX);
	assert_int_equal(
	    strncmp(tell(&g, 6 + sizeof(much)), want, strlen(want)), 0);
	end(&g);
}

TEST(between_head_and_tail_the_bytes_are_counted)
{
	static const struct log_caps small = {{10, 10}, 5, 0, 0};
	struct ground g;

	begin(&g, &small);
	print(&g, RUNLOG_STDOUT, "0123456789abcdefghij", 20);
	assert_string_equal(
	    tell(&g, 20), "0123456789\n[... 5 bytes left out ...]\nfghij");
	print(&g, RUNLOG_STDOUT, "klmnopqrst", 10);
	assert_string_equal(tell(&g, 30), "[... 5 bytes left out ...]\npqrst");
	end(&g);
}

TEST(what_costs_much_is_cut_between_characters)
{
	static char much[30000];
	struct ground g;
	const char *text;

	for (size_t i = 0; i < sizeof(much); i += 3)
		memcpy(much + i, "\xe2\x82\xac", 3);
	begin(&g, &caps);
	print(&g, RUNLOG_STDOUT, much, sizeof(much));
	text = tell(&g, sizeof(much));
	assert_null(strstr(text, "\xef\xbf\xbd"));
	memset(much, '\x01', sizeof(much));
	print(&g, RUNLOG_STDOUT, much, sizeof(much));
	(void)tell(&g, 2 * sizeof(much));
	end(&g);
}

TEST(a_bar_is_its_last_state_each_time)
{
	struct ground g;

	begin(&g, &caps);
	print(&g, RUNLOG_STDERR, "\r 1%\r 2%", 8);
	assert_string_equal(tell(&g, 8), " 2%");
	print(&g, RUNLOG_STDERR, "\r\x1b[32m 3%\x1b[0", 12);
	assert_string_equal(tell(&g, 20), " 3%");
	print(&g, RUNLOG_STDERR, "m\n", 2);
	assert_string_equal(tell(&g, 22), "\n");
	end(&g);
}

TEST(what_is_left_out_ends_with_a_sequence)
{
	static const struct log_caps small = {{4, 4}, 5, 0, 0};
	struct ground g;

	begin(&g, &small);
	print(&g, RUNLOG_STDOUT, "head and \x1b[1;31mend", 19);
	assert_string_equal(
	    tell(&g, 19), "head\n[... 12 bytes left out ...]\nend");
	end(&g);
}

TEST(head_and_tail_that_meet_are_one_text)
{
	static const struct log_caps small = {{10, 10}, 50, 0, 0};
	struct ground g;

	begin(&g, &small);
	print(&g, RUNLOG_STDOUT, "one 1234\x1b[31mtwo", 16);
	assert_string_equal(tell(&g, 16), "one 1234two");
	end(&g);
}

static void
expect_note(const struct progress_quiet *q, const char *want)
{
	struct buf b;

	buf_init(&b, 0);
	progress_note_add(&b, q);
	assert_int_equal(buf_len(&b), strlen(want));
	assert_memory_equal(buf_data(&b), want, buf_len(&b));
	buf_clear(&b);
}

TEST(a_note_says_how_long_and_what_is_waited_for)
{
	struct store_run row = {
	    .state = RUN_STATE_RUNNING, .started_ms = clock_wall_ms() - 30050};

	expect_note(
	    &(struct progress_quiet){.waited_ms = 45900}, "waiting for 46 s");
	expect_note(&(struct progress_quiet){.row = &row, .silent_ms = 12000},
	    "running for 30 s, nothing printed for 12 s");
	row.state = RUN_STATE_QUEUED;
	row.started_ms = 0;
	row.created_ms = clock_wall_ms() - 15050;
	expect_note(&(struct progress_quiet){.row = &row,
			.waits = SCHED_WAITS_FOR_LOCK},
	    "queued for 15 s, waits for lock");
}

TEST_MAIN(NULL, NULL)

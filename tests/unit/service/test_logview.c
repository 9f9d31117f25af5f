#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "supervisor/service/internal.h"

static void
put(struct buf *b, enum runlog_type type, uint16_t command, const char *text)
{
	const struct runlog_header h = {
	    type, command, (uint32_t)strlen(text), 1};

	runlog_put_header(b, &h);
	assert_int_equal(buf_append(b, text, strlen(text)), 0);
}

static struct log_source
source(const struct buf *b)
{
	return (struct log_source){-1, buf_data(b), buf_len(b)};
}

static void
assert_text(const struct buf *b, const char *want)
{
	assert_int_equal(buf_len(b), strlen(want));
	assert_memory_equal(buf_data(b), want, strlen(want));
}

static void
test_streams_of_each_command_are_kept_apart_up_to_their_caps(void **state)
{
	struct buf log = {0}, merged;
	struct log_head heads[2];
	struct log_source l;

	(void)state;
	put(&log, RUNLOG_STDOUT, 0, "abc");
	put(&log, RUNLOG_STDERR, 0, "E");
	put(&log, RUNLOG_STDOUT, 0, "def");
	put(&log, RUNLOG_STDOUT, 1, "second");
	l = source(&log);
	buf_init(&merged, 100);
	logview_collect(&l, 2, 4, 10, heads, &merged);
	assert_text(&heads[0].out[0], "abcd");
	assert_text(&heads[0].out[1], "E");
	assert_text(&heads[1].out[0], "seco");
	assert_text(&merged, "abcEdseco");
	for (int i = 0; i < 2; i++) {
		buf_clear(&heads[i].out[0]);
		buf_clear(&heads[i].out[1]);
	}
	buf_clear(&merged);
	buf_clear(&log);
}

static void
test_a_cut_record_and_a_foreign_command_are_left_out(void **state)
{
	struct buf log = {0};
	struct log_head heads[1];
	struct log_source l;

	(void)state;
	put(&log, RUNLOG_STDOUT, 7, "foreign");
	put(&log, RUNLOG_STDOUT, 0, "whole");
	put(&log, RUNLOG_STDOUT, 0, "cut off");
	l = source(&log);
	l.length -= 3;
	logview_collect(&l, 1, 100, 100, heads, NULL);
	assert_text(&heads[0].out[0], "whole");
	buf_clear(&heads[0].out[0]);
	buf_clear(&heads[0].out[1]);
	buf_clear(&log);
}

static void
test_garbage_ends_the_reading_and_what_was_before_it_stays(void **state)
{
	struct buf log = {0};
	struct log_head heads[1];
	struct log_source l;

	(void)state;
	put(&log, RUNLOG_STDOUT, 0, "good");
	assert_int_equal(buf_append(&log, "0123456789abcdefgh", 18), 0);
	l = source(&log);
	logview_collect(&l, 1, 100, 100, heads, NULL);
	assert_text(&heads[0].out[0], "good");
	buf_clear(&heads[0].out[0]);
	buf_clear(&heads[0].out[1]);
	buf_clear(&log);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(
		test_streams_of_each_command_are_kept_apart_up_to_their_caps),
	    cmocka_unit_test(
		test_a_cut_record_and_a_foreign_command_are_left_out),
	    cmocka_unit_test(
		test_garbage_ends_the_reading_and_what_was_before_it_stays),
	};

	return cmocka_run_group_tests_name("logview", tests, NULL, NULL);
}

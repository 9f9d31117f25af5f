#include "common/buf.h"
#include "tests/unit/common/forked.h"
#include "tests/unit/test.h"

TEST(bytes_come_out_as_they_went_in)
{
	struct buf b;

	buf_init(&b, 0);
	for (uint32_t i = 0; i < 10000; i++)
		assert_int_equal(buf_append(&b, &i, sizeof(i)), 0);
	for (uint32_t i = 0; i < 10000; i++) {
		uint32_t got;

		memcpy(&got, buf_data(&b), sizeof(got));
		assert_int_equal(got, i);
		buf_consume(&b, sizeof(got));
	}
	assert_int_equal(buf_len(&b), 0);
	buf_clear(&b);
}

TEST(a_queue_of_steady_length_takes_steady_memory)
{
	uint8_t in = 0, out = 0;
	struct buf b;

	buf_init(&b, 0);
	for (int i = 0; i < 100; i++, in++)
		assert_int_equal(buf_append(&b, &in, 1), 0);
	for (int i = 0; i < 1000000; i++, in++, out++) {
		assert_int_equal(buf_append(&b, &in, 1), 0);
		assert_int_equal(*buf_data(&b), out);
		buf_consume(&b, 1);
	}
	assert_true(b.cap <= 1024);
	buf_clear(&b);
}

TEST(the_limit_is_exact_and_a_refusal_changes_nothing)
{
	char text[16] = "0123456789abcde";
	struct buf b;

	buf_init(&b, 10);
	assert_int_equal(buf_room(&b), 10);
	assert_int_equal(buf_append(&b, text, 11), -1);
	assert_int_equal(buf_append(&b, text, 9), 0);
	assert_int_equal(buf_append(&b, text, 2), -1);
	assert_null(buf_reserve(&b, 2));
	assert_int_equal(buf_len(&b), 9);
	assert_int_equal(buf_append(&b, text, 1), 0);
	assert_int_equal(buf_room(&b), 0);
	assert_memory_equal(buf_data(&b), "0123456780", 10);
	/* What counts is the unread part. */
	buf_consume(&b, 4);
	assert_int_equal(buf_append(&b, "wxyz", 4), 0);
	assert_memory_equal(buf_data(&b), "456780wxyz", 10);
	buf_clear(&b);
}

TEST(formatted_text_fills_up_to_the_limit)
{
	struct buf b;

	buf_init(&b, 8);
	assert_int_equal(buf_printf(&b, "%s", "123456789"), -1);
	assert_int_equal(buf_len(&b), 0);
	assert_int_equal(buf_printf(&b, "%d", 1234), 0);
	assert_int_equal(buf_printf(&b, "%d", 5678), 0);
	assert_int_equal(buf_printf(&b, "%s", ""), 0);
	assert_int_equal(buf_printf(&b, "%d", 9), -1);
	assert_int_equal(buf_len(&b), 8);
	assert_memory_equal(buf_data(&b), "12345678", 8);
	buf_clear(&b);
}

TEST(formatted_text_longer_than_the_memory_is_whole)
{
	char text[5000];
	struct buf b;

	memset(text, 'y', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	buf_init(&b, 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(buf_printf(&b, "%s%d", text, i), 0);
	assert_int_equal(buf_len(&b), 50000);
	assert_int_equal(buf_data(&b)[49999], '9');
	buf_clear(&b);
}

TEST(reserved_space_counts_only_when_committed)
{
	struct buf b;
	uint8_t *p;

	buf_init(&b, 1000);
	p = buf_reserve(&b, 1000);
	assert_non_null(p);
	memset(p, 'z', 1000);
	assert_int_equal(buf_len(&b), 0);
	buf_commit(&b, 3);
	assert_int_equal(buf_len(&b), 3);
	assert_non_null(buf_reserve(&b, 0));
	buf_clear(&b);
}

TEST(a_cleared_buffer_keeps_its_limit)
{
	struct buf b;

	buf_init(&b, 4);
	assert_int_equal(buf_append(&b, "abcd", 4), 0);
	buf_shrink(&b); /* not empty: nothing happens */
	assert_int_equal(buf_len(&b), 4);
	buf_consume(&b, 4);
	buf_shrink(&b);
	assert_null(b.mem);
	assert_int_equal(buf_append(&b, "abcde", 5), -1);
	assert_int_equal(buf_append(&b, "ab", 2), 0);
	buf_clear(&b);
	assert_int_equal(buf_len(&b), 0);
	assert_int_equal(buf_room(&b), 4);
	assert_int_equal(buf_append(&b, NULL, 0), 0);
}

static void
consume_too_much(void)
{
	struct buf b;

	buf_init(&b, 0);
	if (buf_append(&b, "ab", 2) == 0)
		buf_consume(&b, 3);
}

static void
commit_too_much(void)
{
	struct buf b;

	buf_init(&b, 0);
	if (buf_reserve(&b, 10) != NULL)
		buf_commit(&b, 100000);
}

TEST(a_wrong_count_is_our_bug_and_ends_the_process)
{
	struct forked f;

	forked_run(&f, consume_too_much);
	assert_int_equal(f.status, 70);
	forked_run(&f, commit_too_much);
	assert_int_equal(f.status, 70);
}

TEST(what_was_appended_last_can_be_taken_back)
{
	struct buf b;

	buf_init(&b, 0);
	assert_int_equal(buf_append(&b, "abcdef", 6), 0);
	buf_consume(&b, 2);
	buf_truncate(&b, 3);
	assert_int_equal(buf_len(&b), 3);
	assert_memory_equal(buf_data(&b), "cde", 3);
	buf_truncate(&b, 0);
	assert_int_equal(buf_len(&b), 0);
	buf_clear(&b);
}

TEST(a_limit_can_be_raised)
{
	struct buf b;

	buf_init(&b, 2);
	assert_int_equal(buf_append(&b, "ab", 2), 0);
	assert_int_equal(buf_append(&b, "c", 1), -1);
	buf_set_max(&b, 3);
	assert_int_equal(buf_append(&b, "c", 1), 0);
	assert_int_equal(buf_room(&b), 0);
	buf_clear(&b);
}

TEST_MAIN(NULL, NULL)

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "supervisor/store/checkpoint.h"

static uint64_t
wait_ms(const struct checkpoint *c, uint64_t wal_bytes, uint64_t now_ms)
{
	enum checkpoint_kind kind;

	return checkpoint_wait_ms(c, wal_bytes, now_ms, &kind);
}

static enum checkpoint_kind
kind_at(const struct checkpoint *c, uint64_t wal_bytes, uint64_t now_ms)
{
	enum checkpoint_kind kind;

	assert_int_equal(checkpoint_wait_ms(c, wal_bytes, now_ms, &kind), 0);
	return kind;
}

static void
test_what_a_crash_left_is_truncated_after_the_idle_time(void **state)
{
	struct checkpoint c;

	(void)state;
	checkpoint_init(&c, 5000);
	assert_int_equal(wait_ms(&c, 0, 5000), CHECKPOINT_IDLE_MS);
	assert_int_equal(
	    kind_at(&c, 0, 5000 + CHECKPOINT_IDLE_MS), CHECKPOINT_TRUNCATE);
}

static void
test_nothing_written_means_nothing_to_do(void **state)
{
	struct checkpoint c;

	(void)state;
	checkpoint_init(&c, 0);
	checkpoint_on_done(&c, CHECKPOINT_TRUNCATE);
	assert_true(wait_ms(&c, 0, 100000) == CHECKPOINT_NEVER);
}

static void
test_a_large_wal_is_reused_at_once_and_truncated_when_idle(void **state)
{
	struct checkpoint c;

	(void)state;
	checkpoint_init(&c, 5000);
	assert_true(wait_ms(&c, CHECKPOINT_WAL_BYTES - 1, 5000) > 0);
	assert_int_equal(
	    kind_at(&c, CHECKPOINT_WAL_BYTES, 5000), CHECKPOINT_REUSE);
	checkpoint_on_done(&c, CHECKPOINT_REUSE);
	assert_int_equal(wait_ms(&c, 0, 5000), CHECKPOINT_IDLE_MS);
	assert_int_equal(
	    kind_at(&c, 0, 5000 + CHECKPOINT_IDLE_MS), CHECKPOINT_TRUNCATE);
}

static void
test_writes_put_the_truncation_off_but_not_for_ever(void **state)
{
	struct checkpoint c;
	uint64_t now = 1000;

	(void)state;
	checkpoint_init(&c, now);
	while (wait_ms(&c, 0, now) > 0) {
		now += CHECKPOINT_IDLE_MS / 2;
		checkpoint_on_write(&c, now);
		checkpoint_on_done(&c, CHECKPOINT_REUSE);
		assert_true(now <= 1000 + CHECKPOINT_AGE_MS);
	}
	assert_true(now >= 1000 + CHECKPOINT_AGE_MS);
	assert_int_equal(kind_at(&c, 0, now), CHECKPOINT_TRUNCATE);
}

static void
test_a_failure_is_tried_again_later_however_large_the_wal(void **state)
{
	struct checkpoint c;

	(void)state;
	checkpoint_init(&c, 0);
	checkpoint_on_failure(&c, 9000);
	assert_int_equal(
	    wait_ms(&c, CHECKPOINT_WAL_BYTES, 9000), CHECKPOINT_RETRY_MS);
	assert_int_equal(
	    wait_ms(&c, CHECKPOINT_WAL_BYTES, 9000 + CHECKPOINT_RETRY_MS), 0);
}

static void
test_room_is_made_when_little_is_left_and_as_much_as_was_used(void **state)
{
	const uint64_t more = CHECKPOINT_ROOM_MORE, least = CHECKPOINT_ROOM_MIN;
	const uint64_t most = CHECKPOINT_WAL_BYTES;

	(void)state;
	assert_int_equal(checkpoint_room(0, 0), more);
	assert_int_equal(checkpoint_room(0, more), 0);
	assert_int_equal(checkpoint_room(more - least, more), 0);
	assert_int_equal(
	    checkpoint_room(more - least + 1, more), 3 * more - 2 * least + 2);
	assert_int_equal(checkpoint_room(4 << 20, 4 << 20),
	    (4 << 20) + CHECKPOINT_ROOM_STEP);
	assert_int_equal(checkpoint_room(most, most), most + more);
	assert_int_equal(checkpoint_room(2 * most, 2 * most), most + more);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(
		test_what_a_crash_left_is_truncated_after_the_idle_time),
	    cmocka_unit_test(test_nothing_written_means_nothing_to_do),
	    cmocka_unit_test(
		test_a_large_wal_is_reused_at_once_and_truncated_when_idle),
	    cmocka_unit_test(
		test_writes_put_the_truncation_off_but_not_for_ever),
	    cmocka_unit_test(
		test_a_failure_is_tried_again_later_however_large_the_wal),
	    cmocka_unit_test(
		test_room_is_made_when_little_is_left_and_as_much_as_was_used),
	};

	return cmocka_run_group_tests_name("checkpoint", tests, NULL, NULL);
}

#include "supervisor/store/checkpoint.h"
#include "tests/unit/test.h"

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

TEST(what_a_crash_left_is_copied_soon_and_truncated_after_a_minute)
{
	struct checkpoint c;

	checkpoint_init(&c, 5000);
	assert_int_equal(wait_ms(&c, 0, 5000), CHECKPOINT_IDLE_MS);
	assert_int_equal(
	    kind_at(&c, 0, 5000 + CHECKPOINT_IDLE_MS), CHECKPOINT_REUSE);
	checkpoint_on_done(&c, CHECKPOINT_REUSE);
	assert_int_equal(wait_ms(&c, 0, 5000), CHECKPOINT_TRUNCATE_MS);
	assert_int_equal(
	    kind_at(&c, 0, 5000 + CHECKPOINT_TRUNCATE_MS), CHECKPOINT_TRUNCATE);
}

TEST(nothing_written_means_nothing_to_do)
{
	struct checkpoint c;

	checkpoint_init(&c, 0);
	checkpoint_on_done(&c, CHECKPOINT_TRUNCATE);
	assert_true(wait_ms(&c, 0, 100000) == CHECKPOINT_NEVER);
}

TEST(a_large_wal_is_reused_at_once)
{
	struct checkpoint c;

	checkpoint_init(&c, 5000);
	assert_true(wait_ms(&c, CHECKPOINT_WAL_BYTES - 1, 5000) > 0);
	assert_int_equal(
	    kind_at(&c, CHECKPOINT_WAL_BYTES, 5000), CHECKPOINT_REUSE);
}

TEST(a_minute_after_the_first_frame_it_is_truncated_beside_writes)
{
	struct checkpoint c;
	uint64_t now = 1000;

	checkpoint_init(&c, now);
	checkpoint_on_done(&c, CHECKPOINT_TRUNCATE);
	checkpoint_on_write(&c, now);
	while (wait_ms(&c, 0, now) > 0) {
		now += CHECKPOINT_IDLE_MS / 2;
		checkpoint_on_write(&c, now);
		checkpoint_on_done(&c, CHECKPOINT_REUSE);
		assert_true(now <= 1000 + CHECKPOINT_TRUNCATE_MS);
	}
	assert_int_equal(now, 1000 + CHECKPOINT_TRUNCATE_MS);
	assert_int_equal(
	    kind_at(&c, CHECKPOINT_WAL_BYTES, now), CHECKPOINT_TRUNCATE);
}

TEST(a_failure_is_tried_again_later_however_large_the_wal)
{
	struct checkpoint c;

	checkpoint_init(&c, 0);
	checkpoint_on_failure(&c, 9000);
	assert_int_equal(
	    wait_ms(&c, CHECKPOINT_WAL_BYTES, 9000), CHECKPOINT_RETRY_MS);
	assert_int_equal(
	    wait_ms(&c, CHECKPOINT_WAL_BYTES, 9000 + CHECKPOINT_RETRY_MS), 0);
}

TEST(on_a_short_disk_it_is_truncated_at_once)
{
	struct checkpoint c;

	checkpoint_init(&c, 5000);
	checkpoint_hurry(&c);
	assert_int_equal(kind_at(&c, 0, 5000), CHECKPOINT_TRUNCATE);
	checkpoint_on_done(&c, CHECKPOINT_TRUNCATE);
	checkpoint_on_write(&c, 6000);
	assert_int_equal(wait_ms(&c, 0, 6000), CHECKPOINT_IDLE_MS);
}

TEST(on_a_short_disk_what_was_copied_already_is_truncated_too)
{
	struct checkpoint c;

	checkpoint_init(&c, 5000);
	checkpoint_on_done(&c, CHECKPOINT_REUSE);
	checkpoint_hurry(&c);
	assert_int_equal(kind_at(&c, 0, 5000), CHECKPOINT_TRUNCATE);
}

TEST(a_reader_in_the_way_has_its_turn_and_then_it_is_truncated)
{
	struct checkpoint c;

	checkpoint_init(&c, 5000);
	checkpoint_hurry(&c);
	checkpoint_on_failure(&c, 5000);
	assert_int_equal(wait_ms(&c, 0, 5000), CHECKPOINT_RETRY_MS);
	assert_int_equal(
	    kind_at(&c, 0, 5000 + CHECKPOINT_RETRY_MS), CHECKPOINT_TRUNCATE);
}

TEST(without_frames_a_short_disk_has_nothing_to_hurry)
{
	struct checkpoint c;

	checkpoint_init(&c, 0);
	checkpoint_on_done(&c, CHECKPOINT_TRUNCATE);
	checkpoint_hurry(&c);
	assert_true(wait_ms(&c, 0, 100000) == CHECKPOINT_NEVER);
	checkpoint_on_write(&c, 100000);
	assert_int_equal(wait_ms(&c, 0, 100000), CHECKPOINT_IDLE_MS);
}

TEST_MAIN(NULL, NULL)

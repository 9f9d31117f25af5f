#include "supervisor/core/webhooks.h"
#include "tests/unit/test.h"

TEST(waits_double_up_to_an_hour)
{
	uint64_t before = 0, most;

	for (uint32_t n = 1; n < 64; n++) {
		most = webhook_delay_ms(n, UINT32_MAX);
		assert_true(most >= before && most <= WEBHOOK_MAX_MS);
		assert_true(
		    n == 1 || most == WEBHOOK_MAX_MS || most == 2 * before);
		assert_int_equal(webhook_delay_ms(n, 0), most / 2);
		before = most;
	}
	assert_int_equal(webhook_delay_ms(1, UINT32_MAX), WEBHOOK_FIRST_MS);
	assert_int_equal(before, WEBHOOK_MAX_MS);
	assert_int_equal(
	    webhook_delay_ms(UINT32_MAX, UINT32_MAX), WEBHOOK_MAX_MS);
}

TEST(a_clock_that_is_set_makes_no_wait_longer)
{
	struct store_webhook row = {.attempts = 3, .next_ms = 1000000};

	assert_int_equal(webhook_rest_ms(&row, 999000), 1000);
	assert_int_equal(webhook_rest_ms(&row, 1000001), 0);
	/* Set back by years: not longer than it was to be. */
	assert_int_equal(
	    webhook_rest_ms(&row, 0), webhook_delay_ms(3, UINT32_MAX));
	row.attempts = 0;
	assert_int_equal(webhook_rest_ms(&row, 0), 0);
}

TEST(only_what_is_old_and_was_tried_for_long_is_past)
{
	struct webhook w = {.row = {.waited_ms = 5000}};

	assert_true(webhook_is_past(&w, 1000, 5000, 6000));
	assert_false(webhook_is_past(&w, 1001, 5000, 6000));
	/* A clock that is set ahead, alone, loses nothing. */
	w.row.waited_ms = 4999;
	assert_false(webhook_is_past(&w, 1000, 5000, INT64_MAX / 2));
	/* Nor one that is set back. */
	w.row.waited_ms = 5000;
	assert_false(webhook_is_past(&w, 7000, 5000, 6000));
}

TEST(kinds_are_of_tenants)
{
	static const char *const bad[] = {"", "run.ended,", "run", "RUN.ENDED",
	    "run.ended run.started", "server.started", "disk.full",
	    "run.ended,worker.lost"};
	uint64_t kinds;
	struct err e;

	assert_int_equal(webhook_parse_kinds("run.ended", &kinds, &e), 0);
	assert_int_equal(kinds, UINT64_C(1) << EVENT_RUN_ENDED);
	assert_int_equal(
	    webhook_parse_kinds(WEBHOOK_KINDS_DEFAULT, &kinds, &e), 0);
	assert_int_equal(kinds,
	    UINT64_C(1) << EVENT_RUN_ENDED |
		UINT64_C(1) << EVENT_SANDBOX_REMOVED |
		UINT64_C(1) << EVENT_SANDBOX_LOST);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(
		    webhook_parse_kinds(bad[i], &kinds, &e), ERR_INVAL);
}

TEST_MAIN(NULL, NULL)

#include "common/metric.h"
#include "common/msg/wire.h"
#include "tests/unit/test.h"

#define CELL METRIC_WORKERS_FIRST

static struct buf b;

static int
setup(void **state)
{
	(void)state;
	buf_init(&b, 60000);
	metric_news_write(&b); /* of the test before */
	buf_truncate(&b, 0);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	buf_clear(&b);
	return 0;
}

TEST(what_was_added_is_told_once)
{
	uint64_t before = metric_get(CELL);
	struct err e;

	metric_add(CELL, 5);
	metric_add(METRIC_WORKERS_END - 1, 1);
	metric_add(METRIC_STORE_COMMITS_TOTAL, 1); /* no worker's */
	metric_news_write(&b);
	assert_int_equal(buf_len(&b), 2 * METRIC_NEWS_ENTRY_BYTES);
	assert_int_equal(metric_news_take(buf_data(&b), buf_len(&b), &e), 0);
	assert_int_equal(metric_get(CELL), before + 10);
}

TEST(nothing_new_is_no_entry)
{
	metric_news_write(&b);
	assert_int_equal(buf_len(&b), 0);
}

static void
expect_refused(uint32_t cell, uint64_t more, size_t cut)
{
	uint64_t before = metric_get(CELL);
	struct err e;

	wire_put_u32(&b, CELL);
	wire_put_u64(&b, 1);
	wire_put_u32(&b, cell);
	wire_put_u64(&b, more);
	assert_int_equal(
	    metric_news_take(buf_data(&b), buf_len(&b) - cut, &e), ERR_PROTO);
	assert_int_equal(metric_get(CELL), before);
	buf_truncate(&b, 0);
}

TEST(bad_additions_change_nothing)
{
	expect_refused(METRIC_WORKERS_FIRST - 1, 1, 0);
	expect_refused(METRIC_WORKERS_END, 1, 0);
	expect_refused(UINT32_MAX, 1, 0);
	expect_refused(CELL, METRIC_NEWS_MAX + 1, 0);
	expect_refused(CELL, UINT64_MAX, 0);
	expect_refused(CELL, 1, 1);
}

TEST_MAIN(setup, teardown)

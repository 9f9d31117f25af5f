#include "common/clock.h"
#include "supervisor/store/history_feed.h"
#include "tests/unit/test.h"

/* How far the index is behind what was committed. */

static struct feed *f;

static int
setup(void **state)
{
	(void)state;
	f = feed_new();
	feed_go(f, 1);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	feed_free(f);
	return 0;
}

static void
commit(int64_t first, size_t n)
{
	for (size_t i = 0; i < n; i++)
		feed_touched(f, first + (int64_t)i);
	feed_committed(f);
}

/* Its runs are gone. */
static struct feed_news
take_news(void)
{
	struct feed_news news;

	feed_take(f, &news);
	free(news.runs);
	news.runs = NULL;
	return news;
}

static uint64_t
take(void)
{
	return take_news().mark;
}

static struct feed_lag
lag(void)
{
	struct feed_lag l;

	feed_lag(f, &l);
	return l;
}

static void
pass_a_moment(void)
{
	const uint64_t now = clock_mono_ms();

	while (clock_mono_ms() <= now + 1)
		;
}

TEST(rows_wait_from_their_commit_to_their_place_in_the_index)
{
	uint64_t mark;

	assert_int_equal(lag().rows, 0);
	feed_touched(f, 7);
	assert_int_equal(lag().rows, 0);
	feed_committed(f);
	commit(8, 2);
	pass_a_moment();
	assert_int_equal(lag().rows, 3);
	assert_true(lag().oldest_ms > 0);
	mark = take();
	assert_int_equal(lag().rows, 3);
	assert_true(lag().oldest_ms > 0);
	feed_applied(f, mark);
	assert_int_equal(lag().rows, 0);
	assert_int_equal(lag().oldest_ms, 0);
}

TEST(what_is_undone_waits_for_nothing)
{
	feed_touched(f, 7);
	feed_undone(f);
	feed_committed(f);
	assert_int_equal(lag().rows, 0);
}

TEST(the_oldest_is_of_those_that_are_not_in_the_index)
{
	uint64_t mark, before;

	commit(1, 1);
	pass_a_moment();
	mark = take();
	commit(2, 5);
	assert_int_equal(lag().rows, 6);
	pass_a_moment();
	before = lag().oldest_ms;
	feed_applied(f, mark);
	assert_int_equal(lag().rows, 5);
	assert_true(lag().oldest_ms < before);
	/* Not applied: the index failed, and takes what came since, too. */
	(void)take();
	pass_a_moment();
	commit(20, 1);
	(void)take();
	assert_int_equal(lag().rows, 6);
	assert_true(lag().oldest_ms > 0);
}

TEST(dropped_rows_are_counted)
{
	commit(1, FEED_MAX);
	commit(1, 10);
	assert_int_equal(lag().rows, FEED_MAX + 10);
	(void)take();
	commit(1, FEED_MAX + 10);
	assert_int_equal(lag().rows, 2 * (FEED_MAX + 10));
	feed_applied(f, take());
	assert_int_equal(lag().rows, 0);
}

TEST(why_it_is_held_is_said_in_full_to_administrators_alone)
{
	uint64_t opened;
	struct err e;

	feed_hold(f, "see the log", "/data/history.db is a directory");
	assert_true(lag().is_held);
	assert_string_equal(lag().why, "/data/history.db is a directory");
	assert_int_equal(feed_reach(f, 1, 0, &opened, &e), ERR_BACKEND);
	assert_null(strstr(e.msg, "/data"));
	feed_go(f, 1);
	assert_false(lag().is_held);
	assert_string_equal(lag().why, "");
}

TEST_MAIN(setup, teardown)

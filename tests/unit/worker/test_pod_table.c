#include <event2/event.h>

#include "worker/kubernetes/pod_table.h"
#include "tests/unit/test.h"

static struct event_base *base;
static struct pod_table table;
static struct pod_wait wait;
static int told;

static int
setup(void **unused)
{
	(void)unused;
	base = event_base_new();
	pod_table_init(&table, base);
	told = 0;
	return 0;
}

static int
teardown(void **unused)
{
	(void)unused;
	pod_wait_end(&wait);
	pod_table_clear(&table);
	event_base_free(base);
	return 0;
}

static struct pod_state
pod(const char *uid, enum pod_phase phase)
{
	struct pod_state s = {.name = "box", .phase = phase};

	memcpy(s.uid, uid, strlen(uid) + 1);
	return s;
}

static enum pod_news
see(const char *uid, enum pod_phase phase)
{
	struct pod_state s = pod(uid, phase);

	return pod_table_see(&table, &s);
}

static void
make(const char *uid)
{
	struct pod_state s = pod(uid, POD_PENDING);

	pod_table_made(&table, &s);
}

TEST(a_start_is_no_news_and_an_end_is)
{
	assert_int_equal(see("1", POD_PENDING), POD_NEWS_NONE);
	assert_int_equal(see("1", POD_RUNNING), POD_NEWS_NONE);
	assert_int_equal(see("1", POD_ENDED), POD_NEWS_OVER);
	assert_int_equal(see("1", POD_ENDED), POD_NEWS_NONE);
	assert_int_equal(see("1", POD_REMOVING), POD_NEWS_OVER);
}

TEST(an_end_that_is_seen_first_is_news)
{
	assert_int_equal(see("1", POD_ENDED), POD_NEWS_OVER);
}

TEST(a_container_that_was_started_anew_is_news)
{
	struct pod_state s = pod("1", POD_RUNNING);

	(void)pod_table_see(&table, &s);
	s.restarts = 1;
	assert_int_equal(pod_table_see(&table, &s), POD_NEWS_OVER);
}

TEST(a_kill_for_memory_is_told_as_one)
{
	struct pod_state s = pod("1", POD_ENDED);

	(void)see("1", POD_RUNNING);
	s.oom_killed = true;
	assert_int_equal(pod_table_see(&table, &s), POD_NEWS_KILLED);
}

TEST(what_comes_late_of_an_older_pod_is_left_aside)
{
	(void)see("1", POD_REMOVING);
	make("2");
	assert_int_equal(see("1", POD_REMOVING), POD_NEWS_NONE);
	assert_false(pod_table_gone(&table, "box", "1"));
	assert_string_equal(pod_table_find(&table, "box")->uid, "2");
	assert_int_equal(see("2", POD_RUNNING), POD_NEWS_NONE);
	assert_true(pod_table_gone(&table, "box", "2"));
	assert_null(pod_table_find(&table, "box"));
}

TEST(a_pod_of_the_same_name_made_by_another_is_news)
{
	make("1");
	(void)see("1", POD_RUNNING);
	assert_int_equal(see("2", POD_PENDING), POD_NEWS_OVER);
	assert_string_equal(pod_table_find(&table, "box")->uid, "2");
}

/* The watch may be quicker than the answer. */
TEST(an_answer_that_comes_late_changes_nothing)
{
	(void)see("1", POD_RUNNING);
	make("1");
	assert_int_equal(pod_table_find(&table, "box")->phase, POD_RUNNING);
}

static void
on_news(void *arg)
{
	(void)arg;
	told++;
}

static void
turn(void)
{
	(void)event_base_loop(base, EVLOOP_NONBLOCK);
}

TEST(who_waits_is_told_of_each_change_after_it)
{
	pod_wait_begin(&wait, &table, "box", on_news, NULL);
	turn();
	assert_int_equal(told, 0);
	make("1");
	assert_int_equal(told, 0);
	turn();
	assert_int_equal(told, 1);
	(void)see("1", POD_RUNNING);
	turn();
	assert_true(pod_table_gone(&table, "box", "1"));
	turn();
	assert_int_equal(told, 3);
}

TEST(who_does_not_wait_any_more_is_not_told)
{
	pod_wait_begin(&wait, &table, "box", on_news, NULL);
	make("1");
	pod_wait_end(&wait);
	pod_wait_end(&wait);
	turn();
	assert_int_equal(told, 0);
}

static void
end_both(void *arg)
{
	pod_wait_end(arg);
	pod_wait_end(&wait);
	told++;
}

TEST(one_that_is_told_may_end_the_waiting_of_others)
{
	struct pod_wait first;

	pod_wait_begin(&first, &table, "box", end_both, &first);
	pod_wait_begin(&wait, &table, "box", on_news, NULL);
	make("1");
	turn();
	assert_int_equal(told, 1);
}

TEST_MAIN(setup, teardown)

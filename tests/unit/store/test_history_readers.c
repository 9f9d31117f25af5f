#include "tests/unit/store/history_fixture.h"

#include <pthread.h>
#include <stdatomic.h>

#include "supervisor/store/history_readers.h"

/* A checkpoint comes between two readers, and the WAL has a bound. */

/* ---- the gap */

static struct history_readers *r;

static int
setup(void **state)
{
	(void)state;
	r = readers_new();
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	readers_free(r);
	return 0;
}

struct reading {
	enum history_lane lane;
	pthread_t thread;
	atomic_bool has_begun, is_stopped;
};

static void *
read_main(void *arg)
{
	struct reading *one = arg;

	readers_begin(r, one->lane, &one->is_stopped);
	atomic_store(&one->has_begun, true);
	readers_end(r, one->lane);
	return NULL;
}

static void
start_reading(struct reading *one, enum history_lane lane)
{
	one->lane = lane;
	atomic_store(&one->has_begun, false);
	atomic_store(&one->is_stopped, false);
	assert_int_equal(pthread_create(&one->thread, NULL, read_main, one), 0);
}

static void
test_nobody_begins_in_a_gap(void **state)
{
	struct reading quick, slow;

	(void)state;
	assert_true(readers_seek_gap(r));
	start_reading(&quick, LANE_QUICK);
	start_reading(&slow, LANE_SLOW);
	(void)usleep(20000);
	assert_false(atomic_load(&quick.has_begun));
	assert_false(atomic_load(&slow.has_begun));
	readers_close_gap(r);
	(void)pthread_join(quick.thread, NULL);
	(void)pthread_join(slow.thread, NULL);
}

static void
test_a_long_read_ends_and_no_other_begins_before_the_gap(void **state)
{
	struct reading quick, slow;
	atomic_bool is_stopped = false;

	(void)state;
	readers_begin(r, LANE_SLOW, &is_stopped);
	assert_false(readers_seek_gap(r));
	/* Meanwhile lists go on. */
	start_reading(&quick, LANE_QUICK);
	(void)pthread_join(quick.thread, NULL);
	readers_end(r, LANE_SLOW);
	start_reading(&slow, LANE_SLOW);
	(void)usleep(20000);
	assert_false(atomic_load(&slow.has_begun));
	assert_true(readers_seek_gap(r));
	readers_close_gap(r);
	(void)pthread_join(slow.thread, NULL);
}

static void
test_a_wish_for_a_gap_that_never_comes_ends(void **state)
{
	struct reading slow;
	atomic_bool is_stopped = false;

	(void)state;
	readers_begin(r, LANE_SLOW, &is_stopped);
	assert_false(readers_seek_gap(r));
	readers_end(r, LANE_SLOW);
	start_reading(&slow, LANE_SLOW);
	(void)pthread_join(slow.thread, NULL);
	assert_true(atomic_load(&slow.has_begun));
}

static void *
seek_main(void *arg)
{
	*(bool *)arg = readers_seek_gap(r);
	return NULL;
}

static void
test_a_list_that_reads_is_waited_for(void **state)
{
	atomic_bool is_stopped = false;
	bool is_gap = false;
	pthread_t thread;

	(void)state;
	readers_begin(r, LANE_QUICK, &is_stopped);
	assert_int_equal(pthread_create(&thread, NULL, seek_main, &is_gap), 0);
	(void)usleep(20000);
	readers_end(r, LANE_QUICK);
	(void)pthread_join(thread, NULL);
	assert_true(is_gap);
	readers_close_gap(r);
}

static void
test_what_the_slow_lane_reads_can_be_stopped(void **state)
{
	atomic_bool quick = false, slow = false;

	(void)state;
	readers_begin(r, LANE_QUICK, &quick);
	readers_begin(r, LANE_SLOW, &slow);
	readers_interrupt(r);
	assert_true(atomic_load(&slow));
	assert_false(atomic_load(&quick));
	readers_end(r, LANE_SLOW);
	readers_end(r, LANE_QUICK);
	readers_interrupt(r);
}

/* ---- the WAL */

#define HARD_RUNS 100
#define MORE_RUNS 1000
#define BOUND (READERS_WAL_MAX + 2 * (off_t)READERS_WAL_BYTES)

struct asker {
	struct fixture *f;
	bool is_over;
};

static void ask_again(struct asker *a);

static void
answered_cb(
    int rc, const struct history_page *p, const struct err *why, void *arg)
{
	struct asker *a = arg;

	(void)rc;
	(void)p;
	(void)why;
	if (!a->is_over)
		ask_again(a);
}

/* One that the slow lane is at for a while. */
static void
ask_again(struct asker *a)
{
	char q[HISTORY_Q_MAX] = "\"b";
	const struct history_query hard = {.filter = {.q = q}, .limit = 10};

	for (int i = 0; i < 200; i++)
		(void)strcat(q, " b");
	(void)strcat(q, "\"");
	(void)history_export(a->f->store,
	    (struct tenant_id){STORE_TENANT_DEFAULT}, &hard, answered_cb, a);
}

static off_t
wal_size(const struct fixture *f)
{
	AUTO(auto_free) char *path = xasprintf("%s/history.db-wal", f->dir);
	struct stat st;

	return stat(path, &st) == 0 ? st.st_size : 0;
}

static char *
new_text(const char *words)
{
	char *text = xcalloc(1, 60001);

	while (strlen(text) + strlen(words) <= 60000)
		(void)strcat(text, words);
	return text;
}

static void
test_the_wal_has_a_bound_beside_readers_that_never_rest(void **state)
{
	struct fixture *f = *state;
	struct asker askers[2] = {{.f = f}, {.f = f}};
	AUTO(auto_free) char *hard = new_text("a b ");
	AUTO(auto_free) char *more = new_text("c d ");
	off_t largest = 0;

	fixture_put_sandbox(f, 1, "a");
	for (uint64_t i = 1; i <= HARD_RUNS; i++)
		(void)add_run_saying(f, i, STORE_TENANT_DEFAULT, hard, "x");
	assert_int_equal(count_q(f, "a"), HARD_RUNS);
	ask_again(&askers[0]);
	ask_again(&askers[1]);
	for (uint64_t i = 1; i <= MORE_RUNS; i++) {
		(void)add_run_saying(
		    f, HARD_RUNS + i, STORE_TENANT_DEFAULT, more, "x");
		if (wal_size(f) > largest)
			largest = wal_size(f);
	}
	askers[0].is_over = true;
	askers[1].is_over = true;
	if (largest > BOUND)
		fail_msg("the WAL grew to %lld MiB", (long long)largest >> 20);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(
		test_nobody_begins_in_a_gap, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		test_a_long_read_ends_and_no_other_begins_before_the_gap, setup,
		teardown),
	    cmocka_unit_test_setup_teardown(
		test_a_wish_for_a_gap_that_never_comes_ends, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		test_what_the_slow_lane_reads_can_be_stopped, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		test_a_list_that_reads_is_waited_for, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		test_the_wal_has_a_bound_beside_readers_that_never_rest,
		fixture_setup, fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

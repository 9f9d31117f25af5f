#include "tests/unit/store/fixture.h"

#include <pthread.h>
#include <stdatomic.h>

#include "supervisor/store/db.h"
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

TEST(nobody_begins_in_a_gap)
{
	struct reading quick, slow;

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

TEST(a_long_read_ends_and_no_other_begins_before_the_gap)
{
	struct reading quick, slow;
	atomic_bool is_stopped = false;

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

TEST(a_wish_for_a_gap_that_never_comes_ends)
{
	struct reading slow;
	atomic_bool is_stopped = false;

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

TEST(a_list_that_reads_is_waited_for)
{
	atomic_bool is_stopped = false;
	bool is_gap = false;
	pthread_t thread;

	readers_begin(r, LANE_QUICK, &is_stopped);
	assert_int_equal(pthread_create(&thread, NULL, seek_main, &is_gap), 0);
	(void)usleep(20000);
	readers_end(r, LANE_QUICK);
	(void)pthread_join(thread, NULL);
	assert_true(is_gap);
	readers_close_gap(r);
}

TEST(what_the_slow_lane_reads_can_be_stopped)
{
	atomic_bool quick = false, slow = false;

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

#define COMMITS 1600 /* of 64 KiB each */

#define COMMITS_OF_READ 20

/* A lane that has work all the time: one read after the other, each of which
 * has some commits go by. */
struct busy_lane {
	enum history_lane lane;
	const char *path;
	atomic_uint *commits;
	atomic_bool *is_over;
	bool is_endless; /* until it is stopped */
	pthread_t thread;
	unsigned int reads;
};

static void
read_once(struct busy_lane *b, sqlite3 *h)
{
	const unsigned int before = atomic_load(b->commits);
	atomic_bool is_stopped = false;

	readers_begin(r, b->lane, &is_stopped);
	assert_int_equal(
	    sqlite3_exec(h, "BEGIN; SELECT count(*) FROM t", NULL, NULL, NULL),
	    SQLITE_OK);
	/* A list's page ends by itself, also while nothing is written. */
	for (int i = 0; !atomic_load(&is_stopped) && !atomic_load(b->is_over) &&
	     (b->is_endless ||
		 atomic_load(b->commits) < before + COMMITS_OF_READ) &&
	     (b->lane == LANE_SLOW || i < 100);
	     i++)
		(void)usleep(200);
	assert_int_equal(
	    sqlite3_exec(h, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	readers_end(r, b->lane);
	b->reads++;
}

static void *
busy_main(void *arg)
{
	struct busy_lane *b = arg;
	sqlite3 *h;

	assert_int_equal(sqlite3_open(b->path, &h), SQLITE_OK);
	while (!atomic_load(b->is_over))
		read_once(b, h);
	assert_int_equal(sqlite3_close(h), SQLITE_OK);
	return NULL;
}

static void
write_once(struct db *db, bool *is_due)
{
	struct err e = {0};

	if (db_begin(db, &e) != 0 ||
	    db_exec_text(db, "INSERT INTO t VALUES (randomblob(65536))", &e) !=
		0 ||
	    db_exec(db, DB_COMMIT, &e) != 0 ||
	    readers_bound_wal(r, db, is_due, &e) != 0)
		fail_msg("%s", e.msg);
}

static void
write_beside(bool is_endless, uint64_t most)
{
	struct fixture *f = fixture_new("/tmp");
	AUTO(auto_free) char *path = xasprintf("%s/history.db", f->dir);
	atomic_uint commits = 0;
	atomic_bool is_over = false;
	struct busy_lane lanes[NLANE] = {
	    {LANE_QUICK, path, &commits, &is_over, false, 0, 0},
	    {LANE_SLOW, path, &commits, &is_over, is_endless, 0, 0}};
	uint64_t largest = 0;
	bool is_due = false;
	struct db *db = NULL;
	struct err e;

	assert_int_equal(db_open(f->dir, DB_HISTORY_WRITER, &db, &e), 0);
	assert_int_equal(db_use_wal(db, &e), 0);
	assert_int_equal(db_exec_text(db, "CREATE TABLE t (x)", &e), 0);
	for (size_t i = 0; i < NLANE; i++)
		assert_int_equal(pthread_create(&lanes[i].thread, NULL,
				     busy_main, &lanes[i]),
		    0);
	for (int i = 0; i < COMMITS; i++) {
		write_once(db, &is_due);
		atomic_fetch_add(&commits, 1);
		if (db_wal_size(db) > largest)
			largest = db_wal_size(db);
	}
	atomic_store(&is_over, true);
	for (size_t i = 0; i < NLANE; i++) {
		(void)pthread_join(lanes[i].thread, NULL);
		assert_true(lanes[i].reads > 0);
	}
	db_close(db);
	fixture_free(f);
	if (largest > most)
		fail_msg("the WAL grew to %llu MiB",
		    (unsigned long long)largest >> 20);
}

TEST(the_wal_has_a_bound_beside_readers_that_never_rest)
{
	write_beside(false, 2 * (uint64_t)READERS_WAL_BYTES);
}

TEST(a_read_that_does_not_end_is_stopped_for_the_checkpoint)
{
	write_beside(true, READERS_WAL_MAX + READERS_WAL_BYTES);
}

TEST_MAIN(setup, teardown)

#include "tests/unit/worker/ends.h"

#include <sys/mman.h>

#include "worker/copy.h"
#include "worker/copy_clock.h"

/* What runs that ended wait for: an agent that does not give their files. */

#define LATE_MS 300

struct job {
	struct copy_job job; /* first */
	char error[COPY_ERROR_MAX];
	bool done;
};

static struct fixture {
	struct copy_limits limits;
	struct copies *copies;
	struct job jobs[3];
	uint32_t chan; /* the last opened */
} fix;

static void
on_down(void)
{
	copies_detach(fix.copies);
}

static void
done_cb(struct copy_job *job, const char *error)
{
	struct job *j = (struct job *)job;

	assert_false(j->done);
	j->done = true;
	(void)snprintf(j->error, sizeof(j->error), "%s", error);
}

static int
setup(void **state)
{
	(void)state;
	memset(&fix, 0, sizeof(fix));
	ends_open(NULL, on_down);
	fake_link_greet(&ends.link);
	fix.limits = (struct copy_limits){
	    .file_bytes = 1 << 30, .files = 100, .late_ms = LATE_MS};
	fix.copies = copies_new(ends.base, &ends.front.chan, &fix.limits);
	copies_attach(fix.copies, ends.peer);
	for (size_t i = 0; i < ARRAY_LEN(fix.jobs); i++)
		fix.jobs[i].job =
		    (struct copy_job){.task = i + 1, .done = done_cb};
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	copies_free(fix.copies);
	ends_close();
	return 0;
}

static void
add_all(void)
{
	for (size_t i = 0; i < ARRAY_LEN(fix.jobs); i++)
		copies_add(fix.copies, &fix.jobs[i].job);
	buf_clear(link_out(ends.link.l));
	fix.chan = 1;
}

static void
expect_all_late(void)
{
	assert_non_null(strstr(fix.jobs[0].error,
	    "the sandbox took too long to give its files, the rest is left"));
	for (size_t i = 1; i < ARRAY_LEN(fix.jobs); i++) {
		assert_true(fix.jobs[i].done);
		assert_non_null(strstr(fix.jobs[i].error,
		    "the sandbox took too long to give the files of an "
		    "earlier run"));
	}
}

TEST_WITH(setup, teardown, a_silent_walk_ends_all_that_wait)
{
	add_all();
	fixture_loop(ends.base, &fix.jobs[0].done);
	expect_all_late();
}

TEST_WITH(setup, teardown, a_link_that_stays_away_is_waited_for_as_long)
{
	add_all();
	fake_link_lose(&ends.link);
	fixture_loop(ends.base, &fix.jobs[0].done);
	expect_all_late();
}

static void
open_file(void)
{
	const struct frame_entry m = {.chan = fix.chan++,
	    .kind = 'f',
	    .mark = (const uint8_t[FRAME_MARK_BYTES]){0},
	    .path = {(const uint8_t *)"a", 1}};
	struct buf b;
	struct err e;

	buf_init(&b, 0);
	assert_int_equal(frame_put_entry(&b, &m), 0);
	assert_int_equal(fake_link_say(&ends.link, &b, &e), 0);
	assert_int_equal(fake_link_close(&ends.link, fix.chan - 1, 0, ""), 0);
	copies_on_fd(fix.copies, &fix.jobs[0].job, 0,
	    memfd_create("f", MFD_CLOEXEC), "");
}

/* A byte now and then does not put it off. */
TEST_WITH(setup, teardown, a_file_that_trickles_ends_all_that_wait)
{
	const uint64_t end_ms = clock_mono_ms() + FIXTURE_WAIT_MS;
	uint64_t at = 0;

	add_all();
	open_file();
	while (!fix.jobs[0].done) {
		assert_true(clock_mono_ms() < end_ms);
		assert_int_equal(
		    fake_link_data(&ends.link, fix.chan, at++, "x", 1), 0);
		(void)event_base_loop(ends.base, EVLOOP_NONBLOCK);
		(void)usleep(1000);
	}
	expect_all_late();
}

TEST(the_time_that_the_front_takes_is_not_the_agents)
{
	struct copy_clock k;

	copy_clock_init(&k, 0);
	assert_false(copy_clock_is_late(&k));
	copy_clock_go(&k);
	copy_clock_stand(&k);
	copy_clock_earn_piece(&k);
	(void)usleep(2000);
	assert_false(copy_clock_is_late(&k));
	copy_clock_go(&k);
	while (!copy_clock_is_late(&k))
		;
	copy_clock_stand(&k);
	copy_clock_earn_bytes(&k, 1 << 30); /* it has 0 now, and no more */
	copy_clock_go(&k);
	while (!copy_clock_is_late(&k))
		;
}

/* Each as the first that is late: nobody waited before. */
TEST_WITH(setup, teardown, a_later_run_has_its_own_time)
{
	copies_add(fix.copies, &fix.jobs[0].job);
	fixture_loop(ends.base, &fix.jobs[0].done);
	copies_drop(fix.copies, &fix.jobs[0].job);
	copies_add(fix.copies, &fix.jobs[1].job);
	assert_false(fix.jobs[1].done);
	buf_clear(link_out(ends.link.l));
	assert_int_equal(fake_link_close(&ends.link, 2, 0, ""), 0);
	assert_true(fix.jobs[1].done);
	assert_string_equal(fix.jobs[1].error, "");
}

TEST_MAIN(NULL, NULL)

#include "tests/unit/core/core_ground.h"

#include <sys/resource.h>

#include "supervisor/core/follow.h"
#include "supervisor/core/lookup.h"

/* A reader that goes through a run's log: what it hears when it cannot. */

struct reader {
	struct follow *follow;
	int open_rc;
	unsigned int opened, answers;
	bool had_records;
	int code; /* of the last answer's reason */
};

static void
reader_on_open(struct follow *f, int rc, const struct err *why, void *arg)
{
	struct reader *r = arg;

	(void)f;
	(void)why;
	r->opened++;
	r->open_rc = rc;
}

static void
reader_on_next(struct follow *f, const struct log_records *records,
    const struct err *why, void *arg)
{
	struct reader *r = arg;

	(void)f;
	r->answers++;
	r->had_records = records != NULL;
	r->code = why == NULL ? 0 : why->code;
}

static const struct follow_ops reader_ops = {reader_on_open, reader_on_next};

static void
reader_open(struct reader *r, const struct run *run)
{
	*r = (struct reader){0};
	r->follow = follow_open(g.core, g.who, &run->row.uuid,
	    &(struct log_at){0, 0}, &reader_ops, r);
	ground_wait_until(r->opened == 1);
}

static struct run *
begun_run(void)
{
	struct run *r = ground_run(ground_open("box"), false);

	expect_told(0, "start 1");
	say_ready(0, 1);
	say_begun(0, 1);
	ground_wait_until(r->recorded == RUN_IS_RECORDED);
	return r;
}

static void
nothing_cb(
    int rc, const struct log_records *records, const struct err *why, void *arg)
{
	(void)rc;
	(void)records;
	(void)why;
	(void)arg;
}

TEST(a_log_that_cannot_be_read_is_no_end)
{
	struct run *run = begun_run();
	const struct log_caps caps = {0};
	struct log_view *busy =
	    log_view_open_memory(core_logs(g.core), NULL, 0, 1, &caps);
	struct reader r;

	reader_open(&r, run);
	assert_int_equal(r.open_rc, 0);
	for (unsigned int i = 0; i < LOGS_REQUESTS_MAX; i++)
		log_view_read(
		    busy, &(struct log_at){0}, 0, 1, nothing_cb, NULL, NULL);
	follow_next(r.follow, 4096);
	ground_wait_until(r.answers == 1);
	assert_false(r.had_records);
	assert_int_equal(r.code, ERR_LIMIT);
	follow_close(r.follow);
	log_view_close(busy);
	/* Another, from where it was, hears all. */
	reader_open(&r, run);
	follow_next(r.follow, 4096);
	ground_wait_until(r.answers == 1);
	assert_true(r.had_records);
	follow_close(r.follow);
}

TEST(a_run_that_goes_on_is_followed_without_a_descriptor)
{
	struct run *run = begun_run();
	struct rlimit was, none;
	struct reader r;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	reader_open(&r, run);
	follow_next(r.follow, 4096);
	ground_wait_until(r.answers == 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_true(r.had_records);
	follow_close(r.follow);
}

TEST(a_long_log_without_a_descriptor_is_an_error_and_not_empty)
{
	struct run *run = begun_run();
	static const uint8_t text[RUNLOG_PAYLOAD_MAX];
	struct rlimit was, none;
	struct reader r;

	for (int i = 0; i < 3; i++)
		say_record(0, 1, RUNLOG_STDOUT, text, 16000);
	say_command_ended(0, 1, 0);
	say_ended(0, 1, RUNLOG_EXIT);
	ground_wait_over(run);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	reader_open(&r, run);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(r.open_rc, ERR_SYS);
	follow_close(r.follow);
	reader_open(&r, run);
	assert_int_equal(r.open_rc, 0);
	follow_close(r.follow);
}

TEST_MAIN(ground_set_up, ground_tear_down)

#include "tests/unit/worker/ground.h"

#include "tests/unit/common/forked.h"
#include "worker/box_bounds.h"

/* What is asked of the backend for a box's bounds, and when. */

static struct box_bounds *bounds;
static struct box_bounds_line line;
static struct backend_handle handle;

static void
begin(uint64_t own_nano_cpus)
{
	backend_handle_named(&handle, GROUND_ID);
	if (line.asked == 0)
		box_bounds_line_init(&line);
	bounds =
	    box_bounds_new(ground.base, &ground.backend, &line, GROUND_NAME);
	box_bounds_own(bounds, own_nano_cpus);
}

static void
want(uint32_t cpu_shares, uint64_t nano_cpus)
{
	box_bounds_set(bounds, &handle,
	    &(struct backend_bounds){
		.cpu_shares = cpu_shares, .nano_cpus = nano_cpus});
}

static void
expect_asked(uint32_t cpu_shares, uint64_t nano_cpus)
{
	assert_int_equal(ground.shares.n, 1);
	assert_string_equal(ground.shares.all[0].what, GROUND_ID);
	assert_int_equal(ground.bounds.cpu_shares, cpu_shares);
	assert_int_equal(ground.bounds.nano_cpus, nano_cpus);
}

TEST(a_box_never_gets_more_than_it_was_made_with)
{
	static const struct {
		uint64_t own, wanted, asked;
	} rows[] = {{1000, 500, 500}, {1000, 0, 1000}, {1000, 5000, 1000},
	    {0, 0, 0}, {0, 700, 700}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		begin(rows[i].own);
		want(64, rows[i].wanted);
		expect_asked(64, rows[i].asked);
		ground_done(&ground.shares, 0);
		box_bounds_free(bounds);
	}
}

TEST(the_last_word_follows_the_one_under_way)
{
	begin(1000);
	want(2, 100);
	want(4, 200);
	want(8, 300);
	expect_asked(2, 100);
	ground_done(&ground.shares, 0);
	expect_asked(8, 300);
	ground_done(&ground.shares, 0);
	assert_int_equal(ground.shares.n, 0);
	box_bounds_free(bounds);
}

TEST(a_backend_that_bounds_nothing_is_not_asked)
{
	ground_can(BACKEND_CAN_STOP);
	begin(1000);
	want(64, 500);
	assert_int_equal(ground.shares.n, 0);
	box_bounds_free(bounds);
}

static bool
is_asked_again(void)
{
	return ground.shares.n > 0;
}

TEST(what_failed_is_asked_again_until_it_succeeds)
{
	begin(1000);
	want(2, 100);
	ground_done(&ground.shares, ERR_BACKEND);
	assert_int_equal(ground.shares.n, 0);
	while (!is_asked_again())
		(void)event_base_loop(ground.base, EVLOOP_ONCE);
	expect_asked(2, 100);
	/* What is said now is not kept waiting for it. */
	ground_done(&ground.shares, ERR_BACKEND);
	want(4, 200);
	expect_asked(4, 200);
	ground_done(&ground.shares, 0);
	box_bounds_free(bounds);
}

static void
fail_and_mend(void)
{
	static const int results[] = {
	    ERR_BACKEND, ERR_BACKEND, ERR_BACKEND, 0, ERR_BACKEND};

	log_init("worker/0");
	begin(1000);
	for (size_t i = 0; i < ARRAY_LEN(results); i++) {
		want(2 + (uint32_t)i, 100);
		ground_done(&ground.shares, results[i]);
	}
}

TEST(a_box_that_goes_on_failing_is_one_warning)
{
	static const char line_of_it[] = "its share of the host is not set";
	struct forked f;
	const char *first, *second;

	forked_run(&f, fail_and_mend);
	first = strstr(f.text, line_of_it);
	assert_non_null(first);
	second = strstr(first + 1, line_of_it); /* it was well in between */
	assert_non_null(second);
	assert_null(strstr(second + 1, line_of_it));
}

TEST(an_answer_may_come_after_the_end)
{
	begin(1000);
	want(2, 100);
	want(4, 200);
	box_bounds_free(bounds);
	ground_done(&ground.shares, 0);
	assert_int_equal(ground.shares.n, 0);
	begin(1000);
	want(2, 100);
	box_bounds_free(bounds);
	ground_done(&ground.shares, ERR_BACKEND);
	box_bounds_free(NULL);
}

TEST(so_many_requests_are_under_way_and_the_others_wait)
{
	struct box_bounds *all[BOX_BOUNDS_ASKED_MAX + 3];

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		begin(1000);
		all[i] = bounds;
		want(2 + (uint32_t)i, 0);
		want(100 + (uint32_t)i, 0);
	}
	assert_int_equal(ground.shares.n, BOX_BOUNDS_ASKED_MAX);
	/* The first in line goes, and is not asked for. */
	box_bounds_free(all[BOX_BOUNDS_ASKED_MAX]);
	/* Whose answer has come goes behind those that wait. */
	ground_done(&ground.shares, 0);
	assert_int_equal(ground.shares.n, BOX_BOUNDS_ASKED_MAX);
	assert_int_equal(
	    ground.bounds.cpu_shares, 100 + BOX_BOUNDS_ASKED_MAX + 1);
	while (ground.shares.n > 0)
		ground_done(&ground.shares, 0);
	assert_int_equal(line.asked, 0);
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (i != BOX_BOUNDS_ASKED_MAX)
			box_bounds_free(all[i]);
}

TEST_MAIN(ground_setup, ground_teardown)

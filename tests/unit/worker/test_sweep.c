#include "tests/unit/worker/ground.h"

#include "worker/sweep.h"

#define NOW_MS 1000000
#define OLD_MS (NOW_MS - SWEEP_AGE_MS - 1)

static struct msg_swept swept;

/* The one message must be SWEPT. */
static void
expect_swept(uint32_t found, uint32_t removed)
{
	struct ipc_msg m = front_next(&ground.front, IPC_SWEPT);
	struct err e;

	assert_int_equal(msg_get_swept(&m, &swept, &e), 0);
	assert_int_equal(swept.found, found);
	assert_int_equal(swept.removed, removed);
	front_expect_nothing(&ground.front);
}

/* A container of the UUID that begins with this byte. */
static struct backend_container
box(uint8_t number, int64_t created_ms)
{
	struct backend_container c = {.is_ours = true,
	    .identity = {.uuid = {{number}}},
	    .created_ms = created_ms};
	char id[16];

	(void)snprintf(id, sizeof(id), "c%u", number);
	backend_handle_named(&c.handle, id);
	return c;
}

static void
list(uint8_t number)
{
	const struct uuid u = {{number}};
	struct err e;

	assert_int_equal(sweep_list(&ground.w, u.b, 1, &e), 0);
}

static void
test_what_is_not_listed_and_old_enough_is_removed(void **state)
{
	struct backend_container found[] = {box(9, OLD_MS), box(2, OLD_MS),
	    box(3, OLD_MS + 1), box(4, OLD_MS), box(5, OLD_MS)};

	(void)state;
	found[4].is_ours = false;
	list(9);
	list(1);
	sweep_run(&ground.w, NOW_MS);
	ground_listed(0, found, ARRAY_LEN(found));
	assert_int_equal(ground.removes.n, 2);
	assert_string_equal(ground.removes.all[0].what, "c2");
	assert_string_equal(ground.removes.all[1].what, "c4");
	ground_removed(0);
	front_expect_nothing(&ground.front);
	ground_removed(0);
	expect_swept(4, 2);
	assert_int_equal(ground.sweeps, 1);
}

static void
test_removals_go_on_a_few_at_a_time(void **state)
{
	struct backend_container found[20];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(found); i++)
		found[i] = box((uint8_t)(i + 1), OLD_MS);
	sweep_run(&ground.w, NOW_MS);
	ground_listed(0, found, ARRAY_LEN(found));
	for (size_t left = ARRAY_LEN(found); left > 0; left--) {
		assert_int_equal(
		    ground.removes.n, left < SWEEP_WIDTH ? left : SWEEP_WIDTH);
		ground_removed(0);
	}
	expect_swept(20, 20);
}

static void
test_what_cannot_be_removed_is_not_counted(void **state)
{
	const struct backend_container found = box(2, OLD_MS);

	(void)state;
	sweep_run(&ground.w, NOW_MS);
	ground_listed(0, &found, 1);
	ground_removed(ERR_BACKEND);
	expect_swept(1, 0);
}

static void
test_an_engine_that_does_not_say_leaves_all_as_it_is(void **state)
{
	(void)state;
	sweep_run(&ground.w, NOW_MS);
	ground_listed(ERR_BACKEND, NULL, 0);
	expect_swept(0, 0);
	assert_int_equal(ground.sweeps, 0);
}

static void
test_a_sweep_during_another_is_dropped(void **state)
{
	const struct backend_container found = box(2, OLD_MS);

	(void)state;
	sweep_run(&ground.w, NOW_MS);
	list(2);
	sweep_run(&ground.w, NOW_MS);
	assert_int_equal(ground.lists.n, 1);
	ground_listed(0, &found, 1);
	ground_removed(0); /* it was not listed in time */
	expect_swept(1, 1);
}

static void
test_what_was_listed_before_does_not_hold_for_the_next(void **state)
{
	const struct backend_container found = box(2, OLD_MS);

	(void)state;
	list(2);
	sweep_run(&ground.w, NOW_MS);
	ground_listed(0, &found, 1);
	expect_swept(1, 0);
	sweep_run(&ground.w, NOW_MS);
	ground_listed(0, &found, 1);
	ground_removed(0);
	expect_swept(1, 1);
}

static void
test_more_than_there_can_be_is_a_lie(void **state)
{
	uint8_t *uuids = xcalloc(SWEEP_LISTED_MAX, sizeof(struct uuid));
	struct err e;

	(void)state;
	assert_int_equal(sweep_list(&ground.w, uuids, SWEEP_LISTED_MAX, &e), 0);
	assert_int_equal(sweep_list(&ground.w, uuids, 1, &e), ERR_PROTO);
	free(uuids);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    GROUND_TEST(test_what_is_not_listed_and_old_enough_is_removed),
	    GROUND_TEST(test_removals_go_on_a_few_at_a_time),
	    GROUND_TEST(test_what_cannot_be_removed_is_not_counted),
	    GROUND_TEST(test_an_engine_that_does_not_say_leaves_all_as_it_is),
	    GROUND_TEST(test_a_sweep_during_another_is_dropped),
	    GROUND_TEST(test_what_was_listed_before_does_not_hold_for_the_next),
	    GROUND_TEST(test_more_than_there_can_be_is_a_lie),
	};

	return cmocka_run_group_tests_name("sweep", tests, NULL, NULL);
}

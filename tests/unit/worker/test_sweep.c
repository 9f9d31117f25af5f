#include "tests/unit/worker/ground.h"

#include "worker/sweep.h"

#define NOW_MS 1000000
#define OLD_MS (NOW_MS - SWEEP_AGE_MS - 1)

#define KEEP_MS 3600000

/* The next message must be SWEPT, and the last. */
static void
expect_swept(uint32_t found, uint32_t removed)
{
	struct ipc_msg m = front_next(&ground.front, IPC_SWEPT);
	struct msg_swept swept;
	struct err e;

	assert_int_equal(msg_get_swept(&m, &swept, &e), 0);
	assert_true(swept.is_known);
	assert_int_equal(swept.found, found);
	assert_int_equal(swept.removed, removed);
	front_expect_nothing(&ground.front);
}

/* The next message must be of that box. */
static void
expect_found(uint8_t number, bool running)
{
	struct ipc_msg m = front_next(&ground.front, IPC_SWEEP_FOUND);
	struct msg_sweep_found found;
	struct err e;

	assert_int_equal(msg_get_sweep_found(&m, &found, &e), 0);
	assert_int_equal(found.uuid.b[0], number);
	assert_string_equal(found.identifier, "chat");
	assert_int_equal(found.running, running);
}

/* A container of the UUID that begins with this byte. */
static struct backend_container
box(uint8_t number, int64_t created_ms)
{
	struct backend_container c = {.is_ours = true,
	    .running = true,
	    .identity = {.uuid = {{number}}, .tenant = "default"},
	    .created_ms = created_ms};
	char id[16];

	(void)snprintf(id, sizeof(id), "c%u", number);
	backend_handle_named(&c.handle, id);
	return c;
}

#define NEVER_RAN INT64_C(-1)

/* The oldest inspection shows this one; finished_ms 0: it runs. */
static void
show(struct backend_container c, int64_t finished_ms)
{
	static struct backend_report report;

	report = (struct backend_report){.name = "mcp-sbx-chat-1",
	    .identifier = "chat",
	    .finished_ms = finished_ms == NEVER_RAN ? 0 : finished_ms};
	c.report = &report;
	c.running = finished_ms == 0;
	ground_inspected(0, &c);
}

static void
list(uint8_t number)
{
	const struct uuid u = {{number}};
	struct err e;

	assert_int_equal(sweep_list(&ground.w, u.b, 1, &e), 0);
}

static void
sweep(int64_t keep_ms)
{
	sweep_run(&ground.w,
	    &(struct sweep_wish){.asof_ms = NOW_MS, .keep_ms = keep_ms});
}

TEST(what_is_not_listed_and_old_enough_is_stopped)
{
	struct backend_container found[] = {box(9, OLD_MS), box(2, OLD_MS),
	    box(3, OLD_MS + 1), box(4, OLD_MS), box(5, OLD_MS)};

	found[4].is_ours = false;
	list(9);
	list(1);
	sweep(KEEP_MS);
	ground_listed(0, found, ARRAY_LEN(found));
	assert_int_equal(ground.inspects.n, 2);
	show(found[1], 0);
	show(found[3], 0);
	expect_found(2, true);
	expect_found(4, true);
	assert_int_equal(ground.removes.n, 0);
	assert_int_equal(ground.stops.n, 2);
	assert_string_equal(ground.stops.all[0].what, "c2");
	assert_string_equal(ground.stops.all[1].what, "c4");
	ground_stopped(0);
	front_expect_nothing(&ground.front);
	ground_stopped(0);
	expect_swept(4, 0);
	assert_int_equal(ground.sweeps, 1);
}

TEST(what_cannot_be_stopped_is_told_and_left_running)
{
	struct backend_container found[] = {box(2, OLD_MS), box(3, OLD_MS)};

	ground_can(BACKEND_CAN_BOUND);
	sweep(KEEP_MS);
	ground_listed(0, found, ARRAY_LEN(found));
	show(found[0], 0);
	show(found[1], NOW_MS - KEEP_MS);
	expect_found(2, true);
	expect_found(3, false);
	assert_int_equal(ground.stops.n, 0);
	assert_int_equal(ground.removes.n, 1);
	ground_removed(0);
	expect_swept(2, 1);
}

TEST(what_rests_is_kept_until_its_time_is_over)
{
	struct backend_container found[] = {box(2, OLD_MS), box(3, OLD_MS)};

	sweep(KEEP_MS);
	ground_listed(0, found, ARRAY_LEN(found));
	show(found[0], NOW_MS - KEEP_MS + 1);
	show(found[1], NOW_MS - KEEP_MS);
	assert_int_equal(ground.stops.n, 0);
	assert_int_equal(ground.removes.n, 1);
	assert_string_equal(ground.removes.all[0].what, "c3");
	ground_removed(0);
	expect_found(2, false);
	expect_found(3, false);
	expect_swept(2, 1);
}

TEST(what_never_ran_goes_at_once)
{
	const struct backend_container found = box(2, OLD_MS);

	sweep(KEEP_MS);
	ground_listed(0, &found, 1);
	show(found, NEVER_RAN);
	assert_int_equal(ground.removes.n, 1);
	ground_removed(0);
	expect_found(2, false);
	expect_swept(1, 1);
}

TEST(who_only_looks_touches_nothing_and_sees_the_young)
{
	struct backend_container found[] = {box(2, NOW_MS), box(3, OLD_MS)};

	sweep_run(&ground.w,
	    &(struct sweep_wish){
		.asof_ms = NOW_MS, .keep_ms = 1, .only_look = true});
	ground_listed(0, found, ARRAY_LEN(found));
	show(found[0], 0);
	show(found[1], 1);
	assert_int_equal(ground.stops.n + ground.removes.n, 0);
	expect_found(2, true);
	expect_found(3, false);
	expect_swept(2, 0);
	assert_int_equal(ground.sweeps, 0);
}

TEST(what_is_not_to_be_kept_goes_at_once)
{
	const struct backend_container found = box(2, OLD_MS);

	sweep(0);
	ground_listed(0, &found, 1);
	show(found, 0);
	assert_int_equal(ground.removes.n, 1);
	ground_removed(0);
	expect_found(2, true);
	expect_swept(1, 1);
}

TEST(removals_go_on_a_few_at_a_time)
{
	struct backend_container found[20];

	for (size_t i = 0; i < ARRAY_LEN(found); i++)
		found[i] = box((uint8_t)(i + 1), OLD_MS);
	sweep(0);
	ground_listed(0, found, ARRAY_LEN(found));
	for (size_t i = 0; i < ARRAY_LEN(found); i++) {
		size_t left = ARRAY_LEN(found) - i;

		assert_int_equal(
		    ground.inspects.n, left < SWEEP_WIDTH ? left : SWEEP_WIDTH);
		show(found[i], 0);
		expect_found((uint8_t)(i + 1), true);
		ground_removed(0);
	}
	expect_swept(20, 20);
}

TEST(what_cannot_be_removed_is_not_counted)
{
	const struct backend_container found = box(2, OLD_MS);

	sweep(0);
	ground_listed(0, &found, 1);
	show(found, 0);
	ground_removed(ERR_BACKEND);
	expect_found(2, true);
	expect_swept(1, 0);
}

TEST(what_is_another_by_now_is_left_alone)
{
	struct backend_container found = box(2, OLD_MS);

	sweep(0);
	ground_listed(0, &found, 1);
	found.is_ours = false;
	show(found, 0);
	assert_int_equal(ground.removes.n, 0);
	expect_swept(1, 0);
}

TEST(an_engine_that_does_not_say_leaves_all_as_it_is)
{
	struct ipc_msg m;
	struct msg_swept swept;
	struct err e;

	sweep(0);
	ground_listed(ERR_BACKEND, NULL, 0);
	m = front_next(&ground.front, IPC_SWEPT);
	assert_int_equal(msg_get_swept(&m, &swept, &e), 0);
	assert_false(swept.is_known);
	assert_int_equal(ground.sweeps, 0);
}

TEST(a_sweep_during_another_is_dropped)
{
	const struct backend_container found = box(2, OLD_MS);

	sweep(0);
	list(2);
	sweep(0);
	assert_int_equal(ground.lists.n, 1);
	ground_listed(0, &found, 1);
	show(found, 0);
	ground_removed(0); /* it was not listed in time */
	expect_found(2, true);
	expect_swept(1, 1);
}

TEST(what_was_listed_before_does_not_hold_for_the_next)
{
	const struct backend_container found = box(2, OLD_MS);

	list(2);
	sweep(0);
	ground_listed(0, &found, 1);
	expect_swept(1, 0);
	sweep(0);
	ground_listed(0, &found, 1);
	show(found, 0);
	ground_removed(0);
	expect_found(2, true);
	expect_swept(1, 1);
}

TEST(more_than_there_can_be_is_a_lie)
{
	uint8_t *uuids = xcalloc(SWEEP_LISTED_MAX, sizeof(struct uuid));
	struct err e;

	assert_int_equal(sweep_list(&ground.w, uuids, SWEEP_LISTED_MAX, &e), 0);
	assert_int_equal(sweep_list(&ground.w, uuids, 1, &e), ERR_PROTO);
	free(uuids);
}

/* ---- files that outlive boxes */

static struct backend_sweep files;
static backend_done_cb files_cb;
static void *files_arg;

static void
sweep_files(struct backend *b, const struct backend_sweep *how,
    backend_done_cb cb, void *arg)
{
	(void)b;
	files = *how;
	files_cb = cb;
	files_arg = arg;
}

static bool
are_used(uint8_t number)
{
	const struct uuid u = {{number}};

	return files.is_used(&u, files.arg);
}

TEST(files_of_boxes_that_are_neither_listed_nor_there_are_swept)
{
	struct backend_container found[] = {box(3, OLD_MS + 1), box(2, OLD_MS)};
	struct backend_ops ops = ground_backend_ops;

	ops.sweep_files = sweep_files;
	ground.backend.ops = &ops;
	list(9);
	list(2);
	sweep(KEEP_MS);
	ground_listed(0, found, ARRAY_LEN(found));
	front_expect_nothing(&ground.front);
	assert_int_equal(files.asof_ms, NOW_MS);
	assert_true(are_used(9));
	assert_true(are_used(2));
	assert_true(are_used(3));
	assert_false(are_used(4));
	files_cb(0, NULL, files_arg);
	expect_swept(2, 0);
}

TEST_MAIN(ground_setup, ground_teardown)

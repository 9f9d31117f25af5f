/* Files that outlive a box: what becomes of them, and when. */
#include "tests/unit/worker/ground.h"

static void
be_up(void)
{
	ground_keeps_files();
	ground_box(MSG_OPEN_MODE_CREATE);
	ground_opened(0);
	fake_link_greet(&ground.link);
}

static void
remove_it(bool keeps_files)
{
	const struct msg_sandbox_remove m = {.id = GROUND_SANDBOX,
	    .uuid = ground_uuid,
	    .tenant_name = "default",
	    .name = GROUND_NAME,
	    .keeps_files = keeps_files};
	struct err e;

	assert_int_equal(boxes_remove(ground.w.boxes, &m, &e), 0);
}

static void
expect_forgotten(enum backend_forget which)
{
	assert_int_equal(ground.files.n, 1);
	assert_int_equal(ground.files_forgot, which);
	ground_done(&ground.files, 0);
}

static void
lose_it(void)
{
	struct backend_handle h;

	backend_handle_named(&h, GROUND_ID);
	boxes_on_change(ground.w.boxes, &h, BACKEND_DESTROYED);
}

TEST_WITH(ground_setup, ground_teardown, they_go_before_a_box_that_is_removed)
{
	be_up();
	remove_it(false);
	assert_int_equal(ground.removes.n, 0);
	expect_forgotten(BACKEND_FORGET_ALL);
	ground_removed(0);
	assert_string_equal(ground_told(), "SANDBOX_READY SANDBOX_REMOVED");
}

TEST_WITH(ground_setup, ground_teardown, without_them_gone_a_box_stays)
{
	struct ipc_msg m;
	struct msg_sandbox_removed removed;
	struct err e;

	be_up();
	(void)front_next(&ground.front, IPC_SANDBOX_READY);
	remove_it(false);
	ground_done(&ground.files, ERR_BACKEND);
	assert_int_equal(ground.removes.n, 0);
	m = front_next(&ground.front, IPC_SANDBOX_REMOVED);
	assert_int_equal(msg_get_sandbox_removed(&m, &removed, &e), 0);
	assert_int_equal(removed.code, ERR_BACKEND);
}

TEST_WITH(ground_setup, ground_teardown, the_front_may_have_them_kept)
{
	be_up();
	remove_it(true);
	assert_int_equal(ground.files.n, 0);
	ground_removed(0);
	assert_string_equal(ground_told(), "SANDBOX_READY SANDBOX_REMOVED");
}

TEST_WITH(ground_setup, ground_teardown, those_of_a_box_that_is_lost_stay)
{
	be_up();
	lose_it();
	assert_int_equal(ground.files.n, 0);
	ground_removed(0);
	assert_string_equal(ground_told(), "SANDBOX_READY SANDBOX_LOST");
}

TEST_WITH(ground_setup, ground_teardown,
    those_of_a_lost_box_go_when_the_front_did_not_hear_of_it)
{
	ground_keeps_files();
	ground_box(MSG_OPEN_MODE_CREATE);
	ground_opened(0);
	lose_it(); /* told when nothing of it is left */
	remove_it(false);
	ground_removed(0);
	expect_forgotten(BACKEND_FORGET_ALL);
	ground_inspected(ERR_NOTFOUND, NULL);
	assert_string_equal(ground_told(), "SANDBOX_REMOVED");
}

TEST_WITH(ground_setup, ground_teardown, new_ones_go_with_a_box_that_failed)
{
	ground_keeps_files();
	ground_box(MSG_OPEN_MODE_CREATE);
	ground_created(ERR_BACKEND);
	expect_forgotten(BACKEND_FORGET_NEW);
	assert_string_equal(ground_told(), "SANDBOX_FAILED");
}

TEST_WITH(ground_setup, ground_teardown,
    those_of_a_box_that_is_not_wanted_go_before_it_was_made)
{
	ground_keeps_files();
	ground_box(MSG_OPEN_MODE_CREATE);
	remove_it(false);
	assert_true(ground.abandoned);
	assert_int_equal(ground.files.n, 0);
	ground_created(ERR_WRONG_STATE);
	expect_forgotten(BACKEND_FORGET_ALL);
	assert_string_equal(ground_told(), "SANDBOX_REMOVED");
}

TEST_WITH(ground_setup, ground_teardown, the_front_is_told_of_old_ones)
{
	struct backend_container c = ground_container();
	struct msg_sandbox_ready ready;
	struct ipc_msg m;
	struct err e;

	ground_keeps_files();
	ground_box(MSG_OPEN_MODE_CREATE);
	ground_created(0);
	ground_done(&ground.starts, 0);
	c.has_old_files = true;
	ground_inspected(0, &c);
	fake_link_greet(&ground.link);
	m = front_next(&ground.front, IPC_SANDBOX_READY);
	assert_int_equal(msg_get_sandbox_ready(&m, &ready, &e), 0);
	assert_true(ready.has_old_files);
}

TEST_MAIN(NULL, NULL)

#include "worker/disks.h"
#include "tests/unit/test.h"

/* What the kernel of this machine says; tests/integration/test_doctor.py
 * mounts. */

TEST(memory_is_on_no_disk)
{
	struct disks d;

	disks_below("/dev/shm/not/there", &d);
	assert_true(d.is_known);
	assert_int_equal(d.n, 0);
	assert_string_equal(d.node, "");
	assert_int_equal(disks_shared(&d, &d), DISKS_APART);
}

TEST(what_the_kernel_makes_up_is_not_known)
{
	struct disks d, memory;

	disks_below("/proc/self", &d);
	assert_false(d.is_known);
	disks_below("/dev/shm", &memory);
	assert_int_equal(disks_shared(&d, &memory), DISKS_UNKNOWN);
}

TEST(a_relative_path_is_from_here)
{
	struct disks d, here;

	disks_below("not/there", &d);
	disks_below(".", &here);
	assert_int_equal(d.is_known, here.is_known);
	assert_int_equal(d.n, here.n);
	assert_string_equal(d.node, here.node);
}

TEST(one_disk_of_several_is_shared)
{
	const struct disks a = {.is_known = true, .n = 2, .all = {1, 2}},
			   b = {.is_known = true, .n = 2, .all = {3, 2}},
			   c = {.is_known = true, .n = 1, .all = {3}},
			   some = {.n = 1, .all = {3}};

	assert_int_equal(disks_shared(&a, &b), DISKS_SHARED);
	assert_int_equal(disks_shared(&a, &c), DISKS_APART);
	assert_int_equal(disks_shared(&a, &some), DISKS_UNKNOWN);
	assert_int_equal(disks_shared(&some, &b), DISKS_SHARED);
}

TEST_MAIN(NULL, NULL)

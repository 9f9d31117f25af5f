#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "worker/disks.h"

/* What the kernel of this machine says; tests/integration/test_doctor.py
 * mounts. */

static void
test_memory_is_on_no_disk(void **state)
{
	struct disks d;

	(void)state;
	disks_below("/dev/shm/not/there", &d);
	assert_true(d.is_known);
	assert_int_equal(d.n, 0);
	assert_string_equal(d.node, "");
	assert_int_equal(disks_shared(&d, &d), DISKS_APART);
}

static void
test_what_the_kernel_makes_up_is_not_known(void **state)
{
	struct disks d, memory;

	(void)state;
	disks_below("/proc/self", &d);
	assert_false(d.is_known);
	disks_below("/dev/shm", &memory);
	assert_int_equal(disks_shared(&d, &memory), DISKS_UNKNOWN);
}

static void
test_a_relative_path_is_from_here(void **state)
{
	struct disks d, here;

	(void)state;
	disks_below("not/there", &d);
	disks_below(".", &here);
	assert_int_equal(d.is_known, here.is_known);
	assert_int_equal(d.n, here.n);
	assert_string_equal(d.node, here.node);
}

static void
test_one_disk_of_several_is_shared(void **state)
{
	const struct disks a = {.is_known = true, .n = 2, .all = {1, 2}},
			   b = {.is_known = true, .n = 2, .all = {3, 2}},
			   c = {.is_known = true, .n = 1, .all = {3}},
			   some = {.n = 1, .all = {3}};

	(void)state;
	assert_int_equal(disks_shared(&a, &b), DISKS_SHARED);
	assert_int_equal(disks_shared(&a, &c), DISKS_APART);
	assert_int_equal(disks_shared(&a, &some), DISKS_UNKNOWN);
	assert_int_equal(disks_shared(&some, &b), DISKS_SHARED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_memory_is_on_no_disk),
	    cmocka_unit_test(test_what_the_kernel_makes_up_is_not_known),
	    cmocka_unit_test(test_a_relative_path_is_from_here),
	    cmocka_unit_test(test_one_disk_of_several_is_shared),
	};

	return cmocka_run_group_tests_name("disks", tests, NULL, NULL);
}

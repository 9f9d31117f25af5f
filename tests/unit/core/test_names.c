#include "common/exit.h"
#include "supervisor/core/names.h"

#define TENANT(number) ((struct tenant_id){number})
#include "tests/unit/common/forked.h"
#include "tests/unit/test.h"

TEST(a_name_is_one_tenants)
{
	struct names n = {0};
	struct name_hold a = {0}, b = {0};

	names_take(&n, &a, TENANT(1), "box");
	names_take(&n, &b, TENANT(2), "box");
	assert_ptr_equal(names_find(&n, TENANT(1), "box"), &a);
	assert_ptr_equal(names_find(&n, TENANT(2), "box"), &b);
	assert_null(names_find(&n, TENANT(3), "box"));
	assert_null(names_find(&n, TENANT(1), "bo"));
	names_leave(&n, &a);
	names_leave(&n, &b);
	names_clear(&n);
}

TEST(a_name_that_was_left_can_be_taken)
{
	struct names n = {0};
	struct name_hold a = {0}, b = {0};

	names_take(&n, &a, TENANT(1), "box");
	names_leave(&n, &a);
	names_leave(&n, &a);
	names_take(&n, &b, TENANT(1), "box");
	assert_ptr_equal(names_find(&n, TENANT(1), "box"), &b);
	names_leave(&n, &a); /* holds nothing: takes nothing away */
	assert_ptr_equal(names_find(&n, TENANT(1), "box"), &b);
	names_leave(&n, &b);
	names_clear(&n);
}

static void
take_twice(void)
{
	struct names n = {0};
	struct name_hold a = {0}, b = {0};

	names_take(&n, &a, TENANT(1), "box");
	names_take(&n, &b, TENANT(1), "box");
}

TEST(two_holders_of_a_name_end_the_process)
{
	struct forked f;

	forked_run(&f, take_twice);
	assert_int_equal(f.status, EXIT_BUG);
	assert_non_null(strstr(f.text, "the name box is taken"));
}

TEST_MAIN(NULL, NULL)

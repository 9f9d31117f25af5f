#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/stat.h>

#include "images/agent/steady.h"

#define NOW 5000000

static void
drop(struct steady *s)
{
	if (s->changes != 0)
		(void)close(s->fd);
	s->changes = 0;
}

static void
test_a_directory_of_the_root_is_held(void **state)
{
	struct steady s = {.changes = 0};
	struct stat held, named;

	(void)state;
	assert_int_equal(steady_fd(&s, "/etc", 1, NOW), -1);
	steady_hold(&s, "/etc", 1, NOW);
	assert_int_equal(fstat(steady_fd(&s, "/etc", 1, NOW), &held), 0);
	assert_int_equal(stat("/etc", &named), 0);
	assert_int_equal(held.st_ino, named.st_ino);
	drop(&s);
}

static void
test_what_is_held_is_of_one_path_and_one_state_of_the_sandbox(void **state)
{
	struct steady s = {.changes = 0};

	(void)state;
	steady_hold(&s, "/etc", 7, NOW);
	assert_int_not_equal(steady_fd(&s, "/etc", 7, NOW), -1);
	assert_int_equal(steady_fd(&s, "/usr", 7, NOW), -1);
	assert_int_equal(steady_fd(&s, "/etc", 8, NOW), -1);
	assert_int_equal(steady_fd(&s, "/etc", 0, NOW), -1);
	drop(&s);
}

static void
test_it_is_looked_up_again_after_a_second(void **state)
{
	struct steady s = {.changes = 0};

	(void)state;
	steady_hold(&s, "/etc", 1, NOW);
	assert_int_not_equal(steady_fd(&s, "/etc", 1, NOW + STEADY_US - 1), -1);
	assert_int_equal(steady_fd(&s, "/etc", 1, NOW + STEADY_US), -1);
	steady_hold(&s, "/etc", 1, NOW + STEADY_US);
	assert_int_not_equal(steady_fd(&s, "/etc", 1, NOW + STEADY_US), -1);
	drop(&s);
}

/* A link may be turned, a directory deeper be replaced by its owner. */
static void
test_nothing_else_is_held(void **state)
{
	static const char long_name[] =
	    "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
	static const char *const paths[] = {"/", "/nowhere", "/etc/ssl", "etc",
	    "", "/proc/self", "/etc/passwd", long_name};
	struct steady s = {.changes = 0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		steady_hold(&s, paths[i], 1, NOW);
		assert_int_equal(steady_fd(&s, paths[i], 1, NOW), -1);
	}
}

static void
test_where_root_may_change_all_at_any_time_nothing_is_held(void **state)
{
	struct steady s = {.changes = 0};

	(void)state;
	steady_hold(&s, "/etc", 1, NOW);
	steady_hold(&s, "/etc", 0, NOW);
	assert_int_equal(s.changes, 0);
	assert_int_equal(steady_fd(&s, "/etc", 0, NOW), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_directory_of_the_root_is_held),
	    cmocka_unit_test(
		test_what_is_held_is_of_one_path_and_one_state_of_the_sandbox),
	    cmocka_unit_test(test_it_is_looked_up_again_after_a_second),
	    cmocka_unit_test(test_nothing_else_is_held),
	    cmocka_unit_test(
		test_where_root_may_change_all_at_any_time_nothing_is_held),
	};

	return cmocka_run_group_tests_name("steady", tests, NULL, NULL);
}

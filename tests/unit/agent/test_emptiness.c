/* link: -Wl,--wrap=clock_wall_ms */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "common/clock.h"
#include "common/xmalloc.h"
#include "images/agent/emptiness.h"

static char dir[] = "/tmp/emptiness-XXXXXX";
static int64_t ahead_ms; /* of the wall clock, which is wrapped */

int64_t __real_clock_wall_ms(void);
int64_t __wrap_clock_wall_ms(void);

int64_t
__wrap_clock_wall_ms(void)
{
	return __real_clock_wall_ms() + ahead_ms;
}

static char *
path_of(const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

static void
make(const char *name)
{
	AUTO(auto_free) char *path = path_of(name);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
}

static void
drop(const char *name)
{
	AUTO(auto_free) char *path = path_of(name);

	assert_int_equal(unlink(path), 0);
}

/* Until the kernel's clock of changes has gone on. */
static void
wait_for_tick(const struct timespec *since)
{
	struct timespec now;

	do
		assert_int_equal(clock_gettime(CLOCK_REALTIME_COARSE, &now), 0);
	while (now.tv_sec == since->tv_sec && now.tv_nsec <= since->tv_nsec);
}

static void
test_what_is_not_there_has_no_entries(void **state)
{
	struct emptiness em = {0};

	(void)state;
	assert_false(emptiness_has_entries(&em, "/nowhere/at/all", 1));
	assert_false(em.known);
}

static void
test_entries_are_seen_as_they_come_and_go(void **state)
{
	struct emptiness em = {0};

	(void)state;
	assert_false(emptiness_has_entries(&em, dir, 1));
	make("a");
	assert_true(emptiness_has_entries(&em, dir, 1));
	drop("a");
	assert_false(emptiness_has_entries(&em, dir, 1));
	make(".hidden");
	assert_true(emptiness_has_entries(&em, dir, 1));
	drop(".hidden");
	assert_false(emptiness_has_entries(&em, dir, 1));
}

static void
test_a_directory_that_changed_just_now_is_read_again(void **state)
{
	struct emptiness em = {0};

	(void)state;
	make("a");
	drop("a");
	assert_false(emptiness_has_entries(&em, dir, 1));
	assert_false(em.known);
}

static void
test_one_that_rests_is_known_until_it_changes(void **state)
{
	struct emptiness em = {0};

	(void)state;
	ahead_ms = 100000;
	assert_false(emptiness_has_entries(&em, dir, 1));
	assert_true(em.known);
	assert_false(emptiness_has_entries(&em, dir, 1));
	wait_for_tick(&em.changed);
	make("a");
	assert_true(emptiness_has_entries(&em, dir, 1));
	drop("a");
	ahead_ms = 0;
}

static void
test_another_directory_of_the_same_name_is_read(void **state)
{
	AUTO(auto_free) char *path = path_of("one");
	AUTO(auto_free) char *aside = path_of("two");
	AUTO(auto_free) char *within = path_of("one/file");
	struct emptiness em = {0};

	(void)state;
	ahead_ms = 100000;
	assert_int_equal(mkdir(path, 0700), 0);
	assert_false(emptiness_has_entries(&em, path, 1));
	assert_true(em.known);
	assert_int_equal(rename(path, aside), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(mkdir(within, 0700), 0);
	assert_true(emptiness_has_entries(&em, path, 1));
	assert_int_equal(rmdir(within), 0);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(aside), 0);
	ahead_ms = 0;
}

static void
test_a_link_to_a_directory_is_none(void **state)
{
	AUTO(auto_free) char *path = path_of("link");
	struct emptiness em = {0};

	(void)state;
	assert_int_equal(symlink("/usr", path), 0);
	assert_false(emptiness_has_entries(&em, path, 1));
	assert_int_equal(unlink(path), 0);
}

static int
make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) != NULL ? 0 : -1;
}

static int
remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_what_is_not_there_has_no_entries),
	    cmocka_unit_test(test_entries_are_seen_as_they_come_and_go),
	    cmocka_unit_test(
		test_a_directory_that_changed_just_now_is_read_again),
	    cmocka_unit_test(test_one_that_rests_is_known_until_it_changes),
	    cmocka_unit_test(test_another_directory_of_the_same_name_is_read),
	    cmocka_unit_test(test_a_link_to_a_directory_is_none),
	};

	return cmocka_run_group_tests_name(
	    "emptiness", tests, make_dir, remove_dir);
}

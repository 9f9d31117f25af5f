#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/place.h"
#include "common/xmalloc.h"

#define NOBODY 65534

/* A directory of the test's own, and in it the file "file" and the link "link",
 * which leads nowhere. */
static char top[64];

static int
make_top(void **state)
{
	int fd;

	(void)state;
	(void)snprintf(top, sizeof(top), "/tmp/test-place-XXXXXX");
	if (mkdtemp(top) == NULL || chmod(top, 0755) == -1 || chdir(top) == -1)
		return -1;
	fd = open("file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	return fd == -1 || close(fd) == -1 || symlink("nowhere", "link") == -1 ?
	    -1 :
	    0;
}

static int
remove_top(void **state)
{
	(void)state;
	return unlink("file") == -1 || unlink("link") == -1 || rmdir(top) == -1;
}

static void
expect_place(const char *path, const char *real)
{
	AUTO(auto_free) char *want = xasprintf("%s%s", top, real);
	size_t above = 0;
	struct err e;
	AUTO(auto_free) char *got = place_resolve(path, &above, &e);

	assert_non_null(got);
	assert_string_equal(got, want);
	assert_int_equal(above, strlen(top));
}

static void
test_what_is_missing_is_put_behind_what_exists(void **state)
{
	AUTO(auto_free) char *deep = xasprintf("%s//a/b/", top);

	(void)state;
	expect_place(".", "");
	expect_place("./", "");
	expect_place("a", "/a");
	expect_place("./a//b/", "/a//b");
	expect_place(".a/b", "/.a/b");
	expect_place(deep, "/a/b");
	expect_place(top, "");
}

static void
test_the_root_has_places_too(void **state)
{
	size_t above;
	struct err e;
	AUTO(auto_free) char *root = place_resolve("/", &above, &e);
	AUTO(auto_free) char *below = place_resolve("/not-there/x", &above, &e);

	(void)state;
	assert_string_equal(root, "/");
	assert_string_equal(below, "/not-there/x");
	assert_int_equal(above, 1);
}

static void
test_what_is_in_the_way_is_named(void **state)
{
	static const struct {
		const char *path, *said;
	} rows[] = {{"file", "is no directory"}, {"file/a", "Not a directory"},
	    {"link", "leads nowhere"}, {"link/a", "leads nowhere"}};
	enum place_state place;
	struct err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(
		    place_check(rows[i].path, &place, &e), ERR_INVAL);
		assert_non_null(strstr(e.msg, rows[i].said));
	}
}

/* As somebody else than whose directory it is. */
static int
check_as_nobody(const char *path)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		enum place_state place;
		struct err e;

		if (geteuid() == 0 && setuid(NOBODY) == -1)
			_exit(2);
		_exit(place_check(path, &place, &e) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void
test_who_may_not_write_there_may_not_make_it(void **state)
{
	enum place_state place;
	struct err e;

	(void)state;
	assert_int_equal(place_check("a/b", &place, &e), 0);
	assert_int_equal(place, PLACE_IS_MISSING);
	assert_int_equal(place_check(top, &place, &e), 0);
	assert_int_equal(place, PLACE_IS_THERE);
	assert_int_equal(check_as_nobody("/not-there/x"), 1);
	assert_int_equal(chmod(top, 0555), 0);
	assert_int_equal(check_as_nobody("a/b"), 1);
	assert_int_equal(check_as_nobody(top), 1);
	assert_int_equal(chmod(top, 0777), 0);
	assert_int_equal(check_as_nobody("a/b"), 0);
	assert_false(access("a", F_OK) == 0);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_what_is_missing_is_put_behind_what_exists),
	    cmocka_unit_test(test_the_root_has_places_too),
	    cmocka_unit_test(test_what_is_in_the_way_is_named),
	    cmocka_unit_test(test_who_may_not_write_there_may_not_make_it),
	};

	return cmocka_run_group_tests_name(
	    "place", tests, make_top, remove_top);
}

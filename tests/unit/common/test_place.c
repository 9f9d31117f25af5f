#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/place.h"
#include "common/xmalloc.h"
#include "tests/unit/test.h"

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

TEST(what_is_missing_is_put_behind_what_exists)
{
	AUTO(auto_free) char *deep = xasprintf("%s//a/b/", top);

	expect_place(".", "");
	expect_place("./", "");
	expect_place("a", "/a");
	expect_place("./a//b/", "/a//b");
	expect_place(".a/b", "/.a/b");
	expect_place(deep, "/a/b");
	expect_place(top, "");
}

TEST(the_root_has_places_too)
{
	size_t above;
	struct err e;
	AUTO(auto_free) char *root = place_resolve("/", &above, &e);
	AUTO(auto_free) char *below = place_resolve("/not-there/x", &above, &e);

	assert_string_equal(root, "/");
	assert_string_equal(below, "/not-there/x");
	assert_int_equal(above, 1);
}

TEST(what_is_in_the_way_is_named)
{
	static const struct {
		const char *path, *said;
	} rows[] = {{"file", "is no directory"}, {"file/a", "Not a directory"},
	    {"link", "leads nowhere"}, {"link/a", "leads nowhere"}};
	enum place_state place;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(
		    place_check(rows[i].path, &place, &e), ERR_INVAL);
		assert_non_null(strstr(e.msg, rows[i].said));
	}
}

/* As somebody else than whose directory it is: 0, 1 for no; 2 where what it
 * says has not the words said. */
static int
ask_as_nobody(int (*ask)(const char *path, struct err *e), const char *path,
    const char *said)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct err e;

		if (geteuid() == 0 && setuid(NOBODY) == -1)
			_exit(3);
		if (ask(path, &e) == 0)
			_exit(0);
		_exit(
		    e.code == ERR_INVAL && strstr(e.msg, said) != NULL ? 1 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int
ask_place(const char *path, struct err *e)
{
	enum place_state place;

	return place_check(path, &place, e);
}

static int
check_as_nobody(const char *path)
{
	return ask_as_nobody(ask_place, path, "");
}

TEST(who_may_not_write_there_may_not_make_it)
{
	enum place_state place;
	struct err e;

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

TEST(a_directory_that_is_shut_is_named)
{
	AUTO(auto_free) char *shut = xasprintf("%s/shut", top);
	AUTO(auto_free) char *within = xasprintf("%s/in/x", shut);
	AUTO(auto_free) char *alias = xasprintf("%s/alias", top);
	AUTO(auto_free) char *by_link = xasprintf("%s/x", alias);
	AUTO(auto_free) char *target = xasprintf("%s/in", shut);
	AUTO(auto_free) char *said = xasprintf("pass through %s", shut);
	struct err e;

	if (geteuid() != 0)
		skip(); /* what is one's own can be shut for others alone */
	assert_int_equal(mkdir(shut, 0700), 0);
	assert_int_equal(mkdir(target, 0755), 0);
	assert_int_equal(symlink("shut/in", alias), 0);
	assert_int_equal(place_check_way(within, &e), 0);
	assert_int_equal(ask_as_nobody(place_check_way, within, said), 1);
	assert_int_equal(ask_as_nobody(ask_place, within, said), 1);
	assert_int_equal(ask_as_nobody(place_check_way, "shut/in", "shut"), 1);
	assert_int_equal(ask_as_nobody(place_check_way, by_link, alias), 1);
	/* What it is itself does not matter, nor what is not there. */
	assert_int_equal(ask_as_nobody(place_check_way, shut, ""), 0);
	assert_int_equal(ask_as_nobody(place_check_way, "none/x", ""), 0);
	assert_int_equal(ask_as_nobody(place_check_way, "", ""), 0);
	assert_int_equal(chmod(shut, 0711), 0);
	assert_int_equal(ask_as_nobody(place_check_way, within, ""), 0);
	assert_int_equal(unlink(alias), 0);
	assert_int_equal(rmdir(target) | rmdir(shut), 0);
}

TEST(what_lies_beside_the_program_is_found_before_what_is_installed)
{
	AUTO(auto_free) char *self = realpath("/proc/self/exe", NULL);
	AUTO(auto_free) char *beside = NULL;
	AUTO(auto_free) char *installed = NULL;

	assert_non_null(self);
	beside = place_find(strrchr(self, '/') + 1, "/dev/null");
	assert_string_equal(beside, self);
	installed = place_find("no-such-file", "/dev/null");
	assert_string_equal(installed, "/dev/null");
	assert_null(place_find("no-such-file", "/no/such/file"));
}

int
main(void)
{
	return tests_run(NULL, NULL, make_top, remove_top);
}

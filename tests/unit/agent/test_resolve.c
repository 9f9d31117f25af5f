#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "images/agent/resolve.h"
#include "images/agent/specdir.h"
#include "tests/unit/test.h"

static char top[] = "/tmp/test-resolve-XXXXXX";
static int root;

static void
make_file(const char *path)
{
	int fd = openat(root, path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_int_not_equal(fd, -1);
	assert_int_equal(write(fd, "x", 1), 1);
	(void)close(fd);
}

static int
setup(void **state)
{
	(void)state;
	if (mkdtemp(top) == NULL)
		return -1;
	root = open(top, O_RDONLY | O_DIRECTORY);
	if (root == -1 || mkdirat(root, "d", 0700) != 0 ||
	    mkdirat(root, "d/e", 0700) != 0)
		return -1;
	make_file("f");
	make_file("d/e/g");
	return symlinkat("d", root, "link") | symlinkat("f", root, "flink") |
	    symlinkat("/etc", root, "abs") | mkfifoat(root, "fifo", 0600);
}

static int
teardown(void **state)
{
	static const char *const names[] = {
	    "f", "d/e/g", "link", "flink", "abs", "fifo"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		(void)unlinkat(root, names[i], 0);
	(void)unlinkat(root, "d/e", AT_REMOVEDIR);
	(void)unlinkat(root, "d", AT_REMOVEDIR);
	(void)close(root);
	return rmdir(top);
}

static const struct {
	const char *path;
	int error; /* 0: opens */
} paths[] = {
    {"f", 0},
    {"d/e/g", 0},
    {"d//e/./g", 0},
    {"./f", 0},
    {"", ENOENT},
    {"nope", ENOENT},
    {"d/nope", ENOENT},
    {"/etc/passwd", EXDEV},
    {"..", EXDEV},
    {"../x", EXDEV},
    {"link/e/g", ELOOP},
    {"flink", ELOOP},
    {"abs/passwd", ELOOP},
};

static void
check_way(int (*way)(int, const char *, int))
{
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		int fd;

		errno = 0;
		fd = way(root, paths[i].path, O_RDONLY);
		if (paths[i].error == 0) {
			assert_int_not_equal(fd, -1);
			(void)close(fd);
		} else {
			assert_int_equal(fd, -1);
			assert_int_equal(errno, paths[i].error);
		}
	}
}

TEST(both_ways_agree_on_every_path)
{
	check_way(resolve_at);
	check_way(resolve_by_steps);
}

TEST(the_second_way_refuses_a_name_too_long)
{
	char name[400];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(resolve_by_steps(root, name, O_RDONLY), -1);
	assert_int_equal(errno, ENAMETOOLONG);
}

TEST(only_a_regular_file_is_opened_to_read)
{
	static const struct {
		const char *path;
		int error;
	} bad[] = {{"d", EISDIR}, {"flink", ELOOP}, {"fifo", EINVAL},
	    {"nope", ENOENT}};
	int fd = resolve_regular(root, "d/e/g");
	char byte;

	assert_int_not_equal(fd, -1);
	assert_int_equal(read(fd, &byte, 1), 1);
	(void)close(fd);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(resolve_regular(root, bad[i].path), -1);
		assert_int_equal(errno, bad[i].error);
	}
}

TEST(a_root_is_an_absolute_directory)
{
	int fd = resolve_root(top);

	assert_int_not_equal(fd, -1);
	(void)close(fd);
	fd = resolve_root("/");
	assert_int_not_equal(fd, -1);
	(void)close(fd);
	assert_int_equal(resolve_root("tmp"), -1);
	assert_int_equal(resolve_root("/nope"), -1);
	assert_int_equal(resolve_root("/etc/passwd"), -1);
}

TEST(a_runs_directory_is_removed_without_touching_what_it_links_to)
{
	struct runspec spec = {.user = RUNSPEC_USER_ROOT};
	struct uuid run;
	char name[128], text[UUID_TEXT_LEN + 1];
	uint32_t done = 0;
	struct stat st;
	struct err e;
	int dir;

	uuid_random(&run);
	uuid_format(&run, text);
	(void)snprintf(name, sizeof(name), RUNSPEC_DIR_PREFIX "%s", text);
	assert_int_equal(specdir_make(&spec, &run, &e), 0);
	assert_int_equal(specdir_make(&spec, &run, &e), ERR_SYS);
	dir = open(name, O_RDONLY | O_DIRECTORY);
	assert_int_not_equal(dir, -1);
	assert_int_equal(symlinkat(top, dir, "out"), 0);
	assert_int_equal(mkdirat(dir, "in", 0700), 0);
	(void)close(dir);
	assert_true(specdir_remove(&run, &done));
	assert_int_equal(lstat(name, &st), -1);
	assert_int_equal(fstatat(root, "d/e/g", &st, 0), 0);
}

int
main(void)
{
	return tests_run(NULL, NULL, setup, teardown);
}

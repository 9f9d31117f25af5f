#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/fd.h"
#include "common/xmalloc.h"
#include "supervisor/master/instance.h"
#include "tests/unit/test.h"

static char dir[64];
static int dir_fd;
static char id[INSTANCE_ID_LEN + 1];
static struct err e;

static int
setup(void **state)
{
	(void)state;
	(void)snprintf(dir, sizeof(dir), "/tmp/instance-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir_fd >= 0);
	memset(id, 0, sizeof(id));
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	(void)unlinkat(dir_fd, "instance", 0);
	(void)unlinkat(dir_fd, "instance.new", 0);
	(void)close(dir_fd);
	return rmdir(dir);
}

static int
open_as(enum instance_takeover takeover)
{
	return instance_open(dir_fd, dir, takeover, id, &e);
}

static char *
content(void)
{
	AUTO(auto_free) char *path = xasprintf("%s/instance", dir);
	char *text;
	size_t n;

	assert_int_equal(fd_read_file(path, 8192, &text, &n, &e), 0);
	return text;
}

static void
put(const char *text)
{
	int fd;

	(void)unlinkat(dir_fd, "instance", 0);
	fd = openat(dir_fd, "instance", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text), &e), 0);
	(void)close(fd);
}

/* As cp does: the same bytes in another file.  The old one stays until then,
 * so that its number is not given again. */
static void
copy_over(void)
{
	AUTO(auto_free) char *text = content();

	assert_int_equal(renameat(dir_fd, "instance", dir_fd, "kept"), 0);
	put(text);
	assert_int_equal(unlinkat(dir_fd, "kept", 0), 0);
}

TEST(it_is_made_once)
{
	char first[INSTANCE_ID_LEN + 1];

	assert_int_equal(open_as(INSTANCE_ASK), 0);
	assert_int_equal(strlen(id), INSTANCE_ID_LEN);
	memcpy(first, id, sizeof(first));
	assert_int_equal(open_as(INSTANCE_ASK), 0);
	assert_string_equal(id, first);
	assert_int_equal(open_as(INSTANCE_FORGET), 0);
	assert_string_equal(id, first);
}

TEST(a_copy_asks_and_says_where_it_came_from)
{
	assert_int_equal(open_as(INSTANCE_ASK), 0);
	copy_over();
	assert_int_equal(open_as(INSTANCE_ASK), ERR_POLICY);
	assert_non_null(strstr(e.msg, "--adopt"));
	assert_non_null(strstr(e.msg, "--forget"));
	assert_non_null(strstr(e.msg, dir));
}

TEST(a_copy_that_is_adopted_keeps_the_id)
{
	char first[INSTANCE_ID_LEN + 1];

	assert_int_equal(open_as(INSTANCE_ASK), 0);
	memcpy(first, id, sizeof(first));
	copy_over();
	assert_int_equal(open_as(INSTANCE_ADOPT), 0);
	assert_string_equal(id, first);
	assert_int_equal(open_as(INSTANCE_ASK), 0);
	assert_string_equal(id, first);
}

TEST(a_copy_that_forgets_is_another)
{
	char first[INSTANCE_ID_LEN + 1];

	assert_int_equal(open_as(INSTANCE_ASK), 0);
	memcpy(first, id, sizeof(first));
	copy_over();
	assert_int_equal(open_as(INSTANCE_FORGET), 0);
	assert_string_not_equal(id, first);
	memcpy(first, id, sizeof(first));
	assert_int_equal(open_as(INSTANCE_ASK), 0);
	assert_string_equal(id, first);
}

TEST(what_is_no_such_file_is_refused)
{
	static const char *const bad[] = {"", "id=\n",
	    "id=xyz\nmark=1\npath=/\n",
	    "id=0123456789abcdef0123456789abcdef\npath=/\n",
	    "id=0123456789ABCDEF0123456789ABCDEF\nmark=1\npath=/\n"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		put(bad[i]);
		assert_int_equal(open_as(INSTANCE_ADOPT), ERR_INVAL);
	}
}

TEST(a_file_that_others_may_write_is_refused)
{
	assert_int_equal(open_as(INSTANCE_ASK), 0);
	assert_int_equal(fchmodat(dir_fd, "instance", 0666, 0), 0);
	assert_int_equal(open_as(INSTANCE_ASK), ERR_INVAL);
	assert_non_null(strstr(e.msg, "chmod"));
}

TEST(a_link_in_its_place_is_not_followed)
{
	assert_int_equal(symlinkat("/etc/passwd", dir_fd, "instance"), 0);
	assert_int_equal(open_as(INSTANCE_ADOPT), ERR_SYS);
}

TEST(who_only_reads_makes_none)
{
	char first[INSTANCE_ID_LEN + 1];

	assert_int_equal(instance_read(dir_fd, dir, first, &e), ERR_NOTFOUND);
	assert_int_equal(open_as(INSTANCE_ASK), 0);
	assert_int_equal(instance_read(dir_fd, dir, first, &e), 0);
	assert_string_equal(id, first);
}

TEST_MAIN(setup, teardown)

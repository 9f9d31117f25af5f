#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "supervisor/front/key.h"
#include "tests/unit/test.h"

static char dir[64];
static char path[100];

static int
setup(void **state)
{
	(void)state;
	(void)snprintf(dir, sizeof(dir), "/tmp/test-key-XXXXXX");
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/session.key", dir);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	(void)unlink(path);
	return rmdir(dir); /* nothing else may be left in it */
}

static void
write_file(const char *bytes, size_t n, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(write(fd, bytes, n), n);
	assert_int_equal(close(fd), 0);
}

TEST(a_key_is_made_once_and_kept)
{
	uint8_t first[KEY_BYTES], again[KEY_BYTES], zero[KEY_BYTES] = {0};
	struct stat st;
	struct err e;

	assert_int_equal(key_load(dir, first, &e), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, KEY_BYTES);
	assert_memory_not_equal(first, zero, KEY_BYTES);
	assert_int_equal(key_load(dir, again, &e), 0);
	assert_memory_equal(first, again, KEY_BYTES);
}

TEST(what_a_crash_left_behind_is_no_hindrance)
{
	uint8_t key[KEY_BYTES];
	char tmp[120];
	struct err e;
	int fd;

	(void)snprintf(tmp, sizeof(tmp), "%s.new", path);
	fd = open(tmp, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(key_load(dir, key, &e), 0);
}

TEST(a_key_that_others_can_read_is_refused)
{
	uint8_t key[KEY_BYTES];
	char bytes[KEY_BYTES] = {1};
	struct err e;

	write_file(bytes, sizeof(bytes), 0640);
	assert_int_equal(key_load(dir, key, &e), ERR_INVAL);
	assert_non_null(strstr(e.msg, "0600"));
}

TEST(a_file_of_another_length_is_refused)
{
	uint8_t key[KEY_BYTES];
	struct err e;

	write_file("short", 5, 0600);
	assert_int_equal(key_load(dir, key, &e), ERR_INVAL);
	write_file("", 0, 0600);
	assert_int_equal(key_load(dir, key, &e), ERR_INVAL);
}

TEST(a_link_in_its_place_is_refused)
{
	uint8_t key[KEY_BYTES];
	struct err e;

	assert_int_equal(symlink("/dev/zero", path), 0);
	assert_int_equal(key_load(dir, key, &e), ERR_SYS);
}

TEST(a_directory_that_is_not_there_is_an_error)
{
	uint8_t key[KEY_BYTES];
	struct err e;

	assert_int_equal(key_load("/nonexistent/dir", key, &e), ERR_SYS);
}

TEST_MAIN(setup, teardown)

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "common/fd.h"
#include "common/xmalloc.h"
#include "tests/unit/common/forked.h"
#include "tests/unit/test.h"

static char dir[] = "/tmp/test_fd.XXXXXX";

static int
make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) != NULL ? 0 : -1;
}

static int
remove_dir(void **state)
{
	AUTO(auto_free) char *command = xasprintf("rm -rf '%s'", dir);

	(void)state;
	return system(command);
}

static char *
write_file(const char *name, const void *p, size_t n)
{
	char *path = xasprintf("%s/%s", dir, name);
	AUTO(auto_close)
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct err e;

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, p, n, &e), 0);
	return path;
}

TEST(nonblocking_is_set)
{
	struct err e;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(fd_set_nonblock(fds[0], &e), 0);
	assert_true((fcntl(fds[0], F_GETFL) & O_NONBLOCK) != 0);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(fd_set_nonblock(fds[0], &e), ERR_SYS);
}

static void
close_all(void)
{
	int a = open("/dev/null", O_RDONLY), b = dup2(a, 200);

	fd_close_from(3);
	if (fcntl(a, F_GETFD) != -1 || fcntl(b, F_GETFD) != -1)
		_exit(1);
	if (fcntl(2, F_GETFD) == -1)
		_exit(2);
}

TEST(all_from_a_number_on_are_closed)
{
	struct forked f;

	forked_run(&f, close_all);
	assert_int_equal(f.status, 0);
}

TEST(reading_stops_only_at_the_end_of_the_file)
{
	AUTO(auto_free) char *path = write_file("pread", "0123456789", 10);
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char got[16];
	struct err e;

	assert_int_equal(fd_pread_all(fd, got, 4, 3, &e), 4);
	assert_memory_equal(got, "3456", 4);
	assert_int_equal(fd_pread_all(fd, got, sizeof(got), 5, &e), 5);
	assert_int_equal(fd_pread_all(fd, got, sizeof(got), 10, &e), 0);
	assert_int_equal(fd_pread_all(-1, got, 1, 0, &e), -1);
	assert_int_equal(e.code, ERR_SYS);
	assert_int_equal(fd_pread_all(fd, got, 1, UINT64_MAX, &e), -1);
	assert_int_equal(e.code, ERR_INVAL);
}

TEST(a_failed_write_says_so)
{
	AUTO(auto_close) int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct err e;

	assert_int_equal(fd_write_all(fd, "x", 1, &e), ERR_SYS);
	assert_non_null(strstr(e.msg, "No space left"));
}

TEST(a_sealed_file_is_read_back_and_cannot_change)
{
	AUTO(auto_free) uint8_t *got = NULL;
	AUTO(auto_close) int fd = -1;
	size_t len = 0;
	struct err e;

	fd = fd_memfd_sealed("spec", "abc", 3, &e);
	assert_true(fd >= 0);
	assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(ftruncate(fd, 1), -1);
	assert_int_equal(ftruncate(fd, 10), -1);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
	assert_int_equal(fd_read_sealed(fd, 3, &got, &len, &e), 0);
	assert_int_equal(len, 3);
	assert_memory_equal(got, "abc", 3);
}

TEST(an_empty_sealed_file_is_fine)
{
	AUTO(auto_free) uint8_t *got = NULL;
	AUTO(auto_close) int fd = -1;
	size_t len = 9;
	struct err e;

	fd = fd_memfd_sealed("empty", NULL, 0, &e);
	assert_true(fd >= 0);
	assert_int_equal(fd_read_sealed(fd, 0, &got, &len, &e), 0);
	assert_int_equal(len, 0);
}

TEST(a_peer_must_send_a_sealed_file_of_a_fair_size)
{
	AUTO(auto_free) char *path = write_file("plain", "abc", 3);
	AUTO(auto_close) int plain = open(path, O_RDONLY | O_CLOEXEC);
	AUTO(auto_close)
	int half = memfd_create("half", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	AUTO(auto_close) int large = -1;
	uint8_t *got = NULL;
	size_t len = 0;
	struct err e;

	assert_int_equal(fd_read_sealed(plain, 10, &got, &len, &e), ERR_PROTO);
	assert_int_equal(fcntl(half, F_ADD_SEALS, F_SEAL_WRITE), 0);
	assert_int_equal(fd_read_sealed(half, 10, &got, &len, &e), ERR_PROTO);
	assert_int_equal(fd_read_sealed(-1, 10, &got, &len, &e), ERR_PROTO);
	large = fd_memfd_sealed("large", "0123456789", 10, &e);
	assert_int_equal(fd_read_sealed(large, 9, &got, &len, &e), ERR_LIMIT);
	assert_null(got);
}

TEST(a_file_is_read_whole_with_a_nul_behind)
{
	AUTO(auto_free) char *path = write_file("whole", "a\0b", 3);
	AUTO(auto_free) char *got = NULL;
	AUTO(auto_free) char *proc = NULL;
	size_t len = 0;
	struct err e;

	assert_int_equal(fd_read_file(path, 3, &got, &len, &e), 0);
	assert_int_equal(len, 3);
	assert_memory_equal(got, "a\0b\0", 4);
	/* Says 0 bytes of itself. */
	assert_int_equal(
	    fd_read_file("/proc/self/status", 1 << 16, &proc, &len, &e), 0);
	assert_non_null(strstr(proc, "Pid:"));
	assert_int_equal(strlen(proc), len);
}

TEST(a_file_over_the_limit_or_none_is_refused)
{
	AUTO(auto_free) char *path = write_file("long", "0123456789", 10);
	AUTO(auto_free) char *fifo = xasprintf("%s/fifo", dir);
	char *got = NULL;
	size_t len = 0;
	struct err e;

	assert_int_equal(fd_read_file(path, 9, &got, &len, &e), ERR_LIMIT);
	assert_int_equal(
	    fd_read_file("/proc/self/status", 20, &got, &len, &e), ERR_LIMIT);
	assert_int_equal(
	    fd_read_file("/nowhere/x", 9, &got, &len, &e), ERR_NOTFOUND);
	assert_non_null(strstr(e.msg, "/nowhere/x"));
	assert_int_equal(fd_read_file(dir, 9, &got, &len, &e), ERR_INVAL);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(fd_read_file(fifo, 9, &got, &len, &e), ERR_INVAL);
	assert_null(got);
}

TEST(directories_are_made_with_all_above_them)
{
	AUTO(auto_free) char *path = xasprintf("%s/a//b/c/", dir);
	struct stat st;
	struct err e;

	(void)umask(022);
	assert_int_equal(fd_mkdir_all(path, 0700, &e), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(fd_mkdir_all(path, 0700, &e), 0); /* again */
	assert_int_equal(fd_mkdir_all("/", 0700, &e), 0);
}

TEST(a_file_in_the_way_of_a_directory_is_named)
{
	AUTO(auto_free) char *file = write_file("file", "", 0);
	AUTO(auto_free) char *below = xasprintf("%s/x", file);
	struct err e;

	assert_int_equal(fd_mkdir_all(file, 0700, &e), ERR_SYS);
	assert_non_null(strstr(e.msg, file));
	assert_int_equal(fd_mkdir_all(below, 0700, &e), ERR_SYS);
	assert_non_null(strstr(e.msg, "Not a directory"));
	assert_int_equal(fd_mkdir_all("", 0700, &e), ERR_INVAL);
}

TEST(a_lock_that_is_about_to_be_free_is_waited_for)
{
	AUTO(auto_free) char *path = write_file("lock", "", 0);
	const struct timespec while_it_ends = {.tv_nsec = 100000000};
	AUTO(auto_close) int first = open(path, O_RDONLY | O_CLOEXEC);
	AUTO(auto_close) int second = open(path, O_RDONLY | O_CLOEXEC);
	pid_t holder;

	assert_int_equal(fd_lock(first, 0), 0);
	assert_int_equal(fd_lock(second, 0), -1);
	assert_int_equal(errno, EWOULDBLOCK);
	holder = fork();
	assert_true(holder >= 0);
	if (holder == 0) {
		(void)nanosleep(&while_it_ends, NULL);
		_exit(0);
	}
	auto_close(&first); /* the child has it still */
	first = -1;
	assert_int_equal(fd_lock(second, 60000), 0);
	assert_int_equal(waitpid(holder, NULL, 0), holder);
}

int
main(void)
{
	return tests_run(NULL, NULL, make_dir, remove_dir);
}

#include "tests/unit/store/fixture.h"

#include "supervisor/store/lock.h"

/* A process that holds the lock; returns its pid once it does. */
static pid_t
start_owner(const char *dir)
{
	int fds[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct err e;

		(void)close(fds[0]);
		if (lock_take(dir, &e) < 0 || write(fds[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			(void)pause();
	}
	(void)close(fds[1]);
	assert_int_equal(read(fds[0], &c, 1), 1);
	(void)close(fds[0]);
	return pid;
}

static void
test_the_owner_is_named_by_its_pid(void **state)
{
	struct fixture *f = *state;
	pid_t pid = start_owner(f->dir);
	AUTO(auto_free)
	char *want = xasprintf(
	    "data directory %s is in use by another mcp-sandboxd (pid %d)",
	    f->dir, (int)pid);

	assert_int_equal(lock_take(f->dir, &f->err), ERR_CONFLICT);
	assert_string_equal(f->err.msg, want);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void
test_the_lock_is_free_once_its_owner_was_killed(void **state)
{
	struct fixture *f = *state;
	pid_t pid = start_owner(f->dir);
	int fd;

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	fd = lock_take(f->dir, &f->err);
	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
}

static void
test_a_shorter_pid_leaves_no_digits_of_a_longer_one(void **state)
{
	struct fixture *f = *state;
	AUTO(auto_free) char *path = xasprintf("%s/" LOCK_FILE, f->dir);
	AUTO(auto_free) char *want = xasprintf("%d\n", (int)getpid());
	AUTO(auto_free) char *text = NULL;
	size_t n;
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(fd_write_all(fd, "123456789012345\n", 16, &f->err), 0);
	assert_int_equal(close(fd), 0);
	fd = lock_take(f->dir, &f->err);
	assert_true(fd >= 0);
	assert_int_equal(fd_read_file(path, 100, &text, &n, &f->err), 0);
	assert_string_equal(text, want);
	assert_int_equal(close(fd), 0);
}

static void
test_a_lock_file_that_is_a_link_is_refused(void **state)
{
	struct fixture *f = *state;
	AUTO(auto_free) char *path = xasprintf("%s/" LOCK_FILE, f->dir);

	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(lock_take(f->dir, &f->err), ERR_SYS);
}

int
main(void)
{
#define TEST(t)                                                                \
	cmocka_unit_test_setup_teardown(                                       \
	    t, fixture_setup_closed, fixture_teardown)
	const struct CMUnitTest tests[] = {
	    TEST(test_the_owner_is_named_by_its_pid),
	    TEST(test_the_lock_is_free_once_its_owner_was_killed),
	    TEST(test_a_shorter_pid_leaves_no_digits_of_a_longer_one),
	    TEST(test_a_lock_file_that_is_a_link_is_refused),
	};

	return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}

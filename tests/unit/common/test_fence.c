#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/fence.h"
#include "tests/unit/common/forked.h"
#include "tests/unit/test.h"

#define ABI_TRUNCATE 3
#define ABI_NET 4
#define ABI_SCOPED 6

static char dir[64], own[96], other[96], given[96];

static int
setup(void **state)
{
	int fd;

	(void)state;
	(void)snprintf(dir, sizeof(dir), "/tmp/test-fence-XXXXXX");
	assert_non_null(mkdtemp(dir));
	(void)snprintf(own, sizeof(own), "%s/own", dir);
	(void)snprintf(other, sizeof(other), "%s/other", dir);
	(void)snprintf(given, sizeof(given), "%s/given", dir);
	assert_int_equal(mkdir(own, 0700), 0);
	assert_int_equal(mkdir(other, 0700), 0);
	fd = open(given, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, "abc", 3), 3);
	(void)close(fd);
	return 0;
}

static int
teardown(void **state)
{
	char command[128];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command);
}

static void (*fenced)(void);

static void
raise_and_run(void)
{
	const struct fence_gate gates[] = {{own, FENCE_OWN},
	    {given, FENCE_READ}, {"/no/such/file", FENCE_READ}};
	struct err e;

	NEED(fence_raise(gates, ARRAY_LEN(gates), &e) == 0);
	fenced();
}

static void
in_fence(void (*body)(void))
{
	if (fence_version() == FENCE_NONE)
		skip();
	fenced = body;
	assert_int_equal(forked_status(raise_and_run), 0);
}

static const char *
in(const char *where, const char *name)
{
	static char paths[4][160];
	static size_t next;
	char *path = paths[next++ % ARRAY_LEN(paths)];

	(void)snprintf(path, sizeof(paths[0]), "%s/%s", where, name);
	return path;
}

static bool
is_shut(int rc)
{
	return rc == -1 && (errno == EACCES || errno == EXDEV);
}

static void
use_own(void)
{
	char self[32];
	int fd;

	NEED(mkdir(in(own, "a"), 0700) == 0 && mkdir(in(own, "b"), 0700) == 0);
	fd = open(in(own, "a/file"), O_RDWR | O_CREAT | O_EXCL, 0600);
	NEED(fd >= 0 && write(fd, "x", 1) == 1 && ftruncate(fd, 0) == 0);
	NEED(rename(in(own, "a/file"), in(own, "b/file")) == 0);
	NEED(link(in(own, "b/file"), in(own, "a/again")) == 0);
	NEED(unlink(in(own, "b/file")) == 0 && rmdir(in(own, "b")) == 0);
	fd = open(own, O_TMPFILE | O_RDWR, 0600);
	NEED(fd >= 0);
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	NEED(linkat(AT_FDCWD, self, AT_FDCWD, in(own, "a/named"),
		 AT_SYMLINK_FOLLOW) == 0);
	NEED(open(given, O_RDONLY) >= 0);
	NEED(open("/dev/null", O_RDWR) >= 0);
}

TEST(its_own_directory_is_open)
{
	in_fence(use_own);
}

static void
try_others(void)
{
	NEED(is_shut(open("/etc/passwd", O_RDONLY)));
	NEED(is_shut(open("/tmp", O_RDONLY | O_DIRECTORY)));
	NEED(is_shut(open(in(other, "new"), O_WRONLY | O_CREAT, 0600)));
	NEED(is_shut(open(given, O_WRONLY)));
	NEED(is_shut(mkdir(in(dir, "new"), 0700)));
	NEED(is_shut(rename(other, in(own, "taken"))));
	NEED(is_shut(rename(own, in(dir, "elsewhere"))));
	NEED(is_shut(link(given, in(own, "linked"))));
	NEED(is_shut(unlink(given)) && is_shut(rmdir(other)));
	if (fence_version() >= ABI_TRUNCATE)
		NEED(is_shut(truncate(given, 0)));
}

TEST(nothing_else_is)
{
	in_fence(try_others);
}

static void
try_odd_files(void)
{
	char *argv[] = {NULL, NULL};
	int fd = open(in(own, "program"), O_WRONLY | O_CREAT, 0700);

	NEED(fd >= 0 && write(fd, "#!/bin/true\n", 12) == 12);
	(void)close(fd);
	NEED(is_shut(symlink("/etc", in(own, "way-out"))));
	NEED(is_shut(mkfifo(in(own, "fifo"), 0600)));
	NEED(is_shut(execve("/bin/true", argv, argv)));
	NEED(is_shut(execve(in(own, "program"), argv, argv)));
}

TEST(nothing_odd_is_made_and_nothing_executed)
{
	in_fence(try_odd_files);
}

static void
try_network(void)
{
	struct sockaddr_in in4 = {.sin_family = AF_INET,
	    .sin_port = htons(1),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fence_version() < ABI_NET)
		return;
	NEED(is_shut(connect(fd, (struct sockaddr *)&in4, sizeof(in4))));
	in4.sin_port = htons(54321);
	NEED(is_shut(bind(fd, (struct sockaddr *)&in4, sizeof(in4))));
}

TEST(no_tcp_is_made)
{
	in_fence(try_network);
}

/* Nobody listens on either: what is let through is refused by nobody there. */
static void
try_one_port(void)
{
	const struct fence_gate gate = {"1", FENCE_TCP_PORT};
	struct sockaddr_in in4 = {.sin_family = AF_INET,
	    .sin_port = htons(1),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct err e;

	NEED(fence_raise(&gate, 1, &e) == 0);
	if (fence_version() < ABI_NET)
		return;
	NEED(connect(fd, (struct sockaddr *)&in4, sizeof(in4)) == -1 &&
	    errno == ECONNREFUSED);
	in4.sin_port = htons(2);
	NEED(is_shut(connect(fd, (struct sockaddr *)&in4, sizeof(in4))));
}

TEST(one_port_is_open_and_no_other)
{
	if (fence_version() == FENCE_NONE)
		skip();
	assert_int_equal(forked_status(try_one_port), 0);
}

static void *
say_yes(void *arg)
{
	*(bool *)arg = true;
	return NULL;
}

static void
try_signals(void)
{
	bool said = false;
	pthread_t thread;

	NEED(pthread_create(&thread, NULL, say_yes, &said) == 0);
	NEED(pthread_join(thread, NULL) == 0 && said);
	NEED(kill(getpid(), 0) == 0);
	if (fence_version() >= ABI_SCOPED)
		NEED(kill(getppid(), 0) == -1 && errno == EPERM);
}

TEST(no_process_outside_is_signalled)
{
	in_fence(try_signals);
}

TEST(a_directory_of_its_own_must_be_there)
{
	const struct fence_gate gates[] = {{"/no/such/directory", FENCE_OWN}};
	struct err e;

	if (fence_version() == FENCE_NONE)
		skip();
	assert_int_equal(fence_raise(gates, 1, &e), ERR_SYS);
	assert_non_null(strstr(e.msg, "/no/such/directory"));
}

TEST_MAIN(setup, teardown)

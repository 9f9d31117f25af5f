#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "common/clock.h"
#include "images/agent/layer_count.h"
#include "tests/unit/test.h"

#define ANY UINT64_MAX

static char dir[64];
static struct layer_count count;

static int
setup(void **state)
{
	(void)state;
	(void)snprintf(dir, sizeof(dir), "/tmp/agent-layer-XXXXXX");
	assert_non_null(mkdtemp(dir));
	layer_count_init(&count);
	return 0;
}

static int
teardown(void **state)
{
	char command[96];

	(void)state;
	layer_count_drop(&count);
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command);
}

static void
sh(const char *script)
{
	char command[1024];

	(void)snprintf(command, sizeof(command), "cd '%s' && %s", dir, script);
	assert_int_equal(system(command), 0);
}

static int64_t
wall_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static void
run(int64_t since, uint64_t stop_bytes, uint64_t stop_inodes)
{
	layer_count_begin(&count, dir, since, stop_bytes, stop_inodes);
	while (!layer_count_slice(&count, clock_mono_us() + 100))
		continue;
	assert_false(layer_count_is_running(&count));
}

TEST(blocks_and_names_are_added_up)
{
	sh("mkdir -p a/b && head -c 100000 /dev/zero >a/b/x && touch y");
	run(0, ANY, ANY);
	assert_int_equal(count.inodes, 4);
	assert_in_range(count.bytes, 100000, 150000);
}

TEST(what_is_older_is_not_ours)
{
	int64_t since;

	sh("head -c 100000 /dev/zero >old && touch changed && sleep 0.1");
	since = wall_ns() - 50000000;
	sh("touch -d 1990-01-01 changed new");
	run(since, ANY, ANY);
	assert_int_equal(count.inodes, 2); /* whatever times they claim */
	assert_true(count.bytes < 100000);
}

TEST(a_file_of_many_names_is_there_once)
{
	sh("head -c 1000000 /dev/zero >x && ln x y && ln x z && ln x w");
	run(0, ANY, ANY);
	assert_int_equal(count.inodes, 4);
	assert_in_range(count.bytes, 999000, 1100000);
}

TEST(a_hole_is_nothing)
{
	sh("truncate -s 10G x");
	run(0, ANY, ANY);
	assert_true(count.bytes < 1000000);
}

/* Deeper than any path that the kernel takes. */
TEST(depth_hides_nothing)
{
	char name[201] = {0};
	int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	memset(name, 'd', sizeof(name) - 1);
	for (int i = 0; i < 100; i++) {
		int next;

		assert_int_equal(mkdirat(at, name, 0755), 0);
		next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		(void)close(at);
		at = next;
	}
	(void)close(at);
	run(0, ANY, ANY);
	assert_int_equal(count.inodes, 100);
}

TEST(a_link_leads_nowhere)
{
	sh("ln -s / root && ln -s . self");
	run(0, ANY, ANY);
	assert_int_equal(count.inodes, 2);
}

TEST(it_stops_when_it_is_enough)
{
	sh("for i in $(seq 2000); do : >f$i; done");
	run(0, ANY, 100);
	assert_in_range(count.inodes, 101, 200);
}

/* ---- layers, in a mount namespace of a process of its own */

/* The image is in lower/, root/ is what its programs see; false: this kernel
 * or file system has no such thing. */
static bool
mount_layers(void)
{
	char options[256], at[80];

	(void)snprintf(at, sizeof(at), "%s/root", dir);
	(void)snprintf(options, sizeof(options),
	    "lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work", dir, dir,
	    dir);
	sh("mkdir upper work root");
	return mount("overlay", at, "overlay", 0, options) == 0;
}

enum birth {
	AS_IT_IS,
	UNKNOWN /* of the upper layer, as on file systems that keep none */
};

static void
count_layers(int64_t since, enum birth birth)
{
	char root[80];

	(void)snprintf(root, sizeof(root), "%s/root", dir);
	layer_count_begin(&count, root, since, ANY, ANY);
	if (birth == UNKNOWN)
		count.upper_ns = INT64_MIN;
	while (!layer_count_slice(&count, clock_mono_us() + 100))
		continue;
}

#define NO_LAYERS 77

/* The exit code of check, which has lower/ made and calls mount_layers. */
static int
in_layers(int (*check)(void))
{
	int status = 0, code;
	pid_t pid = fork();

	if (pid == 0) {
		if (unshare(CLONE_NEWNS) == -1 ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1)
			_exit(NO_LAYERS);
		code = check();
		/* /tmp may be layers itself, on which there can be no more */
		if (code == NO_LAYERS &&
		    mount("tmpfs", dir, "tmpfs", 0, NULL) == 0)
			code = check();
		_exit(code);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void
assert_in_layers(int (*check)(void))
{
	int code;

	if (geteuid() != 0)
		skip();
	code = in_layers(check);
	if (code == NO_LAYERS)
		skip();
	assert_int_equal(code, 0);
}

#define NEW_BYTES 100000

/* Each way to have something of one's own below directories of the image. */
static int
check_changes(void)
{
	static const char *const ways[] = {
	    "head -c 100000 /dev/zero >>a/b/c/file",
	    "head -c 100000 /dev/zero >a/b/c/new",
	    "mkdir -p a/b/c/d/e && head -c 100000 /dev/zero >a/b/c/d/e/new",
	    "ln a/b/c/file a/b/twin && head -c 100000 /dev/zero >>a/b/twin",
	    "mkdir x && head -c 100000 /dev/zero >x/new && mv x a/b/c",
	    "chmod 700 a/b/c && head -c 100000 /dev/zero >a/b/c/new",
	    "rm -r a && mkdir -p a/b && head -c 100000 /dev/zero >a/b/new",
	    "head -c 100000 /dev/zero >new && mv new a/b/c/file",
	    ("head -c 100000 /dev/zero >>a/b/c/file && "
	     "touch -d 1990-01-01 a a/b a/b/c a/b/c/file"),
	};
	char command[512];
	int64_t since;

	sh("mkdir -p lower/a/b/c lower/z && echo x >lower/a/b/c/file && "
	   "sleep 0.05");
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		if (!mount_layers())
			return NO_LAYERS;
		sh("mkdir root/made_before && sleep 0.05");
		since = wall_ns() - 20000000;
		count_layers(since, AS_IT_IS);
		if (count.bytes != 0 || count.inodes != 0)
			return 1;
		(void)snprintf(
		    command, sizeof(command), "cd root && %s", ways[i]);
		sh(command);
		count_layers(since, AS_IT_IS);
		if (count.bytes < NEW_BYTES)
			return 2 + (int)i;
		sh("umount root && rm -rf root upper work");
	}
	return 0;
}

TEST(what_changes_in_the_image_is_found)
{
	assert_in_layers(check_changes);
}

/* A file that is changed behind the layers' back, which no program inside can
 * do, tells whether its directory was looked at. */
static int
check_passing_over(void)
{
	int64_t since;

	sh("mkdir -p lower/a/b && sleep 0.05");
	if (!mount_layers())
		return NO_LAYERS;
	since = wall_ns();
	sh("sleep 0.05 && echo x >upper/seen && echo x >lower/a/b/unseen && "
	   "touch -d now lower/a/b/unseen");
	count_layers(since, UNKNOWN);
	if (count.inodes != 3) /* b, too, which is younger now */
		return 1;
	count_layers(since, AS_IT_IS);
	/* a is older: nothing below it is found where a birth is known */
	return count.inodes == (count.upper_ns == INT64_MIN ? 3 : 1) ? 0 : 2;
}

TEST(the_rest_of_the_image_is_not_looked_at)
{
	assert_in_layers(check_passing_over);
}

TEST_MAIN(setup, teardown)

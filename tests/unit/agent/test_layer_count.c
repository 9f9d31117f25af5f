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
#include "images/agent/layer_count.h"

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
	char command[512];

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

static void
test_blocks_and_names_are_added_up(void **state)
{
	(void)state;
	sh("mkdir -p a/b && head -c 100000 /dev/zero >a/b/x && touch y");
	run(0, ANY, ANY);
	assert_int_equal(count.inodes, 4);
	assert_in_range(count.bytes, 100000, 150000);
}

static void
test_what_is_older_is_not_ours(void **state)
{
	int64_t since;

	(void)state;
	sh("head -c 100000 /dev/zero >old && touch changed && sleep 0.1");
	since = wall_ns() - 50000000;
	sh("touch -d 1990-01-01 changed new");
	run(since, ANY, ANY);
	assert_int_equal(count.inodes, 2); /* whatever times they claim */
	assert_true(count.bytes < 100000);
}

static void
test_a_file_of_many_names_is_there_once(void **state)
{
	(void)state;
	sh("head -c 1000000 /dev/zero >x && ln x y && ln x z && ln x w");
	run(0, ANY, ANY);
	assert_int_equal(count.inodes, 4);
	assert_in_range(count.bytes, 999000, 1100000);
}

static void
test_a_hole_is_nothing(void **state)
{
	(void)state;
	sh("truncate -s 10G x");
	run(0, ANY, ANY);
	assert_true(count.bytes < 1000000);
}

/* Deeper than any path that the kernel takes. */
static void
test_depth_hides_nothing(void **state)
{
	char name[201] = {0};
	int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
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

static void
test_a_link_leads_nowhere(void **state)
{
	(void)state;
	sh("ln -s / root && ln -s . self");
	run(0, ANY, ANY);
	assert_int_equal(count.inodes, 2);
}

static void
test_it_stops_when_it_is_enough(void **state)
{
	(void)state;
	sh("for i in $(seq 2000); do : >f$i; done");
	run(0, ANY, 100);
	assert_in_range(count.inodes, 101, 200);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_blocks_and_names_are_added_up),
	    TEST(test_what_is_older_is_not_ours),
	    TEST(test_a_file_of_many_names_is_there_once),
	    TEST(test_a_hole_is_nothing),
	    TEST(test_depth_hides_nothing),
	    TEST(test_a_link_leads_nowhere),
	    TEST(test_it_stops_when_it_is_enough),
	};

	return cmocka_run_group_tests_name("layer_count", tests, NULL, NULL);
}

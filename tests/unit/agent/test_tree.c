#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "images/agent/tree.h"
#include "tests/unit/test.h"

TEST(a_children_file_is_a_list_of_pids)
{
	static const char text[] = "12 345 6789 ";
	pid_t got[4];

	assert_int_equal(
	    tree_parse_children(text, sizeof(text) - 1, got, 4), 3);
	assert_int_equal(got[0], 12);
	assert_int_equal(got[1], 345);
	assert_int_equal(got[2], 6789);
	assert_int_equal(tree_parse_children("7", 1, got, 4), 1);
	assert_int_equal(tree_parse_children("", 0, got, 4), 0);
}

TEST(no_more_children_are_taken_than_there_is_room)
{
	pid_t got[3] = {0, 0, -1};

	assert_int_equal(tree_parse_children("1 2 3 4", 7, got, 2), 2);
	assert_int_equal(got[2], -1);
}

TEST(a_number_that_is_no_pid_ends_the_list)
{
	pid_t got[4];

	assert_int_equal(
	    tree_parse_children("5 99999999999999999999 6", 24, got, 4), 1);
}

TEST(the_parent_is_found_behind_any_program_name)
{
	assert_int_equal(tree_parse_ppid("10 (sh) S 7 10 10"), 7);
	assert_int_equal(tree_parse_ppid("10 (a) S 99 (b) T 8 1"), 8);
	assert_int_equal(tree_parse_ppid("10 (x y\n) R 0 0"), 0);
	assert_int_equal(tree_parse_ppid("10 (cut"), -1);
	assert_int_equal(tree_parse_ppid(""), -1);
}

/* A child that has a child in a session of its own, and says so. */
static pid_t
start_family(void)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_int_not_equal(pid, -1);
	if (pid == 0) {
		if (fork() == 0) {
			(void)setsid();
			if (write(ready[1], "x", 1) != 1)
				_exit(1);
		}
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	(void)close(ready[1]);
	return pid;
}

static void
reap_all(int want)
{
	int status;

	while (waitpid(-1, &status, 0) > 0) {
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGKILL);
		want--;
	}
	assert_int_equal(errno, ECHILD);
	assert_int_equal(want, 0);
}

TEST(a_look_finds_all_descendants)
{
	struct tree_set set, again;

	(void)start_family();
	(void)start_family();
	set = tree_signal(getpid(), 0, NULL, NULL);
	again = tree_signal(getpid(), 0, NULL, NULL);
	assert_int_equal(set.count, 4);
	assert_int_equal(again.mark, set.mark);
	(void)tree_kill(getpid(), NULL, NULL, clock_mono_us() + 1000000);
	reap_all(4);
	assert_int_equal(tree_signal(getpid(), 0, NULL, NULL).count, 0);
}

static bool
skip_cb(pid_t pid, void *arg)
{
	return pid == *(const pid_t *)arg;
}

TEST(a_skipped_child_and_all_below_it_live_on)
{
	pid_t keep = start_family();
	siginfo_t info = {0};

	(void)start_family();
	assert_int_equal(
	    tree_kill(getpid(), skip_cb, &keep, clock_mono_us() + 1000000), 2);
	/* both of the other family are dead, and the first is not */
	for (int i = 0; i < 2; i++)
		assert_true(waitpid(-1, NULL, 0) > 0);
	assert_int_equal(
	    waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG), 0);
	assert_int_equal(info.si_pid, 0);
	assert_int_equal(tree_signal(getpid(), 0, NULL, NULL).count, 2);
	(void)tree_kill(getpid(), NULL, NULL, clock_mono_us() + 1000000);
	reap_all(2);
}

TEST(without_descendants_there_is_nothing_to_kill)
{
	assert_int_equal(
	    tree_kill(getpid(), NULL, NULL, clock_mono_us() + 1000), 0);
}

int
main(void)
{
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	return tests_run(NULL, NULL, NULL, NULL);
}

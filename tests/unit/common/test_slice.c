#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/slice.h"
#include "tests/unit/test.h"

/* struct sched_attr of linux/sched/types.h, first version */
struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

/* Of a child: its exit status is all it says. */
static struct attr
own(void)
{
	struct attr a = {0};

	if (syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0) == -1)
		_exit(99);
	return a;
}

static void
in_a_child(int (*step)(void))
{
	int status;
	pid_t pid = fork();

	assert_int_not_equal(pid, -1);
	if (pid == 0)
		_exit(step());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* What the kernel says of a shortened one: nothing before Linux 6.12. */
static uint64_t
shortened(uint64_t before)
{
	return before == 0 ? 0 : SLICE_SHORT_NS;
}

static int
in_grandchild(uint64_t runtime)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(own().runtime != runtime);
	return pid == -1 || waitpid(pid, &status, 0) != pid || status != 0;
}

static int
alters_the_slice_alone(void)
{
	struct attr before, after;

	if (setpriority(PRIO_PROCESS, 0, 7) == -1)
		return 1;
	before = own();
	slice_shorten(SLICE_INHERITED);
	after = own();
	if (after.runtime != shortened(before.runtime))
		return 2;
	if (after.nice != 7 || after.policy != before.policy ||
	    after.flags != before.flags)
		return 3;
	return in_grandchild(after.runtime) ? 4 : 0;
}

static int
goes_to_no_child(void)
{
	struct attr before = own();

	slice_shorten(SLICE_OWN);
	if (own().runtime != shortened(before.runtime))
		return 1;
	return in_grandchild(before.runtime) ? 2 : 0;
}

static int
leaves_other_policies(void)
{
	struct sched_param none = {0};

	if (sched_setscheduler(0, SCHED_BATCH, &none) == -1)
		return 1;
	slice_shorten(SLICE_INHERITED);
	return own().policy != SCHED_BATCH;
}

TEST(the_slice_is_short_and_inherited_and_nothing_else_changes)
{
	in_a_child(alters_the_slice_alone);
}

TEST(an_own_slice_goes_to_no_child)
{
	in_a_child(goes_to_no_child);
}

TEST(another_policy_stays)
{
	in_a_child(leaves_other_policies);
}

TEST_MAIN(NULL, NULL)

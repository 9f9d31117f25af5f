#include "worker/docker/body.h"
#include "tests/unit/test.h"

/* Lists of processors, as cpuset(7) has them. */

static cpu_set_t
set_of(const int *cpus)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (; *cpus != -1; cpus++)
		CPU_SET((size_t)*cpus, &set);
	return set;
}

TEST(a_part_is_a_list_of_those_that_are_there)
{
	static const int four[] = {0, 1, 2, 3, -1}, holes[] = {1, 2, 5, 9, -1};
	const struct {
		const int *of;
		unsigned int first, n;
		const char *text;
	} rows[] = {{four, 0, 0, "0-3"}, {four, 3, 0, "0-3"},
	    {four, 0, 4, "0-3"}, {four, 1, 1, "1"}, {four, 0, 2, "0-1"},
	    {four, 2, 2, "2-3"}, {four, 3, 2, "0,3"}, {four, 2, 3, "0,2-3"},
	    {holes, 0, 0, "1-2,5,9"}, {holes, 1, 2, "2,5"},
	    {holes, 3, 2, "1,9"}};
	char got[BODY_CPUSET_MAX];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cpu_set_t set = set_of(rows[i].of);

		assert_true(body_cpuset(&set, rows[i].first, rows[i].n, got));
		assert_string_equal(got, rows[i].text);
	}
}

TEST(what_is_not_there_is_no_list)
{
	static const int two[] = {0, 1, -1}, none[] = {-1};
	cpu_set_t set = set_of(two);
	char got[BODY_CPUSET_MAX];

	assert_false(body_cpuset(&set, 2, 1, got));
	assert_false(body_cpuset(&set, 0, 3, got));
	set = set_of(none);
	assert_false(body_cpuset(&set, 0, 0, got));
	assert_false(body_cpuset(&set, 0, 1, got));
}

TEST(a_list_that_is_too_long_is_none)
{
	char got[BODY_CPUSET_MAX];
	cpu_set_t set;

	CPU_ZERO(&set);
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu += 2)
		CPU_SET(cpu, &set);
	assert_false(body_cpuset(&set, 0, 0, got));
	assert_true(body_cpuset(&set, 0, 10, got));
	assert_string_equal(got, "0,2,4,6,8,10,12,14,16,18");
}

TEST_MAIN(NULL, NULL)

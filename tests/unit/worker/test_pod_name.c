#include <stdio.h>

#include "worker/kubernetes/pod_name.h"
#include "tests/unit/test.h"

static void
check(const char *name, const char *want)
{
	char got[POD_NAME_MAX + 1];

	pod_name(name, got);
	assert_string_equal(got, want);
}

/* A Pod's name is taken for a box's where nothing else is known of it. */
TEST(what_is_a_label_stays_as_it_is)
{
	char got[POD_NAME_MAX + 1];

	check("mcp-7f3a-box-1", "mcp-7f3a-box-1");
	check("7", "7");
	pod_name("Mixed_Case.1", got);
	check(got, got);
}

/* printf %s 'Mixed_Case.1' | sha256sum */
TEST(what_cannot_stand_in_a_label_is_a_dash)
{
	check("Mixed_Case.1", "mixed-case-1-f15e1b6c");
}

TEST(two_names_do_not_become_one)
{
	static const char *const names[] = {
	    "a.b", "a_b", "A-b", "a-b", "a-b-", "-a-b", "a--b", "", "..", "_"};
	char got[ARRAY_LEN(names)][POD_NAME_MAX + 1];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		pod_name(names[i], got[i]);
		assert_true(pod_name_is_label(got[i]));
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(got[i], got[j]);
	}
}

TEST(a_long_name_is_cut_and_its_end_still_counts)
{
	char name[66], a[POD_NAME_MAX + 1], b[POD_NAME_MAX + 1];

	memset(name, 'n', 64);
	name[64] = '\0';
	pod_name(name, a);
	name[63] = 'm';
	pod_name(name, b);
	assert_int_equal(strlen(a), POD_NAME_MAX);
	assert_string_not_equal(a, b);
	name[63] = '\0';
	check(name, name);
}

TEST(a_label_is_what_dns_takes)
{
	assert_true(pod_name_is_label("a-1"));
	assert_false(pod_name_is_label(""));
	assert_false(pod_name_is_label("-a"));
	assert_false(pod_name_is_label("a-"));
	assert_false(pod_name_is_label("a.b"));
	assert_false(pod_name_is_label("A"));
}

TEST_MAIN(NULL, NULL)

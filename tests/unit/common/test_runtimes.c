#include "common/runtimes.h"

#include "tests/unit/test.h"

static const char *
refused(const char *list, const char *name)
{
	static struct err e;

	return runtimes_check(list, name, &e) == 0 ? "" : e.msg;
}

TEST(a_name_is_found_as_a_whole)
{
	assert_true(runtimes_have(" runc runsc ", "runc"));
	assert_true(runtimes_have(" runc runsc ", ""));
	assert_false(runtimes_have(" runc runsc ", "run"));
	assert_false(runtimes_have(" runc runsc ", "runc runsc"));
}

TEST(what_is_no_word_is_left_out_of_a_list)
{
	char list[RUNTIMES_LIST_MAX] = "", name[80];

	runtimes_add(list, "runc");
	runtimes_add(list, "");
	runtimes_add(list, "a b");
	runtimes_add(list, "a\nb");
	runtimes_add(list, "\xc3\xa9");
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	runtimes_add(list, name);
	runtimes_add(list, "kata");
	assert_string_equal(list, " runc kata ");
}

TEST(a_list_stays_within_its_room)
{
	char list[RUNTIMES_LIST_MAX] = "", name[RUNTIMES_NAME_MAX + 1];

	memset(name, 'x', RUNTIMES_NAME_MAX);
	name[RUNTIMES_NAME_MAX] = '\0';
	for (int i = 0; i < 100; i++)
		runtimes_add(list, name);
	assert_true(strlen(list) < sizeof(list));
	assert_int_equal((strlen(list) - 1) % (RUNTIMES_NAME_MAX + 1), 0);
	assert_true(runtimes_have(list, name));
}

TEST(one_that_is_not_there_is_refused_with_those_that_are)
{
	const char *why = refused(" runc runsc ", "kata");

	assert_non_null(strstr(why, "no runtime kata; it has: runc runsc ("));
	assert_string_equal(refused(" runc ", "runc"), "");
	assert_string_equal(refused(" runc ", ""), "");
}

TEST(an_engine_that_does_not_say_what_it_has_refuses_nothing)
{
	assert_string_equal(refused("", "kata"), "");
	assert_string_equal(refused(" ", "kata"), "");
}

TEST(what_isolates_is_known_by_the_name_or_else_by_the_program)
{
	assert_int_equal(runtimes_kind("runc", ""), RUNTIMES_NAMESPACES);
	assert_int_equal(
	    runtimes_kind("io.containerd.runc.v2", ""), RUNTIMES_NAMESPACES);
	assert_int_equal(runtimes_kind("crun", ""), RUNTIMES_NAMESPACES);
	assert_int_equal(
	    runtimes_kind("safe", "/usr/bin/runsc"), RUNTIMES_GVISOR);
	assert_int_equal(runtimes_kind("kata-qemu", ""), RUNTIMES_MACHINE);
	assert_int_equal(
	    runtimes_kind("own", "/opt/kata/own"), RUNTIMES_UNKNOWN);
	assert_non_null(
	    strstr(runtimes_isolates(RUNTIMES_NAMESPACES), "kernel is shared"));
}

TEST(a_kernel_is_known_by_the_name_alone)
{
	assert_true(runtimes_brings_kernel("runsc-kvm"));
	assert_true(runtimes_brings_kernel("kata"));
	assert_false(runtimes_brings_kernel("runc"));
	assert_false(runtimes_brings_kernel(""));
}

TEST_MAIN(NULL, NULL)

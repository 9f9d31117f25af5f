#include "common/trace.h"
#include "tests/unit/test.h"

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN "00f067aa0ba902b7"

TEST(a_good_one_is_continued_by_a_span_of_ours)
{
	char next[TRACE_PARENT_LEN + 1];
	struct trace t;

	assert_int_equal(trace_continue(&t, "00-" TRACE "-" SPAN "-01"), 0);
	assert_string_equal(t.id, TRACE);
	assert_string_equal(t.parent, SPAN);
	assert_true(t.is_sampled);
	assert_int_equal(strlen(t.span), TRACE_SPAN_LEN);
	assert_string_not_equal(t.span, SPAN);
	trace_parent(&t, next);
	assert_memory_equal(next, "00-" TRACE "-", 36);
	assert_memory_equal(next + 36, t.span, TRACE_SPAN_LEN);
	assert_string_equal(next + 52, "-01");
	assert_int_equal(trace_continue(&t, "00-" TRACE "-" SPAN "-00"), 0);
	assert_false(t.is_sampled);
	/* Flags of a later level. */
	assert_int_equal(trace_continue(&t, "00-" TRACE "-" SPAN "-fe"), 0);
	assert_false(t.is_sampled);
}

TEST(a_later_version_is_read_as_far_as_ours_goes)
{
	struct trace t;

	assert_int_equal(trace_continue(&t, "cc-" TRACE "-" SPAN "-01"), 0);
	assert_int_equal(trace_continue(&t, "cc-" TRACE "-" SPAN "-01-x"), 0);
	assert_int_equal(trace_continue(&t, "cc-" TRACE "-" SPAN "-01x"), -1);
}

TEST(what_is_not_as_the_standard_has_it_is_none)
{
	static const char *const bad[] = {NULL, "", "00", "00-" TRACE "-" SPAN,
	    "00-" TRACE "-" SPAN "-", "00-" TRACE "-" SPAN "-0",
	    "00-" TRACE "-" SPAN "-01-", "00-" TRACE "-" SPAN "-012",
	    "ff-" TRACE "-" SPAN "-01", "0x-" TRACE "-" SPAN "-01",
	    "00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01",
	    "00-00000000000000000000000000000000-" SPAN "-01",
	    "00-" TRACE "-0000000000000000-01", "00_" TRACE "-" SPAN "-01",
	    "00-" TRACE "-" SPAN "-0g", " 00-" TRACE "-" SPAN "-01",
	    "00-" TRACE " " SPAN "-01"};
	struct trace t = {.id = "kept"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (trace_continue(&t, bad[i]) == 0)
			fail_msg("%s", bad[i]);
	assert_string_equal(t.id, "kept");
}

TEST(a_trace_of_our_own_has_nobody_above)
{
	struct trace a, b;

	trace_begin(&a);
	trace_begin(&b);
	assert_int_equal(strlen(a.id), TRACE_ID_LEN);
	assert_int_equal(strlen(a.span), TRACE_SPAN_LEN);
	assert_string_equal(a.parent, "");
	assert_string_not_equal(a.id, b.id);
}

TEST_MAIN(NULL, NULL)

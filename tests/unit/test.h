/*
 * test.h - the frame of a unit test, over cmocka
 *
 *	TEST(a_buffer_grows) { ... }
 *	TEST_WITH(set_up, tear_down, a_file_is_read) { ... }
 *	TEST_MAIN(NULL, NULL)
 *
 * Tests run in the order of their definitions.  The fixture of TEST_MAIN is
 *that of each TEST; TEST_WITH has one of its own.  The parameter of a test is
 * TEST_STATE: what set_up left in *state, where the header of a fixture defines
 * it before this one is included, else cmocka's void **state.
 */
#ifndef TESTS_UNIT_TEST_H
#define TESTS_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#ifdef TEST_STATE
#define TEST_GIVEN(state) (*(state))
#else
#define TEST_GIVEN(state) (state)
// NOLINTNEXTLINE(bugprone-macro-parentheses): a parameter
#define TEST_STATE void **state
#endif

#define TEST(name) TEST_WITH(NULL, NULL, name)

#define TEST_WITH(set_up, tear_down, name)                                     \
	static void body_##name(TEST_STATE);                                   \
	static void test_##name(void **state)                                  \
	{                                                                      \
		body_##name(TEST_GIVEN(state));                                \
	}                                                                      \
	__attribute__((constructor)) static void add_##name(void)              \
	{                                                                      \
		tests_add((struct CMUnitTest){                                 \
		    "test_" #name, test_##name, set_up, tear_down, NULL});     \
	}                                                                      \
	static void body_##name(__attribute__((unused)) TEST_STATE)

#define TEST_MAIN(set_up, tear_down)                                           \
	int main(void)                                                         \
	{                                                                      \
		return tests_run(set_up, tear_down, NULL, NULL);               \
	}

/* Add a test to those that tests_run runs. */
void tests_add(struct CMUnitTest test);

/*
 * Run all tests: set_up and tear_down around each that has none of its own,
 * first and last around all.  Each may be NULL.  Returns how many failed.
 */
int tests_run(CMFixtureFunction set_up, CMFixtureFunction tear_down,
    CMFixtureFunction first, CMFixtureFunction last);

#endif

/*
 * tap.c - part of every unit test: its list of tests, and how they are told
 *
 * cmocka asks the environment for the form each time it prints, and a test may
 * clear its environment: so TAP, which make check wants, is remembered.
 */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#define TESTS_MAX 128

static struct CMUnitTest tests[TESTS_MAX];
static size_t ntests;

static void tap_remember(void) __attribute__((constructor));

static void
tap_remember(void)
{
	const char *form = getenv("CMOCKA_MESSAGE_OUTPUT");

	if (form != NULL && strcmp(form, "TAP") == 0)
		cmocka_set_message_output(CM_OUTPUT_TAP);
}

void
tests_add(struct CMUnitTest test)
{
	if (ntests == TESTS_MAX)
		abort();
	tests[ntests++] = test;
}

int
tests_run(CMFixtureFunction set_up, CMFixtureFunction tear_down,
    CMFixtureFunction first, CMFixtureFunction last)
{
	for (size_t i = 0; i < ntests; i++) {
		struct CMUnitTest *t = &tests[i];

		if (t->setup_func != NULL || t->teardown_func != NULL)
			continue;
		t->setup_func = set_up;
		t->teardown_func = tear_down;
	}
	/* cmocka passes over the places that are empty. */
	return cmocka_run_group_tests(tests, first, last);
}

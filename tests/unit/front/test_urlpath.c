#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/xmalloc.h"
#include "supervisor/front/urlpath.h"

static void
parts_are_decoded_once(void **state)
{
	struct urlpath_artifact to;
	char *mem = urlpath_artifact_parse(
	    "my-Box_1/latest/a/b%20c/%2541%C3%A9.txt", &to);

	(void)state;
	assert_non_null(mem);
	assert_string_equal(to.identifier, "my-Box_1");
	assert_string_equal(to.run, "latest");
	assert_string_equal(to.path, "a/b c/%41\xc3\xa9.txt");
	free(mem);
	mem = urlpath_artifact_parse(
	    "b/01234567-89ab-4def-8123-456789abcdef/x", &to);
	assert_non_null(mem);
	assert_string_equal(to.run, "01234567-89ab-4def-8123-456789abcdef");
	free(mem);
}

static void
names_that_lead_elsewhere_are_refused(void **state)
{
	static const char *const table[] = {"", "b", "b/latest", "b/latest/",
	    "/latest/x", "b//x", "b/first/x", "b/latest/..", "b/latest/.",
	    "b/latest/a/../b", "b/latest/a/./b", "b/latest/a//b", "b/latest//a",
	    "b/latest/a/", "b/latest/%2e%2e/a", "b/latest/%2E./a",
	    "b/latest/a%2f..%2fb", "b/latest/%2Fa", "b/latest/a%00b",
	    "b/latest/%", "b/latest/%4", "b/latest/%g0", "b/latest/%0g",
	    "b/latest/%ff", "b/latest/\xff", "b%2f/latest/x", "../latest/x",
	    "b.c/latest/x", "0123456789012345678901234567890123456/latest/x"};
	struct urlpath_artifact to;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (urlpath_artifact_parse(table[i], &to) != NULL)
			fail_msg("%s was taken", table[i]);
}

static void
a_path_that_is_too_long_is_refused(void **state)
{
	char *text = xcalloc(1, 4 * URLPATH_MAX);
	struct urlpath_artifact to;

	(void)state;
	memset(text, 'x', URLPATH_MAX + 20);
	memcpy(text, "b/latest/", 9);
	assert_null(urlpath_artifact_parse(text, &to));
	memset(text, 'x', 4 * URLPATH_MAX - 1);
	memcpy(text, "b/latest/", 9);
	assert_null(urlpath_artifact_parse(text, &to));
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(parts_are_decoded_once),
	    cmocka_unit_test(names_that_lead_elsewhere_are_refused),
	    cmocka_unit_test(a_path_that_is_too_long_is_refused),
	};

	return cmocka_run_group_tests_name("urlpath", tests, NULL, NULL);
}

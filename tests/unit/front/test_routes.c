/* The kinds of parameters, over the real table of routes. */
#include <stdio.h>

#include "common/base.h"
#include "supervisor/front/routes.h"
#include "tests/unit/test.h"

static struct http_router *router;

static int
setup(void **state)
{
	(void)state;
	router = routes_new("/mcp");
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	http_router_free(router);
	return 0;
}

static enum http_fit
fit_of(const char *path, const char *name, char *value, size_t size)
{
	struct http_params params = {0};
	const void *route = NULL;
	enum http_fit fit = http_router_match(router, path, &params, &route);
	const char *got = name != NULL ? http_params_find(&params, name) : NULL;

	if (got != NULL)
		(void)snprintf(value, size, "%s", got);
	http_params_clear(&params);
	return fit;
}

#define UUID "01234567-89ab-4def-8123-456789abcdef"

static void
expect(const char *path, const char *name, const char *value)
{
	char got[100] = "";

	assert_int_equal(fit_of(path, name, got, sizeof(got)), HTTP_FIT_WHOLE);
	assert_string_equal(got, value);
}

TEST(artifacts_are_named_by_identifier_run_and_path)
{
	expect("/artifacts/my-Box_1/latest/a/b", "identifier", "my-Box_1");
	expect("/artifacts/b/latest/a/b", "run_or_latest", "latest");
	expect("/artifacts/b/" UUID "/a/b", "run_or_latest", UUID);
	expect("/artifacts/b/latest/a/b", "path", "a/b");
	expect("/mcp/runs/" UUID, "run", UUID);
}

TEST(names_of_another_form_are_not_found_there)
{
	static const char *const table[] = {"/artifacts/",
	    "/artifacts/b/first/x", "/artifacts/b.c/latest/x",
	    "/artifacts//latest/x",
	    "/artifacts/0123456789012345678901234567890123456/latest/x",
	    "/artifacts/b/latest/", "/artifacts/b/latest/../x", "/mcp/runs/",
	    "/mcp/runs/latest",
	    "/mcp/runs/01234567-89ab-4def-8123-456789abcdef/",
	    "/mcp/runs/01234567-89ab-4def-8123-456789abcdef0"};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (fit_of(table[i], NULL, NULL, 0) != HTTP_FIT_HEAD)
			fail_msg("%s", table[i]);
}

TEST_MAIN(setup, teardown)

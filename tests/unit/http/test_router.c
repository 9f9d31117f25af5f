#include <stdio.h>

#include "common/base.h"
#include "common/xmalloc.h"
#include "supervisor/http/router.h"
#include "tests/unit/test.h"

static bool
is_word(const char *s)
{
	return *s != '\0' && s[strspn(s, "abcdefghijklmnopqrstuvwxyz")] == '\0';
}

static bool
is_number(const char *s)
{
	return *s != '\0' && s[strspn(s, "0123456789")] == '\0';
}

static const struct http_param_kind kinds[] = {
    {"word", is_word}, {"number", is_number}};
static struct http_router *router;
static struct http_params params;
static const char all[] = "all", one[] = "one", part[] = "part",
		  file[] = "file";

static int
setup(void **state)
{
	(void)state;
	router = http_router_new(kinds, ARRAY_LEN(kinds));
	http_router_add(router, "/base", "/things", all);
	http_router_add(router, "/base", "/things/:number", one);
	http_router_add(router, "/base", "/things/:number/part", part);
	http_router_add(router, "", "/files/:word/*path", file);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	http_params_clear(&params);
	http_router_free(router);
	return 0;
}

static void
expect(const char *path, enum http_fit fit, const char *route)
{
	const void *found = NULL;

	http_params_clear(&params);
	if (http_router_match(router, path, &params, &found) != fit ||
	    found != route)
		fail_msg("%s", path);
	if (fit != HTTP_FIT_WHOLE)
		assert_int_equal(params.n, 0);
}

static void
expect_param(const char *name, const char *value)
{
	const char *got = http_params_find(&params, name);

	assert_non_null(got);
	assert_string_equal(got, value);
}

TEST(the_whole_pattern_is_taken_first)
{
	expect("/base/things", HTTP_FIT_WHOLE, all);
	assert_null(http_params_find(&params, "number"));
	expect("/base/things/17", HTTP_FIT_WHOLE, one);
	expect_param("number", "17");
	expect("/base/things/17/part", HTTP_FIT_WHOLE, part);
	expect_param("number", "17");
}

TEST(what_fits_no_pattern_belongs_to_the_first_head)
{
	expect("/base/things/x", HTTP_FIT_HEAD, one);
	expect("/base/things/17/", HTTP_FIT_HEAD, one);
	expect("/base/things/17/other", HTTP_FIT_HEAD, one);
	expect("/base/things/", HTTP_FIT_HEAD, one);
	expect("/files/", HTTP_FIT_HEAD, file);
}

TEST(a_pattern_without_places_fits_whole_or_not_at_all)
{
	static const char *const table[] = {"", "/", "/base", "/base/thing",
	    "/base/thingsx", "/things", "/files", "base/things",
	    "//base/things", "/%62ase/things"};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		expect(table[i], HTTP_FIT_NONE, NULL);
}

TEST(parameters_are_decoded_once)
{
	expect("/files/b%6fx/a/b%20c/%2541%C3%A9.txt", HTTP_FIT_WHOLE, file);
	expect_param("word", "box");
	expect_param("path", "a/b c/%41\xc3\xa9.txt");
	assert_null(http_params_find(&params, "wor"));
	assert_null(http_params_find(&params, "words"));
}

TEST(names_that_lead_elsewhere_are_refused)
{
	static const char *const table[] = {"b", "b/", "/x", "b//x", "b/..",
	    "b/.", "b/a/../b", "b/a/./b", "b/a//b", "b//a", "b/a/",
	    "b/%2e%2e/a", "b/%2E./a", "b/a%2f..%2fb", "b/%2Fa", "b/a%00b",
	    "b/%", "b/%4", "b/%g0", "b/%0g", "b/%ff", "b/\xff", "b%2f/x",
	    "../x", "b.c/x", "b%00/x"};
	char path[100];

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		(void)snprintf(path, sizeof(path), "/files/%s", table[i]);
		expect(path, HTTP_FIT_HEAD, file);
	}
}

TEST(a_parameter_that_is_too_long_is_refused)
{
	size_t room = 4 * HTTP_PARAM_MAX;
	char *text = xcalloc(1, room);
	const size_t at = strlen("/files/b/");

	memset(text, 'x', at + HTTP_PARAM_MAX);
	memcpy(text, "/files/b/", at);
	expect(text, HTTP_FIT_WHOLE, file);
	text[at + HTTP_PARAM_MAX] = 'x';
	expect(text, HTTP_FIT_HEAD, file);
	memset(text + at, 'x', room - at - 1);
	expect(text, HTTP_FIT_HEAD, file);
	free(text);
}

TEST_MAIN(setup, teardown)

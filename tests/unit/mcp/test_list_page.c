#include "supervisor/mcp/list_page.h"

#include "common/js.h"
#include "common/xmalloc.h"
#include "tests/unit/test.h"

static int
find(const char *params, size_t n, struct list_page *p)
{
	AUTO(auto_json)
	json_t *j = json_loads(params, JSON_ALLOW_NUL, NULL);
	struct err e;

	assert_non_null(j);
	return list_page_find(j, n, p, &e);
}

/* Goes through a list of n; how many pages it has. */
static int
walk(size_t n)
{
	char *params = xstrdup("{}");
	size_t seen = 0;
	int pages = 0;

	while (params != NULL) {
		json_t *result = json_object();
		const char *next;
		struct list_page p;

		assert_int_equal(find(params, n, &p), 0);
		assert_int_equal(p.from, seen);
		assert_true(p.to - p.from <= LIST_PAGE_LEN);
		seen = p.to;
		pages++;
		list_page_end(&p, n, result);
		next = json_string_value(json_object_get(result, "nextCursor"));
		free(params);
		params = next == NULL ? NULL :
					xasprintf("{\"cursor\":\"%s\"}", next);
		json_decref(result);
	}
	assert_int_equal(seen, n);
	return pages;
}

TEST(every_item_is_on_one_page)
{
	assert_int_equal(walk(0), 1);
	assert_int_equal(walk(1), 1);
	assert_int_equal(walk(100), 1);
	assert_int_equal(walk(101), 2);
	assert_int_equal(walk(200), 2);
	assert_int_equal(walk(250), 3);
}

TEST(an_empty_cursor_is_the_first_page)
{
	struct list_page p;

	assert_int_equal(find("{\"cursor\":\"\"}", 150, &p), 0);
	assert_int_equal(p.from, 0);
	assert_int_equal(p.to, 100);
}

TEST(a_cursor_that_was_not_given_is_refused)
{
	static const char *const params[] = {"{\"cursor\":\"0\"}",
	    "{\"cursor\":\"2\"}", "{\"cursor\":\"01\"}", "{\"cursor\":\"1 \"}",
	    "{\"cursor\":\"-1\"}", "{\"cursor\":\"x\"}", "{\"cursor\":1}",
	    "{\"cursor\":null}", "{\"cursor\":\"1\\u0000\"}", "{\"cursor\":[]}",
	    "{\"cursor\":\"99999999999999999999\"}"};
	struct list_page p;

	assert_int_equal(find("{\"cursor\":\"1\"}", 150, &p), 0);
	for (size_t i = 0; i < ARRAY_LEN(params); i++)
		assert_int_equal(find(params[i], 150, &p), ERR_INVAL);
}

TEST(without_params_there_is_a_first_page)
{
	struct err e;
	struct list_page p;

	assert_int_equal(list_page_find(NULL, 3, &p, &e), 0);
	assert_int_equal(p.to, 3);
}

TEST_MAIN(NULL, NULL)

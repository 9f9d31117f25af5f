#include <stdio.h>

#include "images/agent/taken.h"
#include "tests/unit/test.h"

static struct taken table;

static struct taken_mark
mark(int64_t size)
{
	const struct taken_mark m = {1, 2, size, 4, 5};

	return m;
}

static void
put(const char *root, const char *path, int64_t size)
{
	const struct taken_mark m = mark(size);

	taken_put(&table, root, path, &m);
}

TEST(what_was_put_is_found_under_its_root_and_path)
{
	taken_init(&table);
	put("/a", "x", 1);
	put("/a", "y", 2);
	put("/b", "x", 3);
	assert_int_equal(taken_find(&table, "/a", "x")->size, 1);
	assert_int_equal(taken_find(&table, "/a", "y")->size, 2);
	assert_int_equal(taken_find(&table, "/b", "x")->size, 3);
	assert_null(taken_find(&table, "/b", "y"));
	assert_null(taken_find(&table, "/ax", ""));
	taken_clear(&table);
}

TEST(a_second_put_replaces_the_first)
{
	taken_init(&table);
	put("/a", "x", 1);
	put("/a", "x", 2);
	assert_int_equal(table.by_name.count, 1);
	assert_int_equal(taken_find(&table, "/a", "x")->size, 2);
	taken_clear(&table);
}

TEST(the_table_is_bounded_and_forgets_the_oldest)
{
	char name[32];

	taken_init(&table);
	for (int i = 0; i < TAKEN_MAX + 3; i++) {
		(void)snprintf(name, sizeof(name), "f%d", i);
		put("/a", name, i);
	}
	assert_int_equal(table.by_name.count, TAKEN_MAX);
	assert_null(taken_find(&table, "/a", "f2"));
	assert_non_null(taken_find(&table, "/a", "f3"));
	assert_non_null(taken_find(&table, "/a", "f5002"));
	taken_clear(&table);
	assert_null(taken_find(&table, "/a", "f3"));
}

TEST(every_field_of_a_mark_counts)
{
	const struct taken_mark a = {1, 2, 3, 4, 5};
	const struct taken_mark others[] = {{9, 2, 3, 4, 5}, {1, 9, 3, 4, 5},
	    {1, 2, 9, 4, 5}, {1, 2, 3, 9, 5}, {1, 2, 3, 4, 9}};

	assert_true(taken_mark_is_equal(&a, &a));
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_false(taken_mark_is_equal(&a, &others[i]));
}

TEST_MAIN(NULL, NULL)

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "worker/idmap.h"

static int objects[4096];

static void
test_an_empty_map_has_nothing(void **state)
{
	struct idmap m = {0};
	size_t at = 0;

	(void)state;
	assert_null(idmap_get(&m, 0));
	assert_null(idmap_each(&m, &at));
	idmap_del(&m, 7);
	idmap_clear(&m);
}

static void
test_what_was_put_is_found_whatever_else_goes(void **state)
{
	struct idmap m = {0};

	(void)state;
	for (uint64_t i = 0; i < 4096; i++)
		idmap_put(&m, i * 2654435761u, &objects[i]);
	for (uint64_t i = 0; i < 4096; i += 3)
		idmap_del(&m, i * 2654435761u);
	for (uint64_t i = 0; i < 4096; i++)
		assert_ptr_equal(idmap_get(&m, i * 2654435761u),
		    i % 3 == 0 ? NULL : &objects[i]);
	idmap_clear(&m);
}

static void
test_a_key_that_is_put_again_gets_the_new_value(void **state)
{
	struct idmap m = {0};

	(void)state;
	idmap_put(&m, UINT64_MAX, &objects[0]);
	idmap_put(&m, UINT64_MAX, &objects[1]);
	assert_ptr_equal(idmap_get(&m, UINT64_MAX), &objects[1]);
	assert_int_equal(m.used, 1);
	idmap_clear(&m);
}

static void
test_each_comes_by_every_value_once(void **state)
{
	struct idmap m = {0};
	bool seen[100] = {false};
	size_t at = 0, n = 0;
	int *p;

	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		idmap_put(&m, i, &objects[i]);
	while ((p = idmap_each(&m, &at)) != NULL) {
		assert_false(seen[p - objects]);
		seen[p - objects] = true;
		n++;
	}
	assert_int_equal(n, 100);
	idmap_clear(&m);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_an_empty_map_has_nothing),
	    cmocka_unit_test(test_what_was_put_is_found_whatever_else_goes),
	    cmocka_unit_test(test_a_key_that_is_put_again_gets_the_new_value),
	    cmocka_unit_test(test_each_comes_by_every_value_once),
	};

	return cmocka_run_group_tests_name("idmap", tests, NULL, NULL);
}

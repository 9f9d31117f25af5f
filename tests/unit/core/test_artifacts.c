#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "supervisor/core/artifacts.h"

static int
offer(struct artifacts *a, const char *path, struct err *e)
{
	const struct artifact_offer o = {
	    .path = (const uint8_t *)path, .path_len = strlen(path)};

	return artifacts_begin(a, &o, e);
}

/* Each is asked for by itself, and all are kept until the run's end. */
static void
test_the_names_of_a_run_have_an_end(void **state)
{
	struct artifacts a;
	struct err e;

	(void)state;
	artifacts_init(&a, NULL, (struct tenant_id){1});
	a.names_bytes = ARTIFACTS_NAMES_MAX - 4;
	assert_int_equal(offer(&a, "a/b/c", &e), ERR_LIMIT);
	assert_non_null(strstr(e.msg, "1024 KiB"));
	artifacts_clear(&a);
}

static void
test_a_name_is_text(void **state)
{
	struct artifacts a;
	struct err e;

	(void)state;
	artifacts_init(&a, NULL, (struct tenant_id){1});
	assert_int_equal(offer(&a, "", &e), ERR_INVAL);
	assert_int_equal(offer(&a, "\xff", &e), ERR_INVAL);
	artifacts_clear(&a);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_the_names_of_a_run_have_an_end),
	    cmocka_unit_test(test_a_name_is_text),
	};

	return cmocka_run_group_tests_name("artifacts", tests, NULL, NULL);
}

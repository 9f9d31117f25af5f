#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/buf.h"
#include "supervisor/courier/headers.h"

static void
lines_are_taken_as_they_are(void **state)
{
	static const char text[] =
	    "# of the collector\nauthorization: Bearer x y\r\n\nX-Scope:\tone";
	struct headers h;
	struct err e;

	(void)state;
	assert_int_equal(headers_parse(text, strlen(text), &h, &e), 0);
	assert_string_equal(h.lines[0], "authorization: Bearer x y");
	assert_string_equal(h.lines[1], "X-Scope:\tone");
	assert_null(h.lines[2]);
	headers_clear(&h);
}

static void
what_is_no_header_names_its_line(void **state)
{
	static const char *const bad[] = {"\nx", "a: b\n: c", "a: b\nc d: e",
	    "a: b\nc: \001", "a: b\nc:\rd: e\r"};
	struct headers h;
	struct err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(
		    headers_parse(bad[i], strlen(bad[i]), &h, &e), ERR_PARSE);
		assert_non_null(strstr(e.msg, "line 2"));
		headers_clear(&h);
	}
}

static void
there_are_not_too_many(void **state)
{
	struct headers h;
	struct buf text;
	struct err e;

	(void)state;
	buf_init(&text, 4096);
	for (int i = 0; i < HEADERS_MAX; i++)
		assert_int_equal(buf_printf(&text, "a%d: b\n", i), 0);
	assert_int_equal(headers_parse((const char *)buf_data(&text),
			     buf_len(&text), &h, &e),
	    0);
	headers_clear(&h);
	assert_int_equal(buf_printf(&text, "a: b\n"), 0);
	assert_int_equal(headers_parse((const char *)buf_data(&text),
			     buf_len(&text), &h, &e),
	    ERR_PARSE);
	headers_clear(&h);
	buf_clear(&text);
}

static void
a_file_that_is_not_there_is_named(void **state)
{
	struct headers h;
	struct err e;

	(void)state;
	assert_int_equal(headers_read("", &h, &e), 0);
	assert_null(h.lines[0]);
	assert_int_equal(headers_read("/no/such", &h, &e), ERR_SYS);
	assert_non_null(strstr(e.msg, "OTLP_HEADERS_FILE: /no/such"));
	headers_clear(&h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(lines_are_taken_as_they_are),
	    cmocka_unit_test(what_is_no_header_names_its_line),
	    cmocka_unit_test(there_are_not_too_many),
	    cmocka_unit_test(a_file_that_is_not_there_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

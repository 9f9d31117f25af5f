#include "common/buf.h"
#include "supervisor/courier/headers.h"
#include "tests/unit/test.h"

TEST(lines_are_taken_as_they_are)
{
	static const char text[] =
	    "# of the collector\nauthorization: Bearer x y\r\n\nX-Scope:\tone";
	struct headers h;
	struct err e;

	assert_int_equal(headers_parse(text, strlen(text), &h, &e), 0);
	assert_string_equal(h.lines[0], "authorization: Bearer x y");
	assert_string_equal(h.lines[1], "X-Scope:\tone");
	assert_null(h.lines[2]);
	headers_clear(&h);
}

TEST(what_is_no_header_names_its_line)
{
	static const char *const bad[] = {"\nx", "a: b\n: c", "a: b\nc d: e",
	    "a: b\nc: \001", "a: b\nc:\rd: e\r"};
	struct headers h;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(
		    headers_parse(bad[i], strlen(bad[i]), &h, &e), ERR_PARSE);
		assert_non_null(strstr(e.msg, "line 2"));
		headers_clear(&h);
	}
}

TEST(there_are_not_too_many)
{
	struct headers h;
	struct buf text;
	struct err e;

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

TEST(a_file_that_is_not_there_is_named)
{
	struct headers h;
	struct err e;

	assert_int_equal(headers_read("", &h, &e), 0);
	assert_null(h.lines[0]);
	assert_int_equal(headers_read("/no/such", &h, &e), ERR_SYS);
	assert_non_null(strstr(e.msg, "OTLP_HEADERS_FILE: /no/such"));
	headers_clear(&h);
}

TEST_MAIN(NULL, NULL)

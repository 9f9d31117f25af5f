#include "supervisor/stdio/header.h"

#include "common/xmalloc.h"
#include "tests/unit/test.h"

/* MCP 2026-07-28, transports, value encoding; base64 by hand. */
TEST(what_is_not_plain_goes_as_base64)
{
	static const struct {
		const char *text, *want;
	} cases[] = {{"run_sandbox", "run_sandbox"},
	    {"sandbox://a b", "sandbox://a b"},
	    {"",
		"=?base64?"
		"?="},
	    {" a", "=?base64?IGE=?="}, {"a ", "=?base64?YSA=?="},
	    {"a\nb: c", "=?base64?YQpiOiBj?="}, {"\xc3\xa9", "=?base64?w6k=?="},
	    {"\x7f", "=?base64?fw==?="},
	    {"\xc3\xbf\xc3\xbf", "=?base64?w7/Dvw==?="},
	    {"=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="},
	    {"=?base64?", "=?base64?"}, {"?=", "?="},
	    {"=?BASE64?YQ==?=", "=?BASE64?YQ==?="}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(auto_free) char *value = header_encode(cases[i].text);

		assert_string_equal(value, cases[i].want);
		assert_true(header_is_plain(value));
	}
}

TEST_MAIN(NULL, NULL)
